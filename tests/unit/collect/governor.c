#include "collect/governor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PAIR_NS 10000.0
#define MS      1000000ULL

static void cost_is_calls_times_price(void **state)
{
	(void)state;
	assert_float_equal(governor_percent(5000, PAIR_NS), 5.0, 1e-9);
	assert_float_equal(governor_percent(0, PAIR_NS), 0.0, 1e-9);
}

/* 5 % of 20 ms is 100 pairs of 10 µs; four times that ends the slice early. */
static void a_slice_ends_early_when_the_budget_is_passed_four_times(void **state)
{
	(void)state;
	assert_int_equal(governor_enough(PAIR_NS, 5, 20), 400);
	assert_int_equal(governor_enough(PAIR_NS, 0.001, 20), 32);
}

/* Ticks until the governor stops a run of `pairs_per_tick`, at most `max`. */
static int ticks_until_stopped(double times_budget, int max)
{
	struct governor g = { .pair_ns = PAIR_NS, .max_percent = 5 };
	uint64_t now = 1000 * MS, hits = 0;

	governor_exceeded(&g, now, hits);
	for (int i = 1; i <= max; i++) {
		now += 100 * MS;
		/* The budget is 500 pairs in 100 ms. */
		hits += (uint64_t)(times_budget * 500 * GOVERNOR_HITS_PER_PAIR);
		if (governor_exceeded(&g, now, hits))
			return i;
	}
	return 0;
}

static void a_rate_within_the_budget_is_never_stopped(void **state)
{
	(void)state;
	assert_int_equal(ticks_until_stopped(0.95, 10000), 0);
}

/* The average after t seconds at k times the budget is k(1 - e^-t): 1 at t = ln(k/(k-1)). */
static void a_rate_over_the_budget_is_stopped_in_time(void **state)
{
	(void)state;
	assert_in_range(ticks_until_stopped(2, 100), 7, 7);     /* ln 2 = 0.69 s    */
	assert_in_range(ticks_until_stopped(20, 100), 1, 1);    /* ln 20/19 = 0.05 s */
	assert_in_range(ticks_until_stopped(1.1, 100), 24, 24); /* ln 11 = 2.4 s    */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost_is_calls_times_price),
		cmocka_unit_test(a_slice_ends_early_when_the_budget_is_passed_four_times),
		cmocka_unit_test(a_rate_within_the_budget_is_never_stopped),
		cmocka_unit_test(a_rate_over_the_budget_is_stopped_in_time),
	};

	return cmocka_run_group_tests_name("collect/governor", tests, NULL, NULL);
}
