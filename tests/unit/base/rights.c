#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rights.h"

#define BIT(n) (1ull << (n))

static const uint64_t needed = BIT(CAP_BPF) | BIT(CAP_PERFMON);

static void rows_say_what_each_is_for(void **state)
{
	uint64_t seen = 0;

	(void)state;
	for (const struct right *r = rights; r->name; r++) {
		assert_false(seen & BIT(r->number));
		seen |= BIT(r->number);
		assert_true(r->phases != 0);
		/* What is announced as missing says what is lost. */
		assert_true(r->without ? r->without[0] : !r->needed);
	}
	assert_int_equal(seen & needed, needed);
}

static void what_is_missing_is_named(void **state)
{
	char names[256];

	(void)state;
	assert_int_equal(rights_missing(needed, true, names, sizeof(names)), 0);
	assert_string_equal(names, "");
	assert_int_equal(rights_missing(0, true, names, sizeof(names)), 2);
	assert_string_equal(names, "CAP_BPF, CAP_PERFMON");
	assert_true(rights_missing(needed, false, names, sizeof(names)) > 0);
	assert_non_null(strstr(names, "CAP_SYSLOG"));
}

static void sys_admin_has_bpf_and_perfmon_in_it_but_not_ptrace(void **state)
{
	char names[256];

	(void)state;
	assert_int_equal(rights_missing(BIT(CAP_SYS_ADMIN), true, names, sizeof(names)), 0);
	assert_true(rights_missing(BIT(CAP_SYS_ADMIN), false, names, sizeof(names)) > 0);
	assert_non_null(strstr(names, "CAP_SYS_PTRACE"));
	assert_false(rights_have(BIT(CAP_SYS_ADMIN), CAP_SYSLOG));
}

static void names_that_have_no_room_are_cut(void **state)
{
	char names[12];

	(void)state;
	assert_int_equal(rights_missing(0, true, names, sizeof(names)), 2);
	assert_string_equal(names, "CAP_BPF, CA");
}

/* Of the parent's, which comes back. */
static void what_is_laid_down_comes_back(void **state)
{
	uint64_t held = rights_held(), without = held & ~BIT(CAP_DAC_READ_SEARCH);

	(void)state;
	assert_int_equal(rights_set_held(without), 0);
	assert_true(rights_held() == without);
	assert_int_equal(rights_set_held(held), 0);
	assert_true(rights_held() == held);
}

static void what_is_dropped_is_gone(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0)
		_exit(rights_drop() < 0 ? 1 : rights_held() ? 2 : rights_enough() ? 3 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_say_what_each_is_for),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(sys_admin_has_bpf_and_perfmon_in_it_but_not_ptrace),
		cmocka_unit_test(names_that_have_no_room_are_cut),
		cmocka_unit_test(what_is_laid_down_comes_back),
		cmocka_unit_test(what_is_dropped_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
