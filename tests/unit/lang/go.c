#include "lang/go.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

/* Memory at BASE: a map as Go 1.19 has it, with one bucket at BASE + 64 and strings at BASE + 512. */
#define BASE 0xc000010000ULL

static uint8_t memory[1024];
static int reads;

static bool read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	reads++;
	if (addr < BASE || addr - BASE > sizeof(memory) || len > sizeof(memory) - (addr - BASE))
		return false;
	memcpy(buf, memory + (addr - BASE), len);
	return true;
}

static const struct lang_memory mem = { read_memory, NULL };

static void put(size_t at, uint64_t word)
{
	memcpy(memory + at, &word, sizeof(word));
}

static void put_entry(int i, const char *key, const char *value)
{
	size_t at = 512 + 64 * (size_t)i;

	strcpy((char *)memory + at, key);
	strcpy((char *)memory + at + 32, value);
	memory[64 + i] = 200; /* tophash */
	put(64 + 8 + 16 * (size_t)i, BASE + at);
	put(64 + 16 + 16 * (size_t)i, strlen(key));
	put(64 + 136 + 16 * (size_t)i, BASE + at + 32);
	put(64 + 144 + 16 * (size_t)i, strlen(value));
}

#define COOKIE 0x5eed123400000000ULL

static int fresh(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	reads = 0;
	put(0, 2);
	put(8, COOKIE | 1); /* a flag */
	put(16, BASE + 64);
	put_entry(0, "user", "anna");
	put_entry(3, "endpoint", "/cart");
	return 0;
}

static void labels_are_those_of_the_map_by_key(void **state)
{
	struct go_label labels[GO_LABELS_MAX];

	(void)state;
	assert_int_equal(go_labels_decode(&mem, BASE, COOKIE, labels), 2);
	assert_string_equal(labels[0].key, "endpoint");
	assert_string_equal(labels[0].value, "/cart");
	assert_string_equal(labels[1].key, "user");
	assert_string_equal(labels[1].value, "anna");
	memory[64 + 3] = 1; /* deleted */
	assert_int_equal(go_labels_decode(&mem, BASE, COOKIE, labels), 1);
}

static void another_map_at_that_address_is_not_taken_for_it(void **state)
{
	struct go_label labels[GO_LABELS_MAX];

	(void)state;
	assert_int_equal(go_labels_decode(&mem, BASE, COOKIE + (1ULL << 40), labels), -ESTALE);
	put(24, BASE); /* it grows: no labels do */
	assert_int_equal(go_labels_decode(&mem, BASE, COOKIE, labels), -ESTALE);
	assert_int_equal(go_labels_decode(&mem, BASE - 64, COOKIE, labels), -EIO);
}

static void damage_ends(void **state)
{
	struct go_label labels[GO_LABELS_MAX];

	(void)state;
	put(64 + 264, BASE + 64); /* a bucket that overflows into itself */
	assert_true(go_labels_decode(&mem, BASE, COOKIE, labels) >= 0);
	assert_true(reads < 1000);
	put(64 + 16, 1 << 24);
	assert_int_equal(go_labels_decode(&mem, BASE, COOKIE, labels), -EIO);
}

static void versions_are_read_from_their_text(void **state)
{
	struct go_layout l;

	(void)state;
	assert_int_equal(go_version_of("go1.19.8"), 0x011308);
	assert_int_equal(go_version_of("go1.22rc1"), 0x011600);
	assert_int_equal(go_version_of("devel go1.21"), 0);
	assert_int_equal(go_version_of(""), 0);
	assert_int_equal(go_layout_find(0x011308, &l), 0);
	assert_int_equal(l.g_labels, 360);
	assert_false(l.untested);
	assert_int_equal(go_layout_find(0x011701, &l), 0);
	assert_int_equal(l.g_labels, 352);
	assert_true(l.untested);
	assert_int_equal(go_layout_find(0x011800, &l), -EOPNOTSUPP);
	assert_int_equal(go_layout_find(0x011100, &l), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(labels_are_those_of_the_map_by_key, fresh),
		cmocka_unit_test_setup(another_map_at_that_address_is_not_taken_for_it, fresh),
		cmocka_unit_test_setup(damage_ends, fresh),
		cmocka_unit_test(versions_are_read_from_their_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
