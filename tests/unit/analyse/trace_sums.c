#include "analyse/trace_sums.h"
#include "base/syscall_names.h"

#include <errno.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void add(struct trace_sums *sums, const char *name, uint64_t ns, int64_t ret)
{
	struct trace_event ev = {
		.nr = (uint32_t)syscall_number(name), .ns = ns, .ret = ret, .returns = true
	};

	assert_int_equal(trace_sums_add(sums, &ev), 0);
}

static void calls_add_up_by_name_time_and_error(void **state)
{
	struct trace_sums sums = { 0 };
	struct strbuf b = { 0 };

	(void)state;
	trace_sums_put(&sums, false, &b);
	assert_int_equal(b.len, 0);
	add(&sums, "openat", 1000000, 3);
	add(&sums, "openat", 2000000, -ENOENT);
	add(&sums, "openat", 3000000, -EACCES);
	add(&sums, "openat", 3000000, -EACCES);
	add(&sums, "read", 27000000, 5);
	add(&sums, "close", 0, -4000); /* an error without a name */
	trace_sums_put(&sums, false, &b);
	assert_string_equal(
		b.s,
		"% time     seconds  usecs/call     calls    errors syscall\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		" 75.00    0.027000       27000         1           read\n"
		" 25.00    0.009000        2250         4         3 openat: 2 EACCES, 1 ENOENT\n"
		"  0.00    0.000000           0         1         1 close: 1 errno 4000\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		"100.00    0.036000        6000         6         4 total\n");
	strbuf_reset(&b);
	trace_sums_put(&sums, true, &b);
	assert_string_equal(
		b.s,
		"{\"summary\":[{\"call\":\"read\",\"calls\":1,\"time_ns\":27000000,\"errors\":{}},"
		"{\"call\":\"openat\",\"calls\":4,\"time_ns\":9000000,\"errors\":{\"EACCES\":2,\"ENOENT\":1}},"
		"{\"call\":\"close\",\"calls\":1,\"time_ns\":0,\"errors\":{\"errno 4000\":1}}]}\n");
	trace_sums_fini(&sums);
	strbuf_free(&b);
}

static void calls_of_32_bit_programs_are_rows_of_their_own(void **state)
{
	struct trace_event ev = { .nr = 3, .returns = true };
	struct trace_sums sums = { 0 };
	struct strbuf b = { 0 };

	(void)state;
	trace_sums_add(&sums, &ev);
	ev.compat = true;
	trace_sums_add(&sums, &ev);
	trace_sums_put(&sums, true, &b);
	assert_non_null(strstr(b.s, "\"call\":\"32bit_"));
	assert_non_null(strstr(b.s, "\"calls\":1"));
	trace_sums_fini(&sums);
	strbuf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_add_up_by_name_time_and_error),
		cmocka_unit_test(calls_of_32_bit_programs_are_rows_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
