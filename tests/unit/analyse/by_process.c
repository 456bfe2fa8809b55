#include "analyse/by_process.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type on_types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type off_types[] = {
	{ "blocked", "count" },
	{ "blocked", "nanoseconds" },
	{ "runnable", "count" },
	{ "runnable", "nanoseconds" },
};

static void add(struct profile *p, int64_t pid, const char *comm, const char *function,
		const int64_t *values)
{
	struct dict *d = profile_dict(p);
	struct label labels[] = {
		{ .key = dict_string(d, "pid"), .num = pid },
		{ .key = dict_string(d, "comm"), .str = dict_string(d, comm) },
	};
	struct module m = { .kind = MODULE_ELF, .path = dict_string(d, function) };
	location_id loc = dict_location(d, dict_module(d, &m), 1);

	profile_add(p, dict_stack(d, &loc, 1), dict_labels(d, labels, 2), values);
}

static void values_of_a_process_are_summed_over_both_profiles(void **state)
{
	struct dict *d = dict_new();
	struct profile *on = profile_new(d, on_types, 2), *off = profile_new(d, off_types, 4);
	struct process_row rows[2];
	uint32_t seen = 0;

	add(on, 7, "sh", "a", (int64_t[]){ 2, 20 });
	add(on, 7, "gcc", "b", (int64_t[]){ 3, 30 });
	add(on, 8, "cc1", "a", (int64_t[]){ 9, 90 });
	add(off, 7, "gcc", "a", (int64_t[]){ 1, 100, 1, 5 });
	add(off, 9, "sleeper", "a", (int64_t[]){ 1, 7000, 0, 0 });
	add(off, 10, "starved", "a", (int64_t[]){ 0, 0, 1, 1 });

	assert_int_equal(by_process(on, off, NULL, rows, 2, &seen), 2);
	assert_int_equal(seen, 4);
	assert_int_equal(rows[0].pid, 8);
	assert_int_equal(rows[1].pid, 7);
	assert_string_equal(rows[1].comm, "gcc");
	assert_int_equal(rows[1].samples, 5);
	assert_int_equal(rows[1].cpu_ns, 50);
	assert_int_equal(rows[1].blocked_ns, 100);
	assert_int_equal(rows[1].runnable_ns, 5);

	/* Without CPU time: who waited for a CPU comes before who waited for something else. */
	assert_int_equal(by_process(NULL, off, NULL, rows, 2, &seen), 2);
	assert_int_equal(seen, 3);
	assert_int_equal(rows[0].pid, 7);
	assert_int_equal(rows[1].pid, 10);
	profile_free(on);
	profile_free(off);
	dict_free(d);
}

static void processes_of_one_command_are_a_row(void **state)
{
	struct dict *d = dict_new();
	struct profile *on = profile_new(d, on_types, 2);
	struct command_row rows[2];

	add(on, 7, "make", "a", (int64_t[]){ 1, 60 });
	add(on, 8, "cc1", "a", (int64_t[]){ 1, 50 });
	add(on, 9, "cc1", "a", (int64_t[]){ 1, 50 });
	add(on, 9, "cc1", "b", (int64_t[]){ 1, 5 });
	add(on, 10, "as", "a", (int64_t[]){ 1, 9 });
	assert_int_equal(by_command(on, NULL, rows, 2), 2);
	assert_string_equal(rows[0].comm, "cc1");
	assert_int_equal(rows[0].cpu_ns, 105);
	assert_int_equal(rows[0].processes, 2);
	assert_string_equal(rows[1].comm, "make");
	assert_int_equal(by_command(NULL, NULL, rows, 2), 0);
	profile_free(on);
	dict_free(d);
}

static const char *last_name(void *ctx, pid_t pid)
{
	return pid == 7 ? ctx : NULL;
}

/* A shell that has become another program by exec. */
static void a_process_is_called_by_its_last_exec(void **state)
{
	static char python[] = "python3";
	const struct process_names names = { last_name, python };
	struct dict *d = dict_new();
	struct profile *on = profile_new(d, on_types, 2);
	struct command_row commands[3];
	struct process_row rows[3];
	uint32_t seen;

	add(on, 7, "python3", "a", (int64_t[]){ 1, 60 });
	add(on, 7, "bash", "b", (int64_t[]){ 1, 5 });
	add(on, 8, "bash", "b", (int64_t[]){ 1, 5 });
	assert_int_equal(by_command(on, &names, commands, 3), 2);
	assert_string_equal(commands[0].comm, "python3");
	assert_int_equal(commands[0].cpu_ns, 65);
	assert_string_equal(commands[1].comm, "bash");
	assert_int_equal(commands[1].processes, 1);
	assert_int_equal(by_process(on, NULL, &names, rows, 3, &seen), 2);
	assert_string_equal(rows[0].comm, "python3");
	profile_free(on);
	dict_free(d);
}

static void nothing_gathered_is_no_row(void **state)
{
	struct process_row row;
	uint32_t seen = 1;

	assert_int_equal(by_process(NULL, NULL, NULL, &row, 1, &seen), 0);
	assert_int_equal(seen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_a_process_are_summed_over_both_profiles),
		cmocka_unit_test(processes_of_one_command_are_a_row),
		cmocka_unit_test(a_process_is_called_by_its_last_exec),
		cmocka_unit_test(nothing_gathered_is_no_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
