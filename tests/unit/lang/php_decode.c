/*
 * Frames of a process made of bytes: named from a sound function, and from nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "php_fixture.h"

static struct php_process p;
static struct lang_runtime rt;
static struct lang_frame frame;
static uint64_t words[2];

static int fresh(void **state)
{
	(void)state;
	phf_init(&p);
	assert_int_equal(lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, NULL), 0);
	phf_words(&p, PHF_METHOD, 12, words);
	p.memory.reads = 0;
	memset(&frame, 'x', sizeof(frame));
	return 0;
}

static enum lang_decoded decode(void)
{
	return lang_decode(&rt, &p.memory.mem, words, &frame);
}

static void a_method_has_class_file_and_line(void **state)
{
	(void)state;
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "App\\Job::run");
	assert_string_equal(frame.file, "/srv/app.php");
	assert_int_equal(frame.line, 12);
	assert_int_equal(frame.first_line, 9);
	assert_false(frame.cut);
	assert_in_range(p.memory.reads, 1, 30);
}

static void code_of_files_is_main_included_or_evaluated(void **state)
{
	(void)state;
	phf_words(&p, PHF_MAIN, 31, words);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "{main}");
	assert_int_equal(frame.line, 31);
	phf_words(&p, PHF_MAIN, 31 | MS_PHP_INCLUDED, words);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "include");
	assert_int_equal(frame.line, 31);
	phf_put(&p, PHF_MAIN, 4, 1);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "eval");
}

static void functions_of_php_have_a_name_alone(void **state)
{
	(void)state;
	phf_words(&p, PHF_INTERNAL, 0, words);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "usleep");
	assert_string_equal(frame.file, "");
	assert_int_equal(frame.line, 0);
	assert_int_equal(frame.first_line, 0);
}

/* The next request's functions lie where those of the last one did. */
static void another_function_at_its_address_is_not_taken_for_it(void **state)
{
	phf_put(&p, PHF_FILE + 8, 12345, 8); /* another file's name */
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	phf_put(&p, PHF_METHOD + 160, 8, 4); /* another line of that file */
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	phf_put(&p, PHF_METHOD + 8, phf_addr(PHF_INTERNAL_NAME), 8);
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	phf_put(&p, PHF_METHOD + 88, phf_addr(PHF_MAIN_OPS), 8);
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	phf_put(&p, PHF_METHOD, 1, 1);
	assert_int_equal(decode(), LANG_GONE);
}

static void a_function_that_is_freed_meanwhile_has_no_name(void **state)
{
	assert_int_equal(decode(), LANG_DECODED);
	for (uint64_t n = 2, all = p.memory.reads; n <= all - 5; n++) {
		fresh(state);
		p.memory.change = n;
		p.memory.change_at = PHF_METHOD + 16;
		p.memory.change_to = 0;
		assert_int_equal(decode(), LANG_GONE);
		assert_int_equal(frame.function[0], 'x');
	}
}

static void what_is_not_there_is_gone(void **state)
{
	static const uint32_t holes[] = { PHF_METHOD, PHF_METHOD_NAME, PHF_CLASS, PHF_CLASS_NAME,
					  PHF_FILE };

	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		fresh(state);
		p.memory.hole = holes[i];
		p.memory.hole_len = 16;
		assert_int_equal(decode(), LANG_GONE);
	}
	words[0] &= ~MS_FRAME_ADDR_MASK;
	assert_int_equal(decode(), LANG_GONE);
}

static void what_has_no_strings_any_more_is_gone(void **state)
{
	phf_put(&p, PHF_METHOD_NAME + 4, 7, 4);
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	phf_put(&p, PHF_METHOD_NAME + 16, 1ULL << 40, 8);
	assert_int_equal(decode(), LANG_GONE);
	fresh(state);
	phf_put(&p, PHF_CLASS + 8, 0, 8);
	assert_int_equal(decode(), LANG_GONE);
}

/* All that is read of it may still be as it was. */
static void what_has_no_users_any_more_is_gone(void **state)
{
	static const uint32_t counts[][2] = { { 1, LANG_DECODED },
					      { 3, LANG_DECODED },
					      { 0, LANG_GONE },
					      { 0xecc57150, LANG_GONE } };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		phf_put(&p, PHF_METHOD + 120, phf_addr(0x200), 8);
		phf_put(&p, 0x200, counts[i][0], 4);
		assert_int_equal(decode(), (int)counts[i][1]);
	}
	phf_put(&p, PHF_METHOD + 120, 0x1000, 8);
	assert_int_equal(decode(), LANG_GONE);
}

static void names_are_text(void **state)
{
	(void)state;
	phf_string(&p, PHF_METHOD_NAME, "z\xc3\xbc\xff\x1b[0m", 8);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "App\\Job::z\xc3\xbc\\xff\\x1b[0m");
	/* What follows the 0 in an anonymous class's name is none of it. */
	phf_string(&p, PHF_CLASS_NAME, "class@anonymous\0/srv/app.php:3$0", 31);
	phf_string(&p, PHF_METHOD_NAME, "run", 3);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(frame.function, "class@anonymous::run");
}

static void a_long_name_is_cut_and_its_method_kept(void **state)
{
	char text[800];

	(void)state;
	memset(text, 'A', sizeof(text));
	phf_string(&p, PHF_FILE, text, sizeof(text));
	phf_put(&p, PHF_CLASS + 8, phf_addr(PHF_FILE), 8);
	phf_words(&p, PHF_METHOD, 12, words);
	assert_int_equal(decode(), LANG_DECODED);
	assert_true(frame.cut);
	assert_string_equal(frame.function + strlen(frame.function) - 6, "A::run");
	assert_int_equal(strlen(frame.file), 800);
}

int main(void)
{
#if !defined(__x86_64__)
	puts("1..0 # SKIP the PHP that is made for it has code of x86-64");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_method_has_class_file_and_line, fresh),
		cmocka_unit_test_setup(code_of_files_is_main_included_or_evaluated, fresh),
		cmocka_unit_test_setup(functions_of_php_have_a_name_alone, fresh),
		cmocka_unit_test_setup(another_function_at_its_address_is_not_taken_for_it, fresh),
		cmocka_unit_test_setup(a_function_that_is_freed_meanwhile_has_no_name, fresh),
		cmocka_unit_test_setup(what_is_not_there_is_gone, fresh),
		cmocka_unit_test_setup(what_has_no_strings_any_more_is_gone, fresh),
		cmocka_unit_test_setup(what_has_no_users_any_more_is_gone, fresh),
		cmocka_unit_test_setup(names_are_text, fresh),
		cmocka_unit_test_setup(a_long_name_is_cut_and_its_method_kept, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
