/*
 * Strings of every width, and what only looks like one.
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
static char text[64];
static bool cut;

static int fresh(void **state)
{
	(void)state;
	pyf_init(&p);
	rt = (struct lang_runtime){ .object_head = 16, .str_ascii = 40, .str_compact = 56 };
	strcpy(text, "before");
	return 0;
}

static int read_text(size_t room)
{
	return python_text(&rt, &p.memory.mem, pyf_addr(PYF_NAME), text, room, &cut);
}

static void every_width_becomes_utf_8(void **state)
{
	static const uint16_t two[] = { 0x6f22, 'x', 0xe9 };
	static const uint32_t four[] = { 0x10300, 0x6f22, 'y' };

	pyf_text(&p, PYF_NAME, "plain", 5, 1, true);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "plain");
	pyf_text(&p, PYF_NAME, "\xe9t\xe9", 3, 1, false);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "\xc3\xa9t\xc3\xa9");
	pyf_text(&p, PYF_NAME, two, 3, 2, false);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "\xe6\xbc\xa2x\xc3\xa9");
	pyf_text(&p, PYF_NAME, four, 3, 4, false);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "\xf0\x90\x8c\x80\xe6\xbc\xa2y");
	pyf_text(&p, PYF_NAME, "", 0, 1, true);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_false(cut);
}

static void what_controls_a_terminal_is_escaped(void **state)
{
	static const uint32_t wide[] = { 0x202e, 0xd800, 0x110000, 0xfeff, 0xffff };

	pyf_text(&p, PYF_NAME, "a\x1b[1m\n\0z\x7f\x9b", 10, 1, false);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "a\\x1b[1m\\x0a\\x00z\\x7f\\x9b");
	pyf_text(&p, PYF_NAME, wide, 5, 4, false);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "\\u202e\\ud800\\U00110000\\ufeff\\uffff");
}

static void cut_between_characters(void **state)
{
	pyf_text(&p, PYF_NAME, "ab\xe9", 3, 1, false);
	assert_int_equal(read_text(4), 0);
	assert_string_equal(text, "ab");
	assert_true(cut);
	assert_int_equal(read_text(5), 0);
	assert_false(cut);
	pyf_text(&p, PYF_NAME, "ab\x1b", 3, 1, true);
	assert_int_equal(read_text(6), 0);
	assert_string_equal(text, "ab");
	assert_true(cut);
}

static void the_state_of_other_builds_is_understood(void **state)
{
	static const int shifts[] = { 2, 8, 16 };

	for (int i = 0; i < 3; i++) {
		pyf_text(&p, PYF_NAME, "name", 4, 1, true);
		/* interned: 1 */
		pyf_put(&p, PYF_NAME + 32, 1 | (1ULL | 1 << 3 | 1 << 4) << shifts[i], 4);
		assert_int_equal(read_text(sizeof(text)), 0);
		assert_string_equal(text, "name");
	}
	/* Heads of 3.8 to 3.11. */
	rt.str_ascii = 48;
	rt.str_compact = 72;
	memcpy(p.bytes + PYF_NAME + 48, "older", 5);
	pyf_put(&p, PYF_NAME + 16, 5, 8);
	assert_int_equal(read_text(sizeof(text)), 0);
	assert_string_equal(text, "older");
}

static void long_ones_are_read_in_parts(void **state)
{
	static uint16_t wide[3000];
	static char out[8192];

	for (int i = 0; i < 3000; i++)
		wide[i] = (uint16_t)('a' + i % 26);
	pyf_text(&p, PYF_NAME, wide, 3000, 2, false);
	assert_int_equal(
		python_text(&rt, &p.memory.mem, pyf_addr(PYF_NAME), out, sizeof(out), &cut), 0);
	assert_int_equal(strlen(out), 3000);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(out[i], 'a' + i % 26);
}

static void what_is_none_is_refused(void **state)
{
	static const uint32_t states[] = {
		0, 1, 3 << 2 | 1 << 5, 7 << 2 | 1 << 5, 1 << 2, 2 << 2 | 1 << 5 | 1 << 6
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		pyf_text(&p, PYF_NAME, "x", 1, 1, true);
		pyf_put(&p, PYF_NAME + 32, states[i], 4);
		assert_int_equal(read_text(sizeof(text)), -EBADMSG);
	}
	pyf_text(&p, PYF_NAME, "x", 1, 1, true);
	pyf_put(&p, PYF_NAME + 16, 1 << 30, 8);
	assert_int_equal(read_text(sizeof(text)), -EBADMSG);
	assert_int_equal(python_text(&rt, &p.memory.mem, pyf_addr(PYF_NAME) + 4, text, 64, &cut),
			 -EBADMSG);
	assert_int_equal(python_text(&rt, &p.memory.mem, 0, text, 64, &cut), -EBADMSG);
	assert_int_equal(python_text(&rt, &p.memory.mem, 4096, text, 64, &cut), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_width_becomes_utf_8, fresh),
		cmocka_unit_test_setup(what_controls_a_terminal_is_escaped, fresh),
		cmocka_unit_test_setup(cut_between_characters, fresh),
		cmocka_unit_test_setup(the_state_of_other_builds_is_understood, fresh),
		cmocka_unit_test_setup(long_ones_are_read_in_parts, fresh),
		cmocka_unit_test_setup(what_is_none_is_refused, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
