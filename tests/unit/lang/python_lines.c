/*
 * Tables of lines: what compilers of three versions made of one function, and what nobody's made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "python_fixture.h"

static struct python_process p;

/* One line a character, by instruction of 2 bytes; '.': it has none. */
static void assert_lines(enum python_lines kind, const char *hex, uint32_t first_line,
			 const char *want)
{
	uint8_t bytes[256];
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		bytes[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	pyf_init(&p);
	memcpy(p.bytes + PYF_TABLE, bytes, n);
	for (size_t i = 0; want[i]; i++) {
		struct python_table t = { .mem = &p.memory.mem,
					  .at = pyf_addr(PYF_TABLE),
					  .end = pyf_addr(PYF_TABLE) + n };
		int64_t line = python_line(kind, &t, first_line, 2 * (int64_t)i);
		char got = line == 0   ? '.'
			   : line < 0  ? '?'
			   : line < 10 ? (char)('0' + line)
				       : (char)('a' + line - 10);

		if (got != want[i])
			fail_msg("instruction %zu of %s: %c, not %c", i, hex, got, want[i]);
	}
}

/*
 * def f(x):
 *     if x:
 *         y = [a for a in (1,
 *               2, x)]
 *
 *         return (y,
 *           x(
 *           3))
 *     try:
 *         x = 1
 *     finally:
 *         x = 2
 *
 * The tables are co_lnotab of 3.8.18 and co_linetable of 3.10.13 and 3.13.0, the lines what
 * dis.findlinestarts() and co_lines() say there.
 */
static void lines_of_3_8(void **state)
{
	assert_lines(PYTHON_LNOTAB, "000104010801020002ff08030201020102ff02ff040302010802", 1,
		     "2233334433336"
		     "7876"
		     "69aaaaccccc");
}

static void lines_of_3_10(void **state)
{
	assert_lines(PYTHON_LINES_10, "04010801040108ff02030201020102ff04ff020306010e02", 1,
		     "2233334433336"
		     "7876"
		     "69aaaccccccc?");
}

static void lines_of_3_13(void **state)
{
	assert_lines(
		PYTHON_LOCATIONS,
		"8000de0708d8191ad80e0f9011f103011914f300010d15f10001191490318a51f1000119148801f0"
		"00010d15f006001112d90a0bd80a0bf303010b0df00302100ef00002090ef00603050ed80c0d8801"
		"e00c0d8901f9f213010d15f8f012000d0e8901fa",
		1,
		"122222223443333333333333333677877776"
		"69aaccc..333.ccc...?");
}

static void backwards_by_a_signed_byte(void **state)
{
	assert_lines(PYTHON_LNOTAB, "020502fd", 3, "385");
	assert_lines(PYTHON_LINES_10, "020502fd02800201", 3, "85.6?");
}

static void what_ends_early_is_no_table(void **state)
{
	assert_lines(PYTHON_LOCATIONS, "80", 5, "?");
	assert_lines(PYTHON_LOCATIONS, "f0", 5, "?");
	assert_lines(PYTHON_LOCATIONS, "f0ffff", 5, "?");
	assert_lines(PYTHON_LOCATIONS, "00", 5, "?"); /* no first byte */
	assert_lines(PYTHON_LOCATIONS, "", 5, "?");
	assert_lines(PYTHON_LINES_10, "02", 5, "?");
	assert_lines(PYTHON_LINES_10, "", 5, "?");
	assert_lines(PYTHON_LNOTAB, "02", 5, "?");
	assert_lines(PYTHON_LNOTAB, "", 5, "5"); /* one line is all it has */
	/* A number that does not end. */
	assert_lines(PYTHON_LOCATIONS, "e87f7f7f7f7f7f7f01", 5, "?");
}

static void lines_that_cannot_be_are_none(void **state)
{
	assert_lines(PYTHON_LOCATIONS, "e815", 5, "."); /* - 10 */
	assert_lines(PYTHON_LNOTAB, "0080", 5, ".");
	assert_lines(PYTHON_LINES_10, "0281", 5, ".");
}

static void long_tables_are_read_part_by_part(void **state)
{
	struct python_table t;
	uint64_t n = 20000;

	pyf_init(&p);
	for (uint64_t i = 0; i < n; i++) {
		p.bytes[0x8000 + 2 * i] = 2;
		p.bytes[0x8000 + 2 * i + 1] = 1;
		if (0x8000 + 2 * i + 1 == PYF_LEN - 1)
			n = i + 1;
	}
	t = (struct python_table){ .mem = &p.memory.mem,
				   .at = pyf_addr(0x8000),
				   .end = pyf_addr(0x8000) + 2 * n };
	assert_int_equal(python_line(PYTHON_LINES_10, &t, 1, 2 * ((int64_t)n - 1)), n + 1);
	assert_int_equal(p.memory.reads, 2 * n / sizeof(t.part));
	/* Its end is not there. */
	t = (struct python_table){ .mem = &p.memory.mem,
				   .at = pyf_addr(0x8000),
				   .end = pyf_addr(PYF_LEN + 600) };
	assert_int_equal(python_line(PYTHON_LINES_10, &t, 1, 1 << 20), -EIO);
	t = (struct python_table){ .mem = &p.memory.mem, .at = pyf_addr(0), .end = ~0ULL };
	assert_int_equal(python_line(PYTHON_LINES_10, &t, 1, 0), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_3_8),
		cmocka_unit_test(lines_of_3_10),
		cmocka_unit_test(lines_of_3_13),
		cmocka_unit_test(backwards_by_a_signed_byte),
		cmocka_unit_test(what_ends_early_is_no_table),
		cmocka_unit_test(lines_that_cannot_be_are_none),
		cmocka_unit_test(long_tables_are_read_part_by_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
