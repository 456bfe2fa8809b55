#include "base/archive_claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/memscope-claim-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* Another process that has the directory, and a child of its own, until it is killed. */
static pid_t other(void)
{
	int ends[2];
	char ready;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		if (archive_claim(dir, NULL) < 0)
			_exit(1);
		if (fork() == 0) {
			sleep(2); /* it outlives its parent, and writes what that had gathered */
			_exit(0);
		}
		if (write(ends[1], "r", 1) != 1)
			_exit(1);
		pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &ready, 1), 1);
	close(ends[0]);
	return pid;
}

static void who_has_it_is_named_and_children_of_one_that_was_killed_have_nothing(void **state)
{
	pid_t pid = other();
	struct err e = { 0 };
	char who[40];

	(void)state;
	snprintf(who, sizeof(who), "(process %d)", pid);
	assert_int_equal(archive_claim(dir, &e), -EBUSY);
	assert_non_null(strstr(e.msg, who));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(archive_claim(dir, &e), 1);
}

static void whoever_has_it_may_take_it_again(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	assert_true(archive_claim(dir, NULL) >= 0); /* 0: since the test before this one */
	assert_int_equal(archive_claim(dir, NULL), 0);
	pid = fork(); /* a child is another process */
	if (pid == 0) {
		char path[80];

		snprintf(path, sizeof(path), "%s/host", dir);
		_exit(archive_claim(path, NULL) == -ENOENT ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			who_has_it_is_named_and_children_of_one_that_was_killed_have_nothing),
		cmocka_unit_test(whoever_has_it_may_take_it_again),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
