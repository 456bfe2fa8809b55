/*
 * What threads do when a run ends: each nanosecond since they were first seen is in one of three sums,
 * and open waits are in the profile with the stack at which they began.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/sources.h"
#include "collect/stream/ingest_wire.h"

#define SEC 1000000000ULL
#define US  1000ULL

struct fixture {
	struct dict *d;
	struct proc_table *procs;
	struct profile *offcpu;
	struct ingest *in;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];

	f->d = dict_new();
	f->procs = proc_table_new(f->d);
	f->offcpu = profile_new(f->d, row->types, row->n_types);
	f->in = ingest_new(f->d, f->procs, &(struct ingest_profiles){ .offcpu = f->offcpu }, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ingest_free(f->in);
	profile_free(f->offcpu);
	proc_table_free(f->procs);
	dict_free(f->d);
	free(f);
	return 0;
}

/* First seen at 1 s, in its present state since 4 s, of which 3 s are in its sums. */
static struct ms_thread thread_in(enum ms_run_state state)
{
	return (struct ms_thread){
		.proc = { .start_ns = 1, .tgid = 4000000, .exec_id = 1 },
		.first_ns = 1 * SEC,
		.since_ns = 4 * SEC,
		.oncpu_ns = 1 * SEC,
		.blocked_ns = 1500000 * US,
		.runnable_ns = 500000 * US,
		.state = (uint8_t)state,
	};
}

static struct ingest_times times_of(struct fixture *f, const struct ms_thread *t, uint64_t end_ns)
{
	struct ingest_stats stats;

	assert_int_equal(ingest_thread(f->in, 4000000, t, end_ns), 0);
	ingest_stats(f->in, &stats);
	return stats.times;
}

static void every_nanosecond_of_a_thread_is_in_one_sum(void **state)
{
	static const enum ms_run_state states[] = { MS_RUN_ON_CPU, MS_RUN_BLOCKED, MS_RUN_RUNNABLE,
						    MS_RUN_GONE };
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(states) / sizeof(*states); i++) {
		struct ms_thread t = thread_in(states[i]);
		struct ingest_times sum = times_of(f, &t, 9 * SEC);

		assert_int_equal(sum.threads, i + 1);
		assert_int_equal(sum.oncpu_ns + sum.blocked_ns + sum.runnable_ns, sum.wall_ns);
	}
}

static void a_state_goes_on_until_the_end_of_the_run(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_ON_CPU);
	struct ingest_times sum = times_of(f, &t, 9 * SEC);

	assert_int_equal(sum.oncpu_ns, 6 * SEC);
	assert_int_equal(sum.wall_ns, 8 * SEC);
	assert_int_equal(profile_n_samples(f->offcpu), 0);
}

static void a_thread_that_has_ended_has_nothing_open(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_GONE);
	struct ingest_times sum = times_of(f, &t, 9 * SEC);

	assert_int_equal(sum.wall_ns, 3 * SEC);
	assert_int_equal(profile_n_samples(f->offcpu), 0);
}

static void a_thread_that_was_woken_is_blocked_until_then_and_runnable_since(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_BLOCKED);
	struct ingest_times sum;

	t.wake_ns = 6 * SEC;
	sum = times_of(f, &t, 9 * SEC);
	assert_int_equal(sum.blocked_ns, 1500000 * US + 2 * SEC);
	assert_int_equal(sum.runnable_ns, 500000 * US + 3 * SEC);
	assert_int_equal(profile_total(f->offcpu, 0), 1);
	assert_int_equal(profile_total(f->offcpu, 1), 2 * SEC);
	assert_int_equal(profile_total(f->offcpu, 2), 1);
	assert_int_equal(profile_total(f->offcpu, 3), 3 * SEC);
}

static void a_wake_after_the_end_leaves_all_of_the_wait_blocked(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_BLOCKED);

	t.wake_ns = 10 * SEC;
	times_of(f, &t, 9 * SEC);
	assert_int_equal(profile_total(f->offcpu, 1), 5 * SEC);
	assert_int_equal(profile_total(f->offcpu, 3), 0);
}

static void time_that_memscope_held_a_command_is_in_no_sum_but_its_own(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_HELD);
	struct ingest_times sum;

	t.held_ns = 0;
	sum = times_of(f, &t, 9 * SEC);
	assert_int_equal(sum.held_ns, 5 * SEC);
	assert_int_equal(sum.wall_ns, 3 * SEC);
	assert_int_equal(sum.oncpu_ns + sum.blocked_ns + sum.runnable_ns, sum.wall_ns);
	assert_int_equal(profile_n_samples(f->offcpu), 0);
}

static void a_switch_after_the_end_takes_nothing_away(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_BLOCKED);
	struct ingest_times sum = times_of(f, &t, 3 * SEC);

	assert_int_equal(sum.wall_ns, 3 * SEC);
	assert_int_equal(profile_n_samples(f->offcpu), 0);
}

static void waits_beyond_the_bounds_are_in_the_times_and_in_no_stack(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_BLOCKED);
	struct ingest_times sum;

	ingest_waits(f->in, 6 * SEC, 0);
	sum = times_of(f, &t, 9 * SEC);
	assert_int_equal(sum.left_out, 1);
	assert_int_equal(sum.left_out_ns, 5 * SEC);
	assert_int_equal(sum.blocked_ns, 1500000 * US + 5 * SEC);
	ingest_waits(f->in, 0, 4 * SEC);
	assert_int_equal(times_of(f, &t, 9 * SEC).left_out, 2);
	assert_int_equal(profile_n_samples(f->offcpu), 0);
	/* Both ends belong to it. */
	ingest_waits(f->in, 5 * SEC, 5 * SEC);
	assert_int_equal(times_of(f, &t, 9 * SEC).left_out, 2);
	assert_int_equal(profile_total(f->offcpu, 1), 5 * SEC);
}

/* Two clocks tell when it was woken, some us apart: what is said of an open wait is never more than what
 * is said when it ends. */
static void an_open_wait_of_a_woken_thread_is_shorter_by_what_clocks_differ(void **state)
{
	struct fixture *f = *state;
	struct ms_thread t = thread_in(MS_RUN_BLOCKED);

	t.wake_ns = 6 * SEC;
	assert_int_equal(ingest_open_wait(f->in, f->offcpu, 4000000, &t, 9 * SEC), 0);
	assert_int_equal(profile_total(f->offcpu, 1), 2 * SEC - 100 * US);
	assert_int_equal(profile_total(f->offcpu, 3), 3 * SEC - 100 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_nanosecond_of_a_thread_is_in_one_sum, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_state_goes_on_until_the_end_of_the_run, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_thread_that_has_ended_has_nothing_open, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_thread_that_was_woken_is_blocked_until_then_and_runnable_since, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_wake_after_the_end_leaves_all_of_the_wait_blocked,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			time_that_memscope_held_a_command_is_in_no_sum_but_its_own, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_switch_after_the_end_takes_nothing_away, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			waits_beyond_the_bounds_are_in_the_times_and_in_no_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_open_wait_of_a_woken_thread_is_shorter_by_what_clocks_differ, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
