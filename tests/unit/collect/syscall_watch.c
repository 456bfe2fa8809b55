#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/syscall_watch.h"

static void cost_is_of_one_cpu(void **state)
{
	(void)state;
	assert_true(syscalls_percent(0) == 0);
	assert_true(syscalls_percent(1e9 / SYSCALL_NS) == 100);
}

static void look_that_was_never_begun_ends_without_harm(void **state)
{
	struct syscall_watch w = { 0 };

	(void)state;
	syscall_watch_fini(&w);
	assert_int_equal(w.stats_fd, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost_is_of_one_cpu),
		cmocka_unit_test(look_that_was_never_begun_ends_without_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
