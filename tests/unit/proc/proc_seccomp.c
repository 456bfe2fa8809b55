/* Filters that this process gives itself, in a child. */
#include "proc/proc_seccomp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* One more that allows everything. */
static int add_filter(void)
{
	struct sock_filter allow = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	struct sock_fprog program = { 1, &allow };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0
		       ? -1
		       : 0;
}

/* 0: filters are counted. */
static int work(void)
{
	uint32_t before, now;

	proc_seccomp(getpid(), getpid(), &before);
	if (proc_seccomp_least(getpid()) != before || add_filter() < 0 || add_filter() < 0)
		return 2;
	if (proc_seccomp(getpid(), getpid(), &now) != SECCOMP_MODE_FILTER)
		return 3;
	/* Before 5.9 the kernel does not count them. */
	return (now == before + 2 || now == 1) && proc_seccomp_least(getpid()) == now ? 0 : 4;
}

static void filters_of_a_thread_and_of_all_are_counted(void **state)
{
	pid_t kid = fork();
	int status;

	(void)state;
	if (kid == 0)
		_exit(work());
	assert_int_equal(waitpid(kid, &status, 0), kid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void who_is_not_there_is_under_none(void **state)
{
	uint32_t filters = 7;

	(void)state;
	assert_int_equal(proc_seccomp(0x7fffffff, 0x7fffffff, &filters), 0);
	assert_int_equal(filters, 0);
	assert_int_equal(proc_seccomp_least(0x7fffffff), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_of_a_thread_and_of_all_are_counted),
		cmocka_unit_test(who_is_not_there_is_under_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
