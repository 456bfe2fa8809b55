#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "collect/session/kernel.h"

static struct kernel_finding *all_ok(void)
{
	return calloc(kernel_n_checks(), sizeof(struct kernel_finding));
}

static uint32_t row_of(const char *name)
{
	for (uint32_t i = 0; i < kernel_n_checks(); i++)
		if (strcmp(kernel_checks[i].name, name) == 0)
			return i;
	fail_msg("no row %s", name);
	return 0;
}

static uint32_t source_of(const char *name)
{
	for (uint32_t i = 0; i < KERNEL_N_SOURCES; i++)
		if (strcmp(kernel_source_name(i), name) == 0)
			return i;
	fail_msg("no source %s", name);
	return 0;
}

static void rows_are_complete_and_their_names_unique(void **state)
{
	assert_null(kernel_checks[kernel_n_checks()].name);
	for (uint32_t i = 0; i < kernel_n_checks(); i++) {
		assert_true(strlen(kernel_checks[i].name) <= 16);
		assert_non_null(kernel_checks[i].use);
		assert_non_null(kernel_checks[i].probe);
		assert_int_equal(row_of(kernel_checks[i].name), i);
	}
}

static void every_source_needs_something(void **state)
{
	for (uint32_t i = 0; i < KERNEL_N_SOURCES; i++) {
		uint32_t n = 0;

		for (uint32_t c = 0; c < kernel_n_checks(); c++)
			n += kernel_checks[c].needed_by >> i & 1;
		assert_true(n > 0);
	}
}

static void source_works_when_all_it_needs_is_there(void **state)
{
	_cleanup_(freep) struct kernel_finding *f = all_ok();
	int row;

	for (uint32_t i = 0; i < KERNEL_N_SOURCES; i++) {
		assert_int_equal(kernel_source_state(f, i, &row), KERNEL_OK);
		assert_int_equal(row, -1);
	}
}

static void missing_row_takes_down_only_what_needs_it(void **state)
{
	_cleanup_(freep) struct kernel_finding *f = all_ok();
	int row;

	f[row_of("uprobes")].state = KERNEL_MISSING;
	assert_int_equal(kernel_source_state(f, source_of("alloc"), &row), KERNEL_MISSING);
	assert_int_equal(row, row_of("uprobes"));
	assert_int_equal(kernel_source_state(f, source_of("oncpu"), &row), KERNEL_OK);
	assert_int_equal(kernel_source_state(f, source_of("trend"), &row), KERNEL_OK);
}

static void missing_outweighs_unknown_and_unknown_outweighs_limited(void **state)
{
	_cleanup_(freep) struct kernel_finding *f = all_ok();
	uint32_t oncpu = source_of("oncpu");
	int row;

	f[row_of("sample-rate")].state = KERNEL_LIMITED;
	assert_int_equal(kernel_source_state(f, oncpu, &row), KERNEL_LIMITED);
	f[row_of("bpf")].state = KERNEL_UNKNOWN;
	assert_int_equal(kernel_source_state(f, oncpu, &row), KERNEL_UNKNOWN);
	f[row_of("perf-events")].state = KERNEL_MISSING;
	assert_int_equal(kernel_source_state(f, oncpu, &row), KERNEL_MISSING);
	assert_int_equal(row, row_of("perf-events"));
}

static void rows_nobody_needs_take_nothing_down(void **state)
{
	_cleanup_(freep) struct kernel_finding *f = all_ok();
	int row;

	f[row_of("cycles")].state = KERNEL_MISSING;
	for (uint32_t i = 0; i < KERNEL_N_SOURCES; i++)
		assert_int_equal(kernel_source_state(f, i, &row), KERNEL_OK);
}

static void every_probe_answers_here_with_or_without_rights(void **state)
{
	_cleanup_(freep) struct kernel_finding *f = all_ok();

	kernel_probe_all(f);
	for (uint32_t i = 0; i < kernel_n_checks(); i++) {
		if (!f[i].why[0])
			fail_msg("%s says nothing", kernel_checks[i].name);
		if (f[i].state == KERNEL_MISSING && !f[i].todo[0])
			fail_msg("%s is missing and there is nothing to do", kernel_checks[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_complete_and_their_names_unique),
		cmocka_unit_test(every_source_needs_something),
		cmocka_unit_test(source_works_when_all_it_needs_is_there),
		cmocka_unit_test(missing_row_takes_down_only_what_needs_it),
		cmocka_unit_test(missing_outweighs_unknown_and_unknown_outweighs_limited),
		cmocka_unit_test(rows_nobody_needs_take_nothing_down),
		cmocka_unit_test(every_probe_answers_here_with_or_without_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
