/* Strings and dicts of CPython, as its versions lay them out: written by hand after their headers. */
#include "heap/snapshot/python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	BASE = 0x10000,
	LEN = 0x4000,
	STR = 0x1000,
	OTHER = 0x1100,
	KEYS = 0x2000,
	DICT = 0x3000,
	VALUE = 0x7770
};

static uint8_t bytes[LEN];

static bool read_bytes(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < BASE || addr - BASE > LEN || len > LEN - (addr - BASE))
		return false;
	memcpy(buf, bytes + (addr - BASE), len);
	return true;
}

static const struct python_memory mem = { read_bytes, NULL };

static void put(uint64_t at, uint64_t word)
{
	memcpy(bytes + at, &word, 8);
}

static void put_str(uint64_t at, uint64_t data, const char *text)
{
	put(at, 1);
	put(at + 16, strlen(text));
	strcpy((char *)bytes + at + data, text);
}

/* Two strings, and a dict. */
static void begin(uint64_t data)
{
	memset(bytes, 0, sizeof(bytes));
	put_str(STR, data, "__module__");
	put_str(OTHER, data, "sessions");
	put(DICT + PYTHON_MA_KEYS, BASE + KEYS);
}

static void check_dict(uint64_t entries, uint32_t entry, uint32_t key)
{
	char text[PYTHON_TEXT_MAX];
	struct python_keys keys;

	assert_true(python_keys(&mem, BASE + KEYS, &keys));
	assert_int_equal(keys.entries, BASE + KEYS + entries);
	assert_int_equal(keys.n, 2);
	assert_int_equal(keys.bytes, entry);
	assert_int_equal(keys.key, key);
	assert_true(python_key_at(&mem, &keys, keys.entries + entry + key + 8,
				  text)); /* its value's place */
	assert_string_equal(text, "sessions");
	assert_false(python_key_at(&mem, &keys, keys.entries + 2 * entry, text));
	assert_false(python_key_at(&mem, &keys, keys.entries - 8, text));
	assert_int_equal(python_dict_get(&mem, BASE + DICT, "sessions"), VALUE);
	assert_int_equal(python_dict_get(&mem, BASE + DICT, "others"), 0);
}

static void a_dict_of_3_8_has_its_keys(void **state)
{
	(void)state;
	begin(48);
	put(KEYS, 1);
	put(KEYS + 8, 8);                  /* dk_size */
	put(KEYS + 16, 0x55550000ffffULL); /* dk_lookup */
	put(KEYS + 24, 3);
	put(KEYS + 32, 2); /* dk_nentries */
	put(KEYS + 48 + 8, BASE + STR);
	put(KEYS + 48 + 24 + 8, BASE + OTHER);
	put(KEYS + 48 + 24 + 16, VALUE);
	check_dict(48, 24, 8);
}

static void a_dict_of_3_11_whose_keys_are_text_has_its_keys(void **state)
{
	(void)state;
	begin(48);
	put(KEYS, 1);
	put(KEYS + 8, 3 | 3 << 8 | 1 << 16); /* 8 slots, 8 bytes of indices, unicode */
	put(KEYS + 16, 3);
	put(KEYS + 24, 2);
	put(KEYS + 40, BASE + STR);
	put(KEYS + 40 + 16, BASE + OTHER);
	put(KEYS + 40 + 16 + 8, VALUE);
	check_dict(40, 16, 0);
}

static void a_dict_of_3_12_of_any_keys_has_them(void **state)
{
	(void)state;
	begin(40);
	put(KEYS, 1);
	put(KEYS + 8, 3 | 3 << 8);
	put(KEYS + 16, 3);
	put(KEYS + 24, 2);
	put(KEYS + 40 + 8, BASE + STR);
	put(KEYS + 40 + 24 + 8, BASE + OTHER);
	put(KEYS + 40 + 24 + 16, VALUE);
	check_dict(40, 24, 8);
}

static void text_is_ascii_that_ends_where_its_length_says(void **state)
{
	char text[PYTHON_TEXT_MAX], long_one[300];

	(void)state;
	begin(40);
	assert_true(python_str(&mem, BASE + STR, text));
	assert_string_equal(text, "__module__");
	put(STR + 16, 5); /* no NUL there */
	assert_false(python_str(&mem, BASE + STR, text));
	bytes[OTHER + 40] = 7;
	assert_false(python_str(&mem, BASE + OTHER, text));
	assert_false(python_str(&mem, BASE + LEN - 8, text));
	memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	put_str(STR, 40, long_one);
	assert_true(python_str(&mem, BASE + STR, text));
	assert_int_equal(strlen(text), PYTHON_TEXT_MAX - 1);
}

static void keys_that_do_not_add_up_are_none(void **state)
{
	struct python_keys keys;

	(void)state;
	begin(40);
	put(KEYS + 8, 30 | 30 << 8); /* too many slots */
	assert_false(python_keys(&mem, BASE + KEYS, &keys));
	put(KEYS + 8, 3 | 3 << 8 | 3 << 16); /* no kind */
	assert_false(python_keys(&mem, BASE + KEYS, &keys));
	put(KEYS + 8, 3 | 3 << 8);
	put(KEYS + 24, 9); /* more than there are slots */
	assert_false(python_keys(&mem, BASE + KEYS, &keys));
	assert_false(python_keys(&mem, BASE + LEN - 16, &keys));
	assert_false(python_keys(&mem, BASE + KEYS + 1, &keys));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dict_of_3_8_has_its_keys),
		cmocka_unit_test(a_dict_of_3_11_whose_keys_are_text_has_its_keys),
		cmocka_unit_test(a_dict_of_3_12_of_any_keys_has_them),
		cmocka_unit_test(text_is_ascii_that_ends_where_its_length_says),
		cmocka_unit_test(keys_that_do_not_add_up_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
