#include "analyse/alloc_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type types[] = { { "alloc_objects", "count" },
					   { "alloc_space", "bytes" } };

static void add(struct profile *p, int64_t tid, const char *thread, uint64_t place,
		const int64_t *values)
{
	struct dict *d = profile_dict(p);
	location_id loc = dict_location(d, (module_id){ 0 }, place);
	struct label labels[4] = {
		{ .key = dict_string(d, "pid"), .num = 7 },
		{ .key = dict_string(d, "tid"), .num = tid },
		{ .key = dict_string(d, "comm"), .str = dict_string(d, "prog") },
	};

	if (thread)
		labels[3] = (struct label){ .key = dict_string(d, "thread"),
					    .str = dict_string(d, thread) };
	profile_add(p, dict_stack(d, &loc, 1), dict_labels(d, labels, thread ? 4 : 3), values);
}

static void stacks_of_a_thread_are_summed_and_the_most_bytes_come_first(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2);
	struct thread_row rows[2];
	uint32_t seen = 0;

	add(p, 7, NULL, 1, (int64_t[]){ 1, 10 });
	add(p, 8, "io", 1, (int64_t[]){ 2, 50 });
	add(p, 8, "io", 2, (int64_t[]){ 3, 60 });
	add(p, 9, "gc", 1, (int64_t[]){ 100, 5 });
	assert_int_equal(alloc_threads(p, rows, 2, &seen), 2);
	assert_int_equal(seen, 3);
	assert_int_equal(rows[0].tid, 8);
	assert_string_equal(rows[0].name, "io");
	assert_int_equal(rows[0].objects, 5);
	assert_int_equal(rows[0].bytes, 110);
	assert_int_equal(rows[1].tid, 7);
	assert_string_equal(rows[1].name, "prog");
	profile_free(p);
	dict_free(d);
}

static void no_allocations_are_no_threads(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2);
	struct thread_row row;
	uint32_t seen = 1;

	assert_int_equal(alloc_threads(p, &row, 1, &seen), 0);
	assert_int_equal(seen, 0);
	profile_free(p);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_of_a_thread_are_summed_and_the_most_bytes_come_first),
		cmocka_unit_test(no_allocations_are_no_threads),
	};

	return cmocka_run_group_tests_name("analyse/alloc_threads", tests, NULL, NULL);
}
