#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/alloc_series.h"

#include <math.h>

#define A ((stack_id){ 7 })
#define B ((stack_id){ 8 })

static const stack_id a = A, b = B;

static bool near(double got, double want)
{
	return fabs(got - want) < 1e-6 * (fabs(want) + 1);
}

static void bytes_are_counted_in_the_interval_in_which_they_were_allocated(void **state)
{
	_cleanup_(alloc_series_freep) struct alloc_series *s = alloc_series_new();
	const struct alloc_series_row *rows[2];
	const double *times;

	alloc_series_add(s, &a, 100, 0, 1);
	alloc_series_tick(s, 1);
	alloc_series_add(s, &a, 50, 1, 2);
	alloc_series_add(s, &b, 10, 1, 2);
	alloc_series_tick(s, 2);
	alloc_series_tick(s, 4);
	alloc_series_add(s, NULL, 5, 3, 4);
	alloc_series_end(s, 4.5);
	assert_int_equal(alloc_series_times(s, &times), 4);
	assert_true(times[3] == 4.5);
	assert_int_equal(alloc_series_rank(s, rows, 2), 2);
	assert_int_equal(rows[0]->stack.ix, 7);
	assert_true(near(rows[0]->bytes[0], 100) && near(rows[0]->bytes[1], 50) &&
		    near(rows[0]->bytes[2], 0));
	assert_true(near(alloc_series_other(s, rows, 1, 1), 10));
	assert_true(near(alloc_series_other(s, rows, 2, 2), 5));
	(void)state;
}

static void an_estimate_that_comes_late_is_spread_over_its_own_time(void **state)
{
	_cleanup_(alloc_series_freep) struct alloc_series *s = alloc_series_new();
	const struct alloc_series_row *row;

	alloc_series_tick(s, 1);
	alloc_series_tick(s, 2);
	alloc_series_tick(s, 3);
	alloc_series_add(s, &a, 300, 0.5, 3.5); /* 0.5, 1, 1 and 0.5 of 3 seconds */
	alloc_series_add(s, &a, 7, 1.2, 1.2);   /* a moment */
	alloc_series_end(s, 4);
	alloc_series_add(s, &a, 9, 4, 5); /* known when all is over */
	assert_int_equal(alloc_series_rank(s, &row, 1), 1);
	assert_true(near(row->bytes[0], 50) && near(row->bytes[1], 107));
	assert_true(near(row->bytes[2], 100) && near(row->bytes[3], 59));
	(void)state;
}

static void long_runs_keep_wider_intervals_and_every_byte(void **state)
{
	_cleanup_(alloc_series_freep) struct alloc_series *s = alloc_series_new();
	const struct alloc_series_row *row;
	const double *times;
	double sum = 0;
	uint32_t n;

	for (int i = 0; i < 5000; i++) {
		alloc_series_add(s, &a, 100, i, i + 1);
		alloc_series_tick(s, i + 1);
	}
	alloc_series_end(s, 5000);
	n = alloc_series_times(s, &times);
	assert_in_range(n, ALLOC_SERIES_TICKS / 2, ALLOC_SERIES_TICKS);
	assert_true(times[n - 1] == 5000);
	alloc_series_rank(s, &row, 1);
	for (uint32_t i = 0; i < n; i++) {
		sum += row->bytes[i];
		assert_true(near(row->bytes[i], 100 * (times[i] - (i ? times[i - 1] : 0))));
	}
	assert_true(near(sum, 500000));
	(void)state;
}

static void more_stacks_than_there_is_room_for_are_other(void **state)
{
	_cleanup_(alloc_series_freep) struct alloc_series *s = alloc_series_new();
	const struct alloc_series_row *rows[1];
	struct alloc_series_moved moved;

	for (uint32_t i = 0; i < ALLOC_SERIES_MAX + 500; i++) {
		stack_id stack = { i };

		alloc_series_add(s, &stack, i == 3 ? 77 : 1, 0, 1);
	}
	alloc_series_end(s, 1);
	assert_int_equal(alloc_series_rank(s, rows, 1), 1);
	assert_true(near(rows[0]->all, 77));
	assert_true(near(alloc_series_other(s, rows, 1, 0), ALLOC_SERIES_MAX + 500 - 1));
	moved = alloc_series_moved(s);
	assert_int_equal(moved.rows, 500);
	assert_true(near(moved.bytes, 500));
	(void)state;
}

/* A stack that comes when all rows are taken gets one, although each of its calls is as small as those of a
 * hundred thousand others that came before and go on coming; and every byte is still counted once. */
static void a_stack_that_comes_late_and_often_has_a_row(void **state)
{
	_cleanup_(alloc_series_freep) struct alloc_series *s = alloc_series_new();
	const struct alloc_series_row *rows[ALLOC_SERIES_MAX];
	const stack_id late = { 1000000 }, early = { 1000001 };
	double sum = 0, of_late = 0, of_early = 0;
	uint32_t n, t = 0;

	for (uint32_t i = 0; i < 200000; i++) {
		stack_id stack = { i % 100000 };

		alloc_series_add(s, &stack, 10, t, t + 1);
		if (i % 100 == 0) /* a hundredth of all */
			alloc_series_add(s, i < 100000 ? &early : &late, 10, t, t + 1);
		if (i % 1000 == 999)
			alloc_series_tick(s, ++t);
	}
	alloc_series_end(s, t);
	n = alloc_series_rank(s, rows, ALLOC_SERIES_MAX);
	for (uint32_t i = 0; i < n; i++) {
		if (rows[i]->stack.ix == late.ix)
			of_late = rows[i]->all;
		if (rows[i]->stack.ix == early.ix)
			of_early = rows[i]->all;
	}
	assert_true(near(of_early, 10000));
	assert_true(near(of_late, 10000));
	for (uint32_t i = 0, k = alloc_series_times(s, &(const double *){ NULL }); i < k; i++)
		sum += alloc_series_other(s, rows, 0, i);
	assert_true(near(sum, 2020000));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_counted_in_the_interval_in_which_they_were_allocated),
		cmocka_unit_test(an_estimate_that_comes_late_is_spread_over_its_own_time),
		cmocka_unit_test(long_runs_keep_wider_intervals_and_every_byte),
		cmocka_unit_test(more_stacks_than_there_is_room_for_are_other),
		cmocka_unit_test(a_stack_that_comes_late_and_often_has_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
