#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <unistd.h>

#include <cmocka.h>

#include "proc/cpu_use.h"

static const char text[] = "cpu  100 0 0 100 0 0 0 0 0 0\n"
			   "cpu0 10 1 2 30 4 5 6 7 8 9\n"
			   "cpu1 20 0 0 50 0 0 0 0 0 0\n"
			   "intr 12345\n"
			   "cpu2 1 1 1 1 1 1 1 1 1 1\n";

static void only_the_cpus_asked_for_are_added(void **state)
{
	int64_t tick_ns = 1000000000LL / sysconf(_SC_CLK_TCK);
	struct cpu_use use;
	cpu_set_t of;

	CPU_ZERO(&of);
	CPU_SET(0, &of);
	assert_true(cpu_use_parse(text, &of, &use));
	assert_int_equal(use.n, 1);
	assert_int_equal(use.busy_ns, (10 + 1 + 2 + 5 + 6 + 7) * tick_ns);
	assert_int_equal(use.idle_ns, (30 + 4) * tick_ns);
	CPU_SET(1, &of);
	assert_true(cpu_use_parse(text, &of, &use));
	assert_int_equal(use.n, 2);
	assert_int_equal(use.idle_ns, (34 + 50) * tick_ns);
}

static void what_is_not_there_is_said(void **state)
{
	struct cpu_use use;
	cpu_set_t of;

	CPU_ZERO(&of);
	CPU_SET(7, &of);
	assert_false(cpu_use_parse(text, &of, &use));
	assert_false(cpu_use_parse("", &of, &use));
	assert_false(cpu_use_parse("cpu", &of, &use));
	assert_false(cpu_use_parse("cpu7 1 2\ncpu7", &of, &use));
}

static void lists_of_cpus_are_those_of_the_kernel(void **state)
{
	cpu_set_t got, now;

	assert_true(cpu_list_parse("0-3,8,10-11", &got));
	assert_int_equal(CPU_COUNT(&got), 7);
	assert_true(CPU_ISSET(3, &got) && CPU_ISSET(8, &got) && CPU_ISSET(11, &got));
	assert_false(CPU_ISSET(9, &got));
	assert_true(cpu_list_parse("0", &got));
	assert_int_equal(CPU_COUNT(&got), 1);
	assert_false(cpu_list_parse("", &got));
	assert_false(cpu_list_parse("0-3;5", &got));
	assert_true(cpu_list_parse("0-4000000000", &got)); /* as many as there is room for */
	assert_true(cpus_online(&now));
	assert_int_equal(CPU_COUNT(&now), sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_cpus_asked_for_are_added),
		cmocka_unit_test(what_is_not_there_is_said),
		cmocka_unit_test(lists_of_cpus_are_those_of_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
