#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/duty.h"

#include <math.h>

static struct duty duty_of(double limit)
{
	return (struct duty){ .limit = limit, .shift_max = { 4, 7, 7 } };
}

/* `steps` decisions; returns how many times something changed. */
static uint32_t decide(struct duty *d, double fixed, const double full[N_DUTIES], uint32_t steps)
{
	uint32_t changes = 0;

	while (steps--)
		changes += duty_decide(d, fixed, 0, full);
	return changes;
}

static void what_fits_is_gathered_all_of_the_time(void **state)
{
	const double full[N_DUTIES] = { 0.05, 0.3, 0.1 };
	struct duty d = duty_of(1);

	(void)state;
	assert_int_equal(decide(&d, 0.3, full, 100), 0);
	for (int i = 0; i < N_DUTIES; i++)
		assert_int_equal(d.shift[i], 0);
}

static void a_flood_is_met_by_the_first_decision(void **state)
{
	const double full[N_DUTIES] = { 0.05, 9, 0.2 };
	struct duty d = duty_of(1);

	(void)state;
	assert_true(duty_decide(&d, 0.2, 0, full));
	assert_true(duty_percent(&d, full) + 0.2 <= 0.9);
	/* Only what costs much gives way. */
	assert_int_equal(d.shift[DUTY_ONCPU], 0);
	assert_int_equal(d.shift[DUTY_GROWTH], 0);
	assert_int_equal(decide(&d, 0.2, full, 1000), 0);
}

static void after_it_all_is_gathered_again_step_by_step(void **state)
{
	const double flood[N_DUTIES] = { 0.05, 9, 0.2 }, calm[N_DUTIES] = { 0.05, 0.02, 0.02 };
	struct duty d = duty_of(1);
	uint32_t shift;

	(void)state;
	duty_decide(&d, 0.2, 0, flood);
	shift = d.shift[DUTY_WAITS];
	assert_true(shift > 0);
	assert_int_equal(decide(&d, 0.2, calm, DUTY_QUIET - 1), 0);
	assert_int_equal(decide(&d, 0.2, calm, shift * DUTY_QUIET), shift);
	assert_int_equal(d.shift[DUTY_WAITS], 0);
}

/* Costs that vary by a fifth around any value: the least and the largest part that is allowed lie further apart than that. */
static void varying_costs_do_not_move_it_to_and_fro(void **state)
{
	(void)state;
	for (double mean = 0.2; mean < 60; mean *= 1.07) {
		struct duty d = duty_of(1);
		double full[N_DUTIES] = { 0.05, mean, 0.1 };
		uint32_t changes = 0;

		decide(&d, 0.2, full, 10);
		for (int i = 0; i < 2000; i++) {
			full[DUTY_WAITS] = mean * (1 + 0.2 * sin(i * 0.7));
			changes += duty_decide(&d, 0.2, 0, full);
		}
		assert_true(changes <= 2);
	}
}

static void its_own_process_comes_first_and_the_rest_is_kept_to(void **state)
{
	const double full[N_DUTIES] = { 0.4, 9, 9 };

	(void)state;
	for (double fixed = 0; fixed < 2; fixed += 0.05) {
		struct duty d = duty_of(1);

		decide(&d, fixed, full, 3);
		assert_true(duty_percent(&d, full) <= fmax(0.9 - fixed, 0.9 * DUTY_LEAST));
	}
}

static void what_slices_cost_between_them_comes_off_the_sources(void **state)
{
	const double full[N_DUTIES] = { 0, 9, 9 };

	(void)state;
	for (double floor = 0; floor < 0.2; floor += 0.02) {
		struct duty d = duty_of(1);

		for (int i = 0; i < 3; i++)
			duty_decide(&d, 0.8, floor, full);
		assert_true(floor + duty_percent(&d, full) <= 0.9 * DUTY_LEAST ||
			    (d.shift[DUTY_WAITS] == 7 && d.shift[DUTY_GROWTH] == 7));
		d = duty_of(1);
		duty_decide(&d, 0.2, floor, full);
		assert_true(floor + duty_percent(&d, full) + 0.2 <= 0.9);
	}
}

/* 512 CPUs at 19 Hz, 8 us a sample. */
static void even_samples_of_cpus_give_way_where_there_are_many(void **state)
{
	const double full[N_DUTIES] = { 512 * 19 * 8e-6 * 100, 0, 0 };
	struct duty d = duty_of(1);

	(void)state;
	decide(&d, 0.3, full, 3);
	assert_true(duty_percent(&d, full) + 0.3 <= 0.9);
	assert_true(d.shift[DUTY_ONCPU] > 0);
}

static void what_costs_little_stays_though_the_rest_is_too_much(void **state)
{
	const double full[N_DUTIES] = { 0.03, 200, 30 };
	struct duty d = duty_of(1);

	(void)state;
	decide(&d, 8, full,
	       100); /* a host without idle time: the process itself passes the limit */
	assert_int_equal(d.shift[DUTY_ONCPU], 0);
	assert_int_equal(d.shift[DUTY_WAITS], 7);
	assert_int_equal(d.shift[DUTY_GROWTH], 7);
}

static void beyond_the_least_it_does_not_go(void **state)
{
	const double full[N_DUTIES] = { 100, 1000, 1000 };
	struct duty d = duty_of(1);

	(void)state;
	decide(&d, 0.2, full, 100);
	for (int i = 0; i < N_DUTIES; i++)
		assert_int_equal(d.shift[i], d.shift_max[i]);
	d = (struct duty){ .limit = 1 }; /* nothing can be less */
	assert_int_equal(decide(&d, 0.2, full, 100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_gathered_all_of_the_time),
		cmocka_unit_test(a_flood_is_met_by_the_first_decision),
		cmocka_unit_test(after_it_all_is_gathered_again_step_by_step),
		cmocka_unit_test(varying_costs_do_not_move_it_to_and_fro),
		cmocka_unit_test(its_own_process_comes_first_and_the_rest_is_kept_to),
		cmocka_unit_test(what_slices_cost_between_them_comes_off_the_sources),
		cmocka_unit_test(even_samples_of_cpus_give_way_where_there_are_many),
		cmocka_unit_test(what_costs_little_stays_though_the_rest_is_too_much),
		cmocka_unit_test(beyond_the_least_it_does_not_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
