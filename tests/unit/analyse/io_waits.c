#include "analyse/io_waits.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static void waits_are_added_up_by_what_they_were_for(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct io_wait_row rows[4];
	stack_id load, save;

	(void)state;
	fixture_add1(&f, ";main;load", 1);
	fixture_add1(&f, ";main;save", 1);
	load = profile_sample(f.p, 0).stack;
	save = profile_sample(f.p, 1).stack;
	struct io_wait waits[] = {
		{ 2, load, 30, 3 }, { 1, load, 50, 1 }, { 2, save, 25, 1 },
		{ 2, save, 10, 2 }, { 3, save, 0, 1 },
	};

	assert_int_equal(io_waits_rank(f.d, waits, 5, rows, 4), 2);
	assert_int_equal(rows[0].object, 2);
	assert_true(rows[0].blocked_ns == 65 && rows[0].count == 6 && rows[0].function_ns == 35);
	assert_string_equal(rows[0].function, "save");
	assert_int_equal(rows[1].object, 1);
	assert_string_equal(rows[1].function, "load");
	assert_int_equal(io_waits_rank(f.d, waits, 5, rows, 1), 1);
	assert_int_equal(io_waits_rank(f.d, waits, 0, rows, 4), 0);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_added_up_by_what_they_were_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
