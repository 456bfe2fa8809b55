/* CPU time of processes, beside what they have spent. Without perf events there is nothing to test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/overhead/process_times.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void spend(uint64_t ns)
{
	uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

static void what_a_process_has_spent_since_it_was_added_is_read(void **state)
{
	_cleanup_(process_times_freep) struct process_times *t = process_times_new();
	struct process_time row = { 0 };

	process_times_add(t, getpid());
	spend(3000000);
	assert_int_equal(process_times_read(t, &row, 1), 1);
	assert_int_equal(row.pid, getpid());
	assert_true(row.cpu_ns >= 2900000); /* its clock is not quite that of the event */
	(void)state;
}

static void one_that_sleeps_spends_nothing(void **state)
{
	_cleanup_(process_times_freep) struct process_times *t = process_times_new();
	struct process_time row[2] = { 0 };
	pid_t child = fork();

	if (!child)
		for (;;)
			pause();
	process_times_add(t, child);
	process_times_read(t, row, 1);
	spend(2000000);
	process_times_read(t, row + 1, 1);
	/* It may not have come to its pause() before; that takes less than what was spent here. */
	assert_true(row[1].cpu_ns - row[0].cpu_ns < 2000000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	(void)state;
}

static void one_that_has_ended_is_read_twice_more(void **state)
{
	_cleanup_(process_times_freep) struct process_times *t = process_times_new();
	struct process_time before = { 0 }, after = { 0 };
	pid_t child = fork();

	if (!child)
		for (;;)
			;
	process_times_add(t, child);
	while (before.cpu_ns < 1000000)
		process_times_read(t, &before, 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	process_times_end(t, child);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(process_times_read(t, &after, 1), 1);
		assert_int_equal(after.pid, child);
		assert_true(after.cpu_ns >= before.cpu_ns);
	}
	assert_int_equal(process_times_read(t, &after, 1), 0);
	process_times_add(t, child); /* there is no such process */
	assert_int_equal(process_times_read(t, &after, 1), 0);
	(void)state;
}

static void *spend_some(void *arg)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 4000000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
	return arg;
}

/* Of each as much as it has spent: a thread that was there, one that is made later, and none of a child's. */
static void threads_that_are_made_later_count_and_children_do_not(void **state)
{
	_cleanup_(process_times_freep) struct process_times *t = process_times_new();
	struct process_time row = { 0 };
	uint64_t from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t thread;
	pid_t child;

	process_times_add(t, getpid());
	assert_int_equal(pthread_create(&thread, NULL, spend_some, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(process_times_read(t, &row, 1), 1);
	assert_true(row.cpu_ns >= 4000000);
	child = fork();
	if (!child) {
		spend(200000000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	process_times_read(t, &row, 1);
	/* What a hypervisor has stolen is in the one and not in the other. */
	assert_true(row.cpu_ns < clock_ns(CLOCK_PROCESS_CPUTIME_ID) - from + 100000000);
	(void)state;
}

static void no_more_are_read_than_there_is_room_for(void **state)
{
	_cleanup_(process_times_freep) struct process_times *t = process_times_new();
	struct process_time rows[2];

	assert_int_equal(process_times_read(t, rows, 2), 0);
	process_times_add(t, getpid());
	process_times_add(t, getpid());
	assert_int_equal(process_times_read(t, rows, 2), 1);
	process_times_add(t, getppid());
	assert_int_equal(process_times_read(t, rows, 1), 1);
	(void)state;
}

int main(void)
{
	_cleanup_(process_times_freep) struct process_times *t = process_times_new();
	struct process_time row;

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_process_has_spent_since_it_was_added_is_read),
		cmocka_unit_test(one_that_sleeps_spends_nothing),
		cmocka_unit_test(one_that_has_ended_is_read_twice_more),
		cmocka_unit_test(threads_that_are_made_later_count_and_children_do_not),
		cmocka_unit_test(no_more_are_read_than_there_is_room_for),
	};

	process_times_add(t, getpid());
	if (!process_times_read(t, &row, 1)) {
		print_message("skipped: perf events are not permitted\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
