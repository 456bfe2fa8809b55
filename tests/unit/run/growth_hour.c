/* The last hour of a figure of memory: which points it has, and what is said of them. */
#include "run/serve/growth_hour.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_point_every_half_minute_and_the_last_hour_of_them(void **state)
{
	struct growth_hour g = { 0 };

	for (int t = 0; t < 2 * 3600; t++)
		growth_hour_add(&g, t, 100 << 20);
	assert_int_equal(g.n, GROWTH_POINTS);
	assert_true(g.points[g.at].t == 3600);
	assert_true(growth_hour_known(&g));
	assert_int_equal(g.shape.kind, TREND_SHAPE_FLAT);
	assert_true(growth_hour_slope(&g) == 0);
}

static void a_leak_of_a_known_rate_grows_at_that_rate(void **state)
{
	struct growth_hour g = { 0 };

	/* 64 KiB a second, with a ripple of 100 KiB. */
	for (int t = 0; t <= 1800; t += 10)
		growth_hour_add(&g, t, (50LL << 20) + 65536LL * t + (t % 20 ? 51200 : -51200));
	assert_int_equal(g.shape.kind, TREND_SHAPE_GROWING);
	/* The ripple is 1/1152 of the rise. */
	assert_true(fabs(growth_hour_slope(&g) - 65536) < 65536 / 100.0);
}

static void a_leak_that_ended_is_not_one_an_hour_later(void **state)
{
	struct growth_hour g = { 0 };
	int64_t bytes = 50 << 20;

	for (int t = 0; t < 1200; t += 30)
		growth_hour_add(&g, t, bytes += 1 << 20);
	assert_int_equal(g.shape.kind, TREND_SHAPE_GROWING);
	for (int t = 1200; t < 6000; t += 30)
		growth_hour_add(&g, t, bytes);
	assert_int_equal(g.shape.kind, TREND_SHAPE_FLAT);
}

static void few_points_and_values_that_are_not_known_say_nothing(void **state)
{
	struct growth_hour g = { 0 };

	for (int t = 0; t < 3600; t += 30)
		growth_hour_add(&g, t, -1);
	assert_int_equal(g.n, 0);
	assert_false(growth_hour_known(&g));
	for (int t = 0; t < 5; t++)
		growth_hour_add(&g, 3600 + 30 * t, 1 << 20);
	assert_int_equal(g.n, 5);
	assert_false(growth_hour_known(&g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_every_half_minute_and_the_last_hour_of_them),
		cmocka_unit_test(a_leak_of_a_known_rate_grows_at_that_rate),
		cmocka_unit_test(a_leak_that_ended_is_not_one_an_hour_later),
		cmocka_unit_test(few_points_and_values_that_are_not_known_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
