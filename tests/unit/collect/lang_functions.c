/*
 * Frames whose function was freed before its name could be read: named by others of the same function, also later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/stacks/lang_functions.h"

static struct dict *d;
static struct lang_functions f;
static const struct proc_id one = { .pid = 10, .start_ns = 1 }, two = { .pid = 11, .start_ns = 1 };
static module_id module;
static location_id gone;
static struct line line;

static int set_up(void **state)
{
	struct module m = { .kind = MODULE_LANG };
	struct line l = { 0 };

	(void)state;
	d = dict_new();
	assert_non_null(d);
	f = (struct lang_functions){ 0 };
	m.path = dict_string(d, "[PHP]");
	module = dict_module(d, &m);
	l.function = dict_string(d, "[gone]");
	gone = dict_location_lines(d, module, 0, &l, 1);
	line = (struct line){ .function = dict_string(d, "A::b (c.php)"),
			      .file = dict_string(d, "/c.php"),
			      .start_line = 3 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	lang_functions_free(&f);
	dict_free(d);
	return 0;
}

static location_id find(const struct proc_id *id, uint64_t key, uint32_t number, bool named)
{
	location_id found;

	const struct lang_freed frame = {
		.id = *id, .key = key, .words = { number, key }, .number = number
	};

	assert_int_equal(lang_functions_find(&f, d, &frame, module, gone, &found), named);
	return found;
}

static void is_named(location_id id, uint32_t number)
{
	const struct location *l = dict_location_get(d, id);

	assert_int_equal(l->n_lines, 1);
	assert_int_equal(l->lines[0].function.ix, line.function.ix);
	assert_int_equal(l->lines[0].file.ix, line.file.ix);
	assert_int_equal(l->lines[0].line, number);
	assert_int_equal(l->lines[0].start_line, 3);
}

static void is_gone(location_id id)
{
	const struct location *l = dict_location_get(d, id);

	assert_int_equal(l->n_lines, 1);
	assert_int_equal(l->lines[0].function.ix, dict_location_get(d, gone)->lines[0].function.ix);
	assert_int_equal(l->lines[0].line, 0);
	assert_int_equal(l->lines[0].start_line, 0);
}

static void a_function_that_was_named_names_its_copies(void **state)
{
	(void)state;
	assert_int_equal(lang_functions_learn(&f, d, &one, 77, &line), 0);
	is_named(find(&one, 77, 5, true), 5);
	assert_int_equal(find(&one, 77, 5, true).ix, find(&one, 77, 5, true).ix);
	is_gone(find(&one, 78, 5, false));
	is_gone(find(&two, 77, 5, false));
}

static void those_that_came_before_it_are_named_too(void **state)
{
	location_id five = find(&one, 77, 5, false), six = find(&one, 77, 6, false),
		    other = find(&one, 78, 5, false), elsewhere = find(&two, 77, 5, false);

	(void)state;
	is_gone(five);
	assert_int_equal(find(&one, 77, 5, false).ix, five.ix);
	assert_int_not_equal(five.ix, gone.ix);
	assert_int_equal(lang_functions_learn(&f, d, &one, 77, &line), 2);
	is_named(five, 5);
	is_named(six, 6);
	is_gone(other);
	is_gone(elsewhere);
	is_gone(gone);
	assert_int_equal(lang_functions_learn(&f, d, &one, 77, &line), 0);
}

static void they_are_looked_at_again_for_a_while(void **state)
{
	struct lang_freed again[2];

	(void)state;
	assert_int_equal(lang_functions_again(&f, again, 2), 0);
	find(&one, 77, 5, false);
	find(&two, 78, 6, false);
	for (int i = 0; i < LANG_FREED_TRIES; i++) {
		assert_int_equal(lang_functions_again(&f, again, 2), 2);
		assert_int_equal(again[0].id.pid, one.pid);
		assert_int_equal(again[0].key, 77);
		assert_int_equal(again[0].words[0], 5);
		assert_int_equal(again[1].words[1], 78);
		assert_int_equal(again[1].number, 6);
	}
	assert_int_equal(lang_functions_again(&f, again, 2), 0);
	find(&one, 79, 5, false);
	lang_functions_learn(&f, d, &one, 79, &line);
	assert_int_equal(lang_functions_again(&f, again, 2), 0);
}

static void there_is_an_end_to_what_is_kept(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 9000; i++)
		find(&one, 77, i, false);
	assert_int_equal(find(&one, 77, 9000, false).ix, gone.ix);
	assert_in_range(lang_functions_learn(&f, d, &one, 77, &line), 1000, 8999);
	is_gone(gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_function_that_was_named_names_its_copies, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(those_that_came_before_it_are_named_too, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(they_are_looked_at_again_for_a_while, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(there_is_an_end_to_what_is_kept, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
