/* A child with many threads, stopped: what that costs while it stands still grows with the threads, not with their square. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/snapshot/stop.h"

enum { THREADS = 200, PATIENCE_MS = 10000 };

static volatile uint32_t n_waits;

/* Instead of the C library's. */
int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	n_waits++;
	return (int)syscall(SYS_waitid, type, id, info, options, NULL);
}

static void *rest(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

/* Returns its PID once all of its threads are there. */
static pid_t start_child(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 64 << 10);
		for (int i = 1; i < THREADS; i++)
			if (pthread_create(&thread, &attr, rest, NULL) != 0)
				_exit(1);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		rest(NULL);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void many_threads_are_stopped_in_few_calls(void **state)
{
	pid_t pid = start_child();
	struct stopped s = { 0 };
	struct err e = { 0 };
	uint32_t n_to_stop;

	n_waits = 0;
	assert_int_equal(stop_all(pid, PATIENCE_MS, &s, &e), 0);
	n_to_stop = n_waits;
	assert_int_equal(s.n, THREADS);
	assert_int_equal(s.n_missed, 0);
	/* Each ten times a second, and once when stopping ends. */
	assert_true(n_to_stop <= THREADS * (3 + (s.stopped_ns - s.began_ns) / 100000000));
	stop_fini(&s);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Those that are stopped are reaped when they are killed, so that nobody waits for them. */
static void a_stopped_process_can_be_killed(void **state)
{
	pid_t pid = start_child();
	struct stopped s = { 0 };
	struct err e = { 0 };

	assert_int_equal(stop_all(pid, PATIENCE_MS, &s, &e), 0);
	kill(pid, SIGKILL);
	for (uint32_t i = 0; i < s.n; i++)
		while (*(volatile bool *)&s.threads[i].is_ours)
			usleep(1000);
	stop_fini(&s);
	assert_true(kill(pid, 0) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads_are_stopped_in_few_calls),
		cmocka_unit_test(a_stopped_process_can_be_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
