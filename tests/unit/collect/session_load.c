#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/session_parts.h"

static void dear_programs_are_divided_evenly(void **state)
{
	static const uint32_t costs[] = { 1, 90, 110, 1, 35, 85, 72, 40, 1 };
	uint32_t part[9], sums[2] = { 0 };

	(void)state;
	assert_int_equal(session_load_parts(costs, 9, 2, part), 2);
	for (int i = 0; i < 9; i++) {
		assert_in_range(part[i], 0, 1);
		sums[part[i]] += costs[i];
	}
	/* 435 in all, and the costliest that can be exchanged is 35. */
	assert_in_range(sums[0], 200, 235);
}

static void cheap_programs_are_not_worth_a_thread(void **state)
{
	static const uint32_t costs[] = { 1, 7, 1, 1 };
	uint32_t part[4];

	(void)state;
	assert_int_equal(session_load_parts(costs, 4, 4, part), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(part[i], 0);
}

static void there_are_no_more_parts_than_dear_programs(void **state)
{
	static const uint32_t costs[] = { 85, 1, 40, 1 };
	uint32_t part[4];

	(void)state;
	assert_int_equal(session_load_parts(costs, 4, 64, part), 2);
	assert_int_equal(part[0], 0);
	assert_int_equal(part[2], 1);
}

static void what_is_not_wanted_is_in_no_part(void **state)
{
	static const uint32_t costs[] = { 0, 85, 0, 50 };
	uint32_t part[4];

	(void)state;
	assert_int_equal(session_load_parts(costs, 4, 2, part), 2);
	assert_int_equal(part[0], UINT32_MAX);
	assert_int_equal(part[2], UINT32_MAX);
}

static void one_cpu_has_one_part(void **state)
{
	static const uint32_t costs[] = { 85, 110, 90 };
	uint32_t part[3];

	(void)state;
	assert_int_equal(session_load_parts(costs, 3, 1, part), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(part[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dear_programs_are_divided_evenly),
		cmocka_unit_test(cheap_programs_are_not_worth_a_thread),
		cmocka_unit_test(there_are_no_more_parts_than_dear_programs),
		cmocka_unit_test(what_is_not_wanted_is_in_no_part),
		cmocka_unit_test(one_cpu_has_one_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
