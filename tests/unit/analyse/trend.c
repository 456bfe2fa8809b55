#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/trend.h"

static void rise_goes_from_the_first_value_to_the_last(void **state)
{
	struct trend t = { 0 };
	struct trend_rise r;

	trend_add(&t, 100);
	trend_add(&t, 700);
	trend_add(&t, 400);
	r = trend_rise(&t, false);
	assert_true(r.known);
	assert_int_equal(r.base, 100);
	assert_int_equal(r.last, 400);
	assert_int_equal(r.peak, 700);
}

static void values_that_are_not_known_are_left_out(void **state)
{
	struct trend t = { 0 };

	trend_add(&t, -1);
	assert_false(trend_rise(&t, false).known);
	trend_add(&t, 5);
	trend_add(&t, -1);
	assert_false(trend_rise(&t, false).known); /* one value has risen from nowhere */
	trend_add(&t, 6);
	assert_int_equal(trend_rise(&t, false).last, 6);
}

static void program_that_loads_and_then_stays_did_not_grow(void **state)
{
	struct trend t = { 0 };
	struct trend_rise r;

	for (int i = 0; i < 20; i++)
		trend_add(&t, i < 4 ? i * 1000 : 4000);
	r = trend_rise(&t, true);
	assert_true(r.known);
	assert_int_equal(r.base, 4000);
	assert_int_equal(r.last, 4000);
}

static void few_values_from_birth_say_nothing(void **state)
{
	struct trend t = { 0 };

	for (int i = 0; i < 7; i++)
		trend_add(&t, i * 1000);
	assert_false(trend_rise(&t, true).known);
	assert_true(trend_rise(&t, false).known);
	trend_add(&t, 7000);
	assert_true(trend_rise(&t, true).known);
}

static void long_series_keeps_its_quarter_and_its_ends(void **state)
{
	struct trend t = { 0 };
	struct trend_rise r;

	for (int i = 0; i <= 100000; i++)
		trend_add(&t, i);
	r = trend_rise(&t, true);
	/* To the distance of two points: 64 to 128 of them lie in the series. */
	assert_in_range(r.base, 25000 - 100000 / 64, 25000 + 100000 / 64);
	assert_int_equal(r.last, 100000);
	assert_int_equal(r.peak, 100000);
	assert_int_equal(trend_rise(&t, false).base, 0);
}

static void points_of_a_long_series_keep_their_times(void **state)
{
	struct point p[TREND_POINTS];
	struct trend t = { 0 };

	for (int i = 0; i < 1000; i++)
		trend_add(&t, 10 * i);
	assert_true(trend_points(&t, 0.5, p) > TREND_POINTS / 2 - 2);
	for (uint32_t i = 0; i < t.n; i++)
		assert_true(p[i].y == 20 * p[i].t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rise_goes_from_the_first_value_to_the_last),
		cmocka_unit_test(values_that_are_not_known_are_left_out),
		cmocka_unit_test(program_that_loads_and_then_stays_did_not_grow),
		cmocka_unit_test(few_values_from_birth_say_nothing),
		cmocka_unit_test(long_series_keeps_its_quarter_and_its_ends),
		cmocka_unit_test(points_of_a_long_series_keep_their_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
