#include "run/serve/target_series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct value_type oncpu_types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type offcpu_types[] = { { "blocked", "count" },
						  { "blocked", "nanoseconds" },
						  { "runnable", "count" },
						  { "runnable", "nanoseconds" } };

struct both {
	struct dict *d;
	struct profile *oncpu, *offcpu;
	struct target_series s;
};

static struct both *both_new(void)
{
	struct both *b = calloc(1, sizeof(*b));

	b->d = dict_new();
	b->oncpu = profile_new(b->d, oncpu_types, 2);
	b->offcpu = profile_new(b->d, offcpu_types, 4);
	return b;
}

static void both_free(struct both *b)
{
	target_series_fini(&b->s);
	profile_free(b->oncpu);
	profile_free(b->offcpu);
	dict_free(b->d);
	free(b);
}

static labels_id labels_of(struct dict *d, int pid, const char *comm, const char *container)
{
	const struct label l[] = {
		{ .key = dict_string(d, "pid"), .num = pid },
		{ .key = dict_string(d, "comm"), .str = dict_string(d, comm) },
		{ .key = dict_string(d, "container"),
		  .str = dict_string(d, container ? container : "") },
	};

	return dict_labels(d, l, container ? 3 : 2);
}

static void use(struct both *b, int pid, const char *comm, const char *container, int64_t cpu_ns,
		int64_t blocked_ns)
{
	const int64_t on[2] = { 1, cpu_ns }, off[4] = { 1, blocked_ns, 1, 7 };
	labels_id l = labels_of(b->d, pid, comm, container);

	assert_int_equal(profile_add(b->oncpu, (stack_id){ 0 }, l, on), 0);
	assert_int_equal(profile_add(b->offcpu, (stack_id){ 0 }, l, off), 0);
}

static int64_t ten(pid_t pid)
{
	return pid == 99 ? -1 : 10;
}

static void row_now(struct both *b)
{
	assert_int_equal(target_series_add(&b->s, b->oncpu, b->offcpu, 1000000000, ten), 0);
}

static const struct target_row *find(const struct both *b, const char *name)
{
	for (uint32_t i = 0; i < b->s.n_rows; i++)
		if (strcmp(b->s.rows[i].name, name) == 0)
			return &b->s.rows[i];
	return NULL;
}

static int64_t last(const struct both *b, const struct target_row *row, enum target_value v)
{
	return row->points[target_series_point(&b->s, b->s.n_points - 1)][v];
}

static void a_row_is_what_the_profiles_gained(void **state)
{
	struct both *b = both_new();

	use(b, 1, "nginx", "web", 100, 1000);
	use(b, 2, "nginx", "web", 50, 0);
	use(b, 3, "nginx", NULL, 7, 0);
	row_now(b);
	assert_int_equal(last(b, find(b, "web"), TARGET_CPU_NS), 150);
	assert_int_equal(last(b, find(b, "web"), TARGET_BLOCKED_NS), 1000);
	assert_int_equal(last(b, find(b, "web"), TARGET_RUNNABLE_NS), 14);
	assert_int_equal(last(b, find(b, "web"), TARGET_RSS_KB), 20);
	assert_true(find(b, "web")->container);
	assert_int_equal(last(b, find(b, "nginx"), TARGET_CPU_NS), 7); /* of no container */
	use(b, 1, "nginx", "web", 5, 0);
	row_now(b);
	assert_int_equal(b->s.n_points, 2);
	assert_int_equal(last(b, find(b, "web"), TARGET_CPU_NS), 5);
	assert_int_equal(last(b, find(b, "nginx"), TARGET_CPU_NS), 0);
	both_free(b);
}

/* Ten rows of 60: more than are read at a time. */
static void where_there_are_many_processes_the_others_are_read_the_next_time(void **state)
{
	struct both *b = both_new();
	char name[16];

	for (int pid = 1000; pid < 1600; pid++) {
		snprintf(name, sizeof(name), "c%d", (pid - 1000) / 60);
		use(b, pid, "sleep", name, 1, 0);
	}
	row_now(b);
	assert_int_equal(last(b, find(b, "c0"), TARGET_RSS_KB), 600);
	assert_int_equal(last(b, find(b, "c9"), TARGET_RSS_KB), 0);
	row_now(b);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		assert_int_equal(last(b, find(b, name), TARGET_RSS_KB), 600);
	}
	both_free(b);
}

static void a_process_that_is_gone_is_forgotten(void **state)
{
	struct both *b = both_new();

	use(b, 99, "short", NULL, 5, 0);
	row_now(b);
	assert_int_equal(find(b, "short")->n_pids, 0);
	assert_int_equal(last(b, find(b, "short"), TARGET_RSS_KB), 0);
	both_free(b);
}

static void the_last_rows_are_kept(void **state)
{
	struct both *b = both_new();

	for (int i = 0; i < TARGET_POINTS + 5; i++) {
		use(b, 1, "a", NULL, i, 0);
		row_now(b);
	}
	assert_int_equal(b->s.n_points, TARGET_POINTS);
	assert_int_equal(find(b, "a")->points[target_series_point(&b->s, 0)][TARGET_CPU_NS], 5);
	assert_int_equal(last(b, find(b, "a"), TARGET_CPU_NS), TARGET_POINTS + 4);
	both_free(b);
}

static void what_finds_no_room_is_in_the_row_of_others_until_one_is_quiet(void **state)
{
	struct both *b = both_new();
	int64_t sum = 0;
	char name[20];

	for (int i = 0; i < TARGET_ROWS + 10; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		use(b, 99, name, NULL, 1, 0);
	}
	row_now(b);
	for (uint32_t i = 0; i < b->s.n_rows; i++)
		sum += last(b, &b->s.rows[i], TARGET_CPU_NS);
	assert_int_equal(sum, TARGET_ROWS + 10);
	assert_true(last(b, &b->s.rows[0], TARGET_CPU_NS) >= 10);
	for (int i = 0; i < TARGET_POINTS; i++)
		row_now(b);
	use(b, 5, "new", NULL, 3, 0);
	row_now(b);
	assert_int_equal(last(b, find(b, "new"), TARGET_CPU_NS), 3);
	both_free(b);
}

static void names_are_safe_to_show(void **state)
{
	struct both *b = both_new();

	use(b, 1, "a\x01\xff", NULL, 1, 0);
	row_now(b);
	assert_non_null(find(b, "a\xef\xbf\xbd\xef\xbf\xbd"));
	both_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_what_the_profiles_gained),
		cmocka_unit_test(where_there_are_many_processes_the_others_are_read_the_next_time),
		cmocka_unit_test(a_process_that_is_gone_is_forgotten),
		cmocka_unit_test(the_last_rows_are_kept),
		cmocka_unit_test(what_finds_no_room_is_in_the_row_of_others_until_one_is_quiet),
		cmocka_unit_test(names_are_safe_to_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
