/* Lines of sources too large to be counted for each place, in a process of which only a source is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lang/v8.h"

enum {
	CHARS = 400000,
	TEXT = 40,
	BASE = 0x10000,
	MAP = BASE,
	SCRIPT = BASE + 0x100,
	SOURCE = BASE + 0x1000
};

static struct {
	uint8_t bytes[0x1010 + 2 * CHARS];
	uint64_t read;
	uint32_t pages;
} it;

static bool read_it(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < BASE || addr - BASE > sizeof(it.bytes) || len > sizeof(it.bytes) - (addr - BASE))
		return false;
	it.read += len;
	it.pages++;
	memcpy(buf, it.bytes + (addr - BASE), len);
	return true;
}

static void put(uint64_t addr, uint64_t word, size_t len)
{
	memcpy(it.bytes + (addr - BASE), &word, len);
}

static const struct lang_memory mem = { read_it, NULL };
static const struct v8_rt rt = { .map_type = 12,
				 .script_source = 8,
				 .script_name = 16,
				 .script_lines = 56,
				 .array_length = 8,
				 .array_data = 16,
				 .type_array = 175 };
static const struct v8_reader r = { .rt = &rt, .mem = &mem };

/* Lines of `line` characters, and the same read by who looks at each character. */
static void make(uint32_t line, bool two_bytes, const char *end)
{
	memset(&it, 0, sizeof(it));
	put(MAP, MAP + 1, 8);
	put(MAP + 12, two_bytes ? TEXT - 8 : TEXT, 2);
	put(SCRIPT, MAP + 1, 8);
	put(SCRIPT + 8, SOURCE + 1, 8);
	put(SOURCE, MAP + 1, 8);
	put(SOURCE + 12, CHARS, 4);
	for (uint32_t i = 0; i < CHARS; i++) {
		uint32_t k = i % line;
		uint64_t c = k + strlen(end) >= line ? (uint8_t)end[k + strlen(end) - line] : 'x';

		put(SOURCE + 16 + ((uint64_t)i << two_bytes), c, 1);
	}
}

static void check_lines(uint32_t line)
{
	static const uint32_t at[] = {
		0, 99, 65535, 65536, 65537, 131071, 131072, 399999, 200000, 5
	};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		assert_int_equal(v8_line(&r, SCRIPT + 1, at[i]), at[i] / line + 1);
}

static void a_large_source_is_counted_once(void **state)
{
	(void)state;
	make(64, false, "\n");
	check_lines(64);
	it.read = 0;
	assert_int_equal(v8_line(&r, SCRIPT + 1, 399999), 399999 / 64 + 1);
	assert_in_range(it.read, 1, 70000);
}

static void ends_of_two_characters_are_one(void **state)
{
	(void)state;
	/* 13 does not divide 65536: some are there between two parts. */
	make(13, false, "\r\n");
	check_lines(13);
	make(77, true, "\r\n");
	check_lines(77);
}

static void another_source_in_its_place_is_counted_anew(void **state)
{
	(void)state;
	make(64, false, "\n");
	check_lines(64);
	make(63, false, "\n");
	check_lines(63);
	/* More of them than are remembered. */
	for (uint32_t line = 40; line < 80; line++) {
		make(line, line & 1, "\n");
		check_lines(line);
	}
}

static void a_page_is_read_once_until_it_is_forgotten(void **state)
{
	static struct v8_pages pages;
	uint64_t word;

	(void)state;
	make(64, false, "\n");
	v8_pages_open(&pages, &mem);
	for (uint64_t at = SOURCE; at < SOURCE + 900; at += 4)
		assert_true(lang_read(&pages.mem, at, &word, 8));
	assert_int_equal(it.pages, 1);
	put(SCRIPT, 7, 8);
	assert_true(lang_read(&pages.mem, SCRIPT, &word, 8));
	put(SCRIPT, 8, 8);
	assert_true(lang_read(&pages.mem, SCRIPT, &word, 8));
	assert_int_equal(word, 7);
	v8_pages_forget(&pages);
	assert_true(lang_read(&pages.mem, SCRIPT, &word, 8));
	assert_int_equal(word, 8);
	/* Beside what is not mapped, and across two pages. */
	assert_true(lang_read(&pages.mem, BASE + sizeof(it.bytes) - 8, &word, 8));
	assert_false(lang_read(&pages.mem, BASE + sizeof(it.bytes) - 7, &word, 8));
	assert_false(lang_read(&pages.mem, UINT64_MAX - 3, &word, 8));
	put(SOURCE + 1020, 0x1122334455667788, 8);
	v8_pages_forget(&pages);
	assert_true(lang_read(&pages.mem, SOURCE + 1020, &word, 8));
	assert_true(word == 0x1122334455667788);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_source_is_counted_once),
		cmocka_unit_test(ends_of_two_characters_are_one),
		cmocka_unit_test(another_source_in_its_place_is_counted_anew),
		cmocka_unit_test(a_page_is_read_once_until_it_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
