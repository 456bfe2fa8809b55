/*
 * What is said of a process that cannot be copied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/snapshot/copy.h"

static void zombie_has_no_memory(void **state)
{
	pid_t pid;
	struct copy *copy = NULL;
	struct err e = { 0 };
	siginfo_t info;

	(void)state;
	if (geteuid() != 0)
		skip(); /* what has ended is root's */
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(copy_take(pid, "/tmp", false, &copy, &e), -ESRCH);
	assert_non_null(strstr(e.msg, "has no memory of its own"));
	assert_null(copy);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zombie_has_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
