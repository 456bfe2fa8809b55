#include "collect/overhead/governor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PAIR_NS 10000.0

static void cost_is_calls_times_price(void **state)
{
	(void)state;
	assert_float_equal(governor_percent(5000, PAIR_NS), 5.0, 1e-9);
	assert_float_equal(governor_percent(0, PAIR_NS), 0.0, 1e-9);
}

/* 5 % of 20 ms is 100 pairs of 10 µs; four times that ends the burst early. */
static void a_burst_ends_early_when_the_budget_is_passed_four_times(void **state)
{
	(void)state;
	assert_int_equal(governor_enough(PAIR_NS, 5, 20), 400);
	assert_int_equal(governor_enough(PAIR_NS, 0.001, 20), 32);
}

/* Bursts of any cost, one after the other as soon as it may begin: what they cost in any stretch
 * of time is the budget's share of it and one burst, and what single ones cost beyond theirs. */
static void bursts_keep_to_the_budget_in_every_stretch_of_time(void **state)
{
	static const double costs[] = { 5e6, 1e6, 0, 5e6, 12e6, 3e6, 5e6, 0.1e6 };
	const double share = 0.05, burst = 5e6;
	uint64_t begun[400];
	double spent[400];
	struct pacer p;
	uint64_t now = 1000;

	(void)state;
	pacer_init(&p, share * 100, burst, now);
	for (int i = 0; i < 400; i++) {
		uint64_t due = pacer_due_ns(&p);

		now = due > now ? due : now;
		begun[i] = now;
		spent[i] = costs[i % 8];
		now += 6000000;
		pacer_spend(&p, now, spent[i]);
	}
	for (int i = 0; i < 400; i++) {
		double sum = 0;

		for (int j = i; j < 400; j++) {
			double over = spent[j] > burst ? spent[j] - burst : 0;

			sum += spent[j];
			/* The last one of the stretch may pass its bound; those before were waited for. */
			assert_true(sum <= share * (double)(begun[j] + 6000000 - begun[i]) + burst +
						   over + 1);
		}
	}
	assert_true(p.spent_ns > 0.9 * share * (double)(now - 1000));
}

static void the_first_burst_begins_at_once_and_a_dear_one_is_waited_for(void **state)
{
	struct pacer p;

	(void)state;
	pacer_init(&p, 5, 5e6, 7000);
	assert_int_equal(pacer_due_ns(&p), 7000);
	pacer_spend(&p, 7000, 5e6);
	assert_int_equal(pacer_due_ns(&p), 7000 + 100000000);
	/* Time that passes without bursts is no credit for more than one. */
	pacer_spend(&p, 7000 + 3600000000000ULL, 5e6);
	assert_int_equal(pacer_due_ns(&p), 7000 + 3600000000000ULL + 100000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost_is_calls_times_price),
		cmocka_unit_test(a_burst_ends_early_when_the_budget_is_passed_four_times),
		cmocka_unit_test(bursts_keep_to_the_budget_in_every_stretch_of_time),
		cmocka_unit_test(the_first_burst_begins_at_once_and_a_dear_one_is_waited_for),
	};

	return cmocka_run_group_tests_name("collect/governor", tests, NULL, NULL);
}
