#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heap/process.h"
#include "run/memory/rss_look.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static bool held;
static uint32_t called;
static sigset_t blocked;

/* A process that takes as long as it is held. */
int heap_process_open(pid_t pid, int64_t budget_ns, struct heap_process **ret_process,
		      struct err *e)
{
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	while (__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		usleep(1000);
	return err_set(e, -EACCES, "process %d may not be read", (int)pid);
}

static void meanwhile(void *ctx)
{
	assert_ptr_equal(ctx, &called);
	if (++called == 3)
		__atomic_store_n(&held, false, __ATOMIC_RELEASE);
}

static void a_look_beside_lets_the_caller_work_until_it_is_over(void **state)
{
	const struct rss_look at = { .pid = 12, .budget_ns = 1000000000, .tries = 1 };
	struct heap_census c;
	struct err e = { 0 };
	struct ledger l;

	(void)state;
	held = true;
	assert_int_equal(rss_look_beside(&at, meanwhile, &called, &l, &c, &e), -EACCES);
	assert_true(called >= 3); /* once more and again, until the thread has ended */
	assert_string_equal(e.msg, "process 12 may not be read");
	assert_true(sigismember(&blocked, SIGINT)); /* which is for the main thread */
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGINT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_beside_lets_the_caller_work_until_it_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
