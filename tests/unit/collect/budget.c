#include "collect/overhead/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LIMIT 5.0

static struct budget with(double fixed, double allocs, double looks)
{
	return (struct budget){ LIMIT, fixed, allocs, looks };
}

static void each_may_have_what_the_others_leave(void **state)
{
	struct budget b = with(1, 0, 0);

	(void)state;
	assert_float_equal(budget_for_allocs(&b), 4, 1e-9);
	assert_float_equal(budget_for_stack_samples(&b), 4, 1e-9);
	b = with(1, 3, 0.5);
	assert_float_equal(budget_for_allocs(&b), 3.5, 1e-9);
	assert_float_equal(budget_for_stack_samples(&b), 2, 1e-9); /* half of 4: 1 would be less */
}

static void both_at_their_most_make_the_limit(void **state)
{
	struct budget b = with(1.5, 100, 100);

	(void)state;
	assert_float_equal(budget_for_allocs(&b) + budget_for_stack_samples(&b) + b.fixed, LIMIT,
			   1e-9);
	assert_float_equal(budget_for_allocs(&b), budget_for_stack_samples(&b), 1e-9);
}

/* Whoever takes all that it may have, round by round, from whatever beginning: the sum comes to the limit. */
static void taking_turns_they_come_to_the_limit(void **state)
{
	static const double wants[][2] = { { 100, 100 }, { 100, 0.3 }, { 0.3, 100 }, { 2.1, 1.8 } };

	(void)state;
	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		struct budget b = with(1, 5, 5);
		double want, sum;

		for (int round = 0; round < 50; round++) {
			double allocs = budget_for_allocs(&b), looks = budget_for_stack_samples(&b);

			b.allocs = wants[i][0] < allocs ? wants[i][0] : allocs;
			b.looks = wants[i][1] < looks ? wants[i][1] : looks;
		}
		want = wants[i][0] + wants[i][1];
		sum = b.allocs + b.looks;
		assert_float_equal(sum, want < 4 ? want : 4, 1e-6);
	}
}

static void some_rest_there_is_whatever_the_others_cost(void **state)
{
	struct budget b = with(30, 9, 9);

	(void)state;
	assert_float_equal(budget_for_allocs(&b) + budget_for_stack_samples(&b),
			   BUDGET_REST_LEAST * LIMIT, 1e-9);
	b.looks = 0;
	assert_float_equal(budget_for_allocs(&b), BUDGET_REST_LEAST * LIMIT, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_may_have_what_the_others_leave),
		cmocka_unit_test(both_at_their_most_make_the_limit),
		cmocka_unit_test(taking_turns_they_come_to_the_limit),
		cmocka_unit_test(some_rest_there_is_whatever_the_others_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
