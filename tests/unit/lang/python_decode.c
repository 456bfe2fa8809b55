/*
 * Frames of a process made of bytes: named from a sound code object, and from nothing else.
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
static struct lang_runtime rt;
static struct lang_frame frame;
static uint64_t words[2];

static int fresh(void **state)
{
	struct err e;

	(void)state;
	pyf_init(&p);
	pyf_words(0, words);
	assert_int_equal(lang_runtime_find(&p.runtime_at, &p.libc_at, &p.memory.mem, &rt, &e), 0);
	p.memory.reads = 0;
	memset(&frame, 'x', sizeof(frame));
	return 0;
}

static enum lang_decoded decode(void)
{
	return lang_decode(&rt, &p.memory.mem, words, &frame);
}

static uint32_t line_at(int64_t at)
{
	pyf_words(at, words);
	assert_int_equal(decode(), LANG_DECODED);
	return frame.line;
}

static void a_frame_has_function_file_and_line(void **state)
{
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "C.f");
	assert_string_equal(frame.file, "/a/b.py");
	assert_int_equal(frame.first_line, PYF_FIRST_LINE);
	assert_false(frame.cut);
	assert_in_range(p.memory.reads, 1, 6);
}

static void its_line_is_that_of_the_instruction(void **state)
{
	assert_int_equal(line_at(0), PYF_FIRST_LINE + 2);
	assert_int_equal(line_at(2), PYF_FIRST_LINE + 2);
	assert_int_equal(line_at(4), PYF_FIRST_LINE + 3);
	assert_int_equal(line_at(9), PYF_FIRST_LINE + 3);
	assert_int_equal(line_at(10), 0); /* it has none */
	assert_int_equal(line_at(12), PYF_FIRST_LINE);
	assert_int_equal(line_at(27), PYF_FIRST_LINE);
	/* Before the first instruction it is the function's, behind the last and elsewhere not known. */
	assert_int_equal(line_at(-2), PYF_FIRST_LINE);
	assert_int_equal(line_at(28), 0);
	assert_int_equal(line_at(-4), 0);
	assert_int_equal(line_at((int64_t)MS_LANG_NO_INSTR - PYF_BYTECODE), 0);
}

static void another_object_at_its_address_is_not_taken_for_it(void **state)
{
	pyf_put(&p, PYF_CODE + 68, PYF_FIRST_LINE + 1, 4);
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	pyf_put(&p, PYF_CODE + 120, pyf_addr(PYF_QUALNAME), 8);
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	pyf_put(&p, PYF_CODE + 136, pyf_addr(PYF_TABLE) + 8, 8);
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	pyf_put(&p, PYF_CODE + 8, pyf_addr(PYF_TYPE) + 8, 8);
	assert_int_equal(decode(), LANG_GONE);
	assert_int_equal(frame.function[0], 'x'); /* untouched */
}

static void an_object_that_changes_meanwhile_is_gone(void **state)
{
	uint64_t n;

	decode();
	n = p.memory.reads;
	assert_in_range(n, 4, 8);
	/* At whichever read: either what was there before, or nothing. */
	for (uint64_t i = 1; i <= n; i++) {
		fresh(state);
		p.memory.change = i;
		p.memory.change_at = PYF_CODE + 128;
		p.memory.change_to = pyf_addr(PYF_FILE);
		if (decode() == LANG_DECODED) {
			assert_int_equal(i, 1);
			assert_string_equal(frame.function, "/a/b.py");
		}
	}
}

static void what_cannot_be_read_is_gone(void **state)
{
	static const uint32_t holes[] = { PYF_CODE + 100, PYF_QUALNAME + 40, PYF_FILE + 16,
					  PYF_TABLE + 16, PYF_TABLE + 34 };

	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		fresh(state);
		p.memory.hole = holes[i];
		p.memory.hole_len = 1;
		assert_int_equal(decode(), LANG_GONE);
	}
	fresh(state);
	words[0] &= ~MS_FRAME_ADDR_MASK;
	assert_int_equal(decode(), LANG_GONE);
}

static void names_at_the_end_of_what_is_mapped_are_read(void **state)
{
	p.memory.hole = PYF_QUALNAME + 43;
	p.memory.hole_len = 0x100;
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "C.f");
}

static void names_that_are_no_strings_are_damage(void **state)
{
	pyf_put(&p, PYF_QUALNAME + 32, 0, 4);
	assert_int_equal(decode(), LANG_DAMAGED);
	fresh(state);
	pyf_put(&p, PYF_QUALNAME + 40, 0xff, 1); /* of 7 bits, it says */
	assert_int_equal(decode(), LANG_DAMAGED);
	fresh(state);
	pyf_put(&p, PYF_FILE + 16, ~0ULL, 8);
	assert_int_equal(decode(), LANG_DAMAGED);
	fresh(state);
	pyf_put(&p, PYF_TABLE + 16, 1ULL << 40, 8);
	assert_int_equal(decode(), LANG_DAMAGED);
}

static void a_damaged_table_has_no_lines(void **state)
{
	p.bytes[PYF_TABLE + 32] &= 0x7f;
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "C.f");
	assert_int_equal(frame.line, 0);
}

static void names_that_are_too_long_are_cut_and_said_to_be(void **state)
{
	uint8_t text[2000];

	memset(text, 'a', sizeof(text));
	pyf_put(&p, PYF_CODE + 128, pyf_addr(0x9000), 8);
	pyf_text(&p, 0x9000, text, sizeof(text), 1, true);
	assert_int_equal(decode(), LANG_DECODED);
	assert_true(frame.cut);
	assert_int_equal(strlen(frame.function), LANG_NAME_MAX - 1);
	assert_string_equal(frame.file, "/a/b.py");
}

static void a_runtime_of_no_language_has_no_frames(void **state)
{
	rt.lang = MS_LANG_NONE;
	assert_int_equal(decode(), LANG_DAMAGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_frame_has_function_file_and_line, fresh),
		cmocka_unit_test_setup(its_line_is_that_of_the_instruction, fresh),
		cmocka_unit_test_setup(another_object_at_its_address_is_not_taken_for_it, fresh),
		cmocka_unit_test_setup(an_object_that_changes_meanwhile_is_gone, fresh),
		cmocka_unit_test_setup(what_cannot_be_read_is_gone, fresh),
		cmocka_unit_test_setup(names_at_the_end_of_what_is_mapped_are_read, fresh),
		cmocka_unit_test_setup(names_that_are_no_strings_are_damage, fresh),
		cmocka_unit_test_setup(a_damaged_table_has_no_lines, fresh),
		cmocka_unit_test_setup(names_that_are_too_long_are_cut_and_said_to_be, fresh),
		cmocka_unit_test_setup(a_runtime_of_no_language_has_no_frames, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
