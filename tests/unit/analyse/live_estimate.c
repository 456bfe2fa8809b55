#include "analyse/live_estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Estimates without a group lie 10 apart, around 1,000: a jackknife's variance of 15 / 16 times the squares' sum. */
static struct live_estimate spread_out(void)
{
	struct live_estimate e = { .seen = 10, .bytes = 1000, .blocks = 10, .most = 1e6 };

	for (int g = 0; g < LIVE_GROUPS; g++)
		e.without[g] = 1000 + 10 * (g - (LIVE_GROUPS - 1) / 2.0);
	return e;
}

static double variance(void)
{
	double sum = 0;

	for (int g = 0; g < LIVE_GROUPS; g++)
		sum += pow(10 * (g - (LIVE_GROUPS - 1) / 2.0), 2);
	return sum * (LIVE_GROUPS - 1) / LIVE_GROUPS;
}

static void interval_is_students_of_what_groups_differ_by(void **state)
{
	struct live_estimate e = spread_out();
	struct interval i = live_interval(&e);
	double half = 2.131 * sqrt(variance());

	assert_true(fabs(i.high - 1000 - half) < 1e-6 && fabs(1000 - i.low - half) < 1e-6);
	e.model = variance();
	i = live_interval(&e);
	assert_true(fabs(i.high - 1000 - half * sqrt(2)) < 1e-6);
	e.most = 1010;
	assert_true(live_interval(&e).high == 1010);
	(void)state;
}

static void squares_of_a_profiles_errors_add_up_to_the_same_variance(void **state)
{
	struct live_estimate e = spread_out();
	struct value_error blocks, bytes;
	double sum = 0;

	live_errors(&e, &blocks, &bytes);
	for (int g = 0; g < LIVE_GROUPS; g++)
		sum += bytes.group[g] * bytes.group[g];
	assert_true(fabs(sum - variance()) < 1e-6 * sum);
	assert_true(fabs(blocks.group[0] * 100 - bytes.group[0]) < 1e-9);
	(void)state;
}

static void of_two_together_bytes_and_what_they_vary_by_add_up(void **state)
{
	struct live_estimate e = spread_out(), more = spread_out();

	live_estimate_merge(&e, &more);
	assert_true(e.bytes == 2000 && e.seen == 20 && e.without[3] == 2 * more.without[3]);
	(void)state;
}

/* Where all that is in use of its classes is the row's, all groups agree at the end; on the way there they did not. */
static void a_way_has_the_chance_of_what_was_seen_though_its_end_is_known(void **state)
{
	struct live_estimate e = { .seen = 10, .bytes = 1000, .most = 1000, .v = 100 * 100 };
	double low2, high2;

	for (int g = 0; g < LIVE_GROUPS; g++)
		e.without[g] = 1000;
	live_walk_error(&e, &low2, &high2);
	assert_true(fabs(sqrt(low2) - 196) < 1e-6 && fabs(sqrt(high2) - 196) < 1e-6);
	e = spread_out();
	live_walk_error(&e, &low2, &high2);
	assert_true(fabs(sqrt(low2) - 2.131 * sqrt(variance())) < 1e-6);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interval_is_students_of_what_groups_differ_by),
		cmocka_unit_test(squares_of_a_profiles_errors_add_up_to_the_same_variance),
		cmocka_unit_test(of_two_together_bytes_and_what_they_vary_by_add_up),
		cmocka_unit_test(a_way_has_the_chance_of_what_was_seen_though_its_end_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
