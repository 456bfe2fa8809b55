#include "analyse/burst_match.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct {
	uint32_t no, thread;
	pid_t pid;
	double weight;
} got[16];
static uint32_t n_got;

static void note(void *ctx, uint32_t no, uint32_t thread, pid_t pid, double weight)
{
	(void)ctx;
	got[n_got].no = no;
	got[n_got].thread = thread;
	got[n_got].pid = pid;
	got[n_got++].weight = weight;
}

static void settle(struct burst_match *m, uint32_t to)
{
	n_got = 0;
	assert_int_equal(burst_match_settle(m, to, note, NULL), 0);
}

static void near_to(double is, double want)
{
	if (fabs(is - want) > 1e-9 * want)
		fail_msg("%f, expected %f", is, want);
}

static void calls_stand_for_what_is_estimated_of_their_thread(void **state)
{
	_cleanup_(burst_match_freep) struct burst_match *m = burst_match_new();

	burst_match_estimated(m, 7, 600);
	burst_match_estimated(m, 8, 40);
	burst_match_seen(m, 2, 7, 70, 10);
	burst_match_seen(m, 2, 8, 80, 4);
	burst_match_estimated(m, 7, 400);
	burst_match_seen(m, 4, 7, 70, 30);
	settle(m, 4);
	assert_int_equal(n_got, 3);
	for (uint32_t i = 0; i < n_got; i++) {
		assert_int_equal(got[i].pid, got[i].thread * 10);
		near_to(got[i].weight, got[i].thread == 7 ? 1000.0 / 40 : 10);
	}
	(void)state;
}

static void later_bursts_wait_for_their_estimates(void **state)
{
	_cleanup_(burst_match_freep) struct burst_match *m = burst_match_new();

	burst_match_estimated(m, 7, 100);
	burst_match_seen(m, 2, 7, 7, 10);
	burst_match_seen(m, 4, 7, 7, 10);
	settle(m, 3);
	assert_int_equal(n_got, 1);
	near_to(got[0].weight, 10);
	burst_match_estimated(m, 7, 300);
	settle(m, 4);
	assert_int_equal(n_got, 1);
	assert_int_equal(got[0].no, 4);
	near_to(got[0].weight, 30);
	(void)state;
}

/* Threads 1 and 2 lived in bursts without returns, 3 and 4 in those with them: nothing is missing in all. */
static void threads_of_bursts_of_one_kind_are_taken_together(void **state)
{
	_cleanup_(burst_match_freep) struct burst_match *m = burst_match_new();
	double sum = 0;

	burst_match_estimated(m, 1, 100);
	burst_match_estimated(m, 2, 300);
	burst_match_seen(m, 2, 3, 9, 5);
	burst_match_seen(m, 2, 4, 9, 15);
	burst_match_estimated(m, 7, 50);
	burst_match_seen(m, 2, 7, 9, 10);
	settle(m, 2);
	for (uint32_t i = 0; i < n_got; i++) {
		near_to(got[i].weight, got[i].thread == 7 ? 5 : 20);
		sum += got[i].weight * (got[i].thread == 3 ? 5 : got[i].thread == 4 ? 15 : 10);
	}
	near_to(sum, 450);
	(void)state;
}

static void what_nobody_stands_for_goes_to_the_next_bursts(void **state)
{
	_cleanup_(burst_match_freep) struct burst_match *m = burst_match_new();

	burst_match_estimated(m, 1, 100);
	settle(m, 2);
	assert_int_equal(n_got, 0);
	burst_match_seen(m, 4, 3, 9, 10);
	settle(m, 4);
	near_to(got[0].weight, 10);
	(void)state;
}

static void a_call_stands_for_itself_at_least(void **state)
{
	_cleanup_(burst_match_freep) struct burst_match *m = burst_match_new();

	burst_match_estimated(m, 1, 2);
	burst_match_seen(m, 2, 1, 9, 10);
	settle(m, 2);
	near_to(got[0].weight, 1);
	/* … and where nothing was estimated at all. */
	burst_match_seen(m, 4, 1, 9, 10);
	settle(m, 4);
	near_to(got[0].weight, 1);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_stand_for_what_is_estimated_of_their_thread),
		cmocka_unit_test(later_bursts_wait_for_their_estimates),
		cmocka_unit_test(threads_of_bursts_of_one_kind_are_taken_together),
		cmocka_unit_test(what_nobody_stands_for_goes_to_the_next_bursts),
		cmocka_unit_test(a_call_stands_for_itself_at_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
