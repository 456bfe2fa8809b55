#include "analyse/run_delays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_longest_come_first_and_ties_by_process(void **state)
{
	struct run_delay_row rows[] = {
		{ .pid = 5, .by_pid = 8, .ns = 10 },
		{ .pid = 5, .by_pid = 7, .ns = 10 },
		{ .pid = 4, .by_pid = 9, .ns = 10 },
		{ .pid = 6, .by_pid = 1, .ns = 11 },
	};

	(void)state;
	assert_int_equal(run_delays_rank(rows, 4, 3), 3);
	assert_int_equal(rows[0].pid, 6);
	assert_int_equal(rows[1].pid, 4);
	assert_int_equal(rows[2].by_pid, 7);
	assert_int_equal(run_delays_rank(rows, 0, 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_come_first_and_ties_by_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
