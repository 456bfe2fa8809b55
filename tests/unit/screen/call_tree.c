#include "screen/call_tree.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type cpu[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type waits[] = { { "blocked", "count" },
					   { "blocked", "nanoseconds" },
					   { "runnable", "nanoseconds" } };
static const struct value_type rss[] = { { "resident", "bytes" }, { "returned", "bytes" } };

static uint32_t below(const struct call_tree *t, uint32_t node, const char *name)
{
	for (uint32_t c = t->nodes[node].first_child; c; c = t->nodes[c].next_sibling)
		if (strcmp(t->nodes[c].name, name) == 0)
			return c;
	fail_msg("%s is not below %s", name, t->nodes[node].name);
	return 0;
}

static void profiles_of_several_kinds_are_one_tree(void **state)
{
	struct fixture on = fixture_new(cpu, 2);
	struct profile *off = profile_new(on.d, waits, 3);
	struct call_tree t;
	uint32_t main_, work;

	fixture_add(&on, "redis;main;work", (int64_t[]){ 3, 300 });
	fixture_add(&on, "redis;main", (int64_t[]){ 1, 100 });
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, on.p, 0), 0);
	for (uint32_t i = 0; i < profile_n_samples(on.p); i++) {
		struct profile_sample s = profile_sample(on.p, i);

		profile_add(off, s.stack, s.labels, (int64_t[]){ 1, 50, 7 });
	}
	assert_int_equal(call_tree_add(&t, off, 0), 0);
	main_ = below(&t, below(&t, 0, "redis"), "main");
	work = below(&t, main_, "work");
	assert_int_equal(t.n, 4);
	assert_int_equal(t.nodes[main_].total[CALL_CPU], 400);
	assert_int_equal(t.nodes[main_].self[CALL_CPU], 100);
	assert_int_equal(t.nodes[main_].total[CALL_BLOCKED], 100);
	assert_int_equal(t.nodes[work].self[CALL_BLOCKED], 50);
	assert_int_equal(t.nodes[0].total[CALL_RUNNABLE], 14);
	assert_true(t.has[CALL_CPU] && t.has[CALL_BLOCKED] && !t.has[CALL_ALLOC] &&
		    !t.has[CALL_OTHER]);
	call_tree_fini(&t);
	profile_free(off);
	fixture_free(&on);
}

static void released_memory_is_taken_off(void **state)
{
	struct fixture f = fixture_new(rss, 2);
	struct call_tree t;

	fixture_add(&f, "app;main;grow", (int64_t[]){ 900, 0 });
	fixture_add(&f, "app;main;shrink", (int64_t[]){ 0, 400 });
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	assert_int_equal(t.nodes[0].total[CALL_RSS], 500);
	call_tree_fini(&t);
	fixture_free(&f);
}

static void processes_and_threads_are_above_their_frames(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct label labels[4] = {
		{ .key = dict_string(f.d, "comm"), .str = dict_string(f.d, "web") },
		{ .key = dict_string(f.d, "pid"), .num = 12 },
		{ .key = dict_string(f.d, "tid"), .num = 13 },
		{ .key = dict_string(f.d, "container"), .str = dict_string(f.d, "shop") },
	};
	struct call_tree t;
	uint32_t process;

	fixture_add(&f, ";main", (int64_t[]){ 1, 10 });
	profile_add(f.p, profile_sample(f.p, 0).stack, dict_labels(f.d, labels, 4),
		    (int64_t[]){ 1, 20 });
	profile_add(f.p, profile_sample(f.p, 0).stack, dict_labels(f.d, labels, 2),
		    (int64_t[]){ 1, 40 });
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	process = below(&t, below(&t, 0, "shop"), "web (pid 12)");
	assert_int_equal(
		t.nodes[below(&t, below(&t, process, "web (tid 13)"), "main")].self[CALL_CPU], 20);
	assert_int_equal(
		t.nodes[below(&t, below(&t, below(&t, 0, "web (pid 12)"), "of any thread"), "main")]
			.self[CALL_CPU],
		40);
	assert_int_equal(t.nodes[below(&t, 0, "main")].self[CALL_CPU], 10);
	call_tree_fini(&t);
	fixture_free(&f);
}

static void nodes_stay_when_values_begin_again(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct call_tree t;
	uint32_t leaf;

	fixture_add(&f, "app;main;a;b", (int64_t[]){ 1, 10 });
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	leaf = below(&t, below(&t, below(&t, below(&t, 0, "app"), "main"), "a"), "b");
	call_tree_open(&t, below(&t, 0, "app"));
	assert_true(t.nodes[leaf].open); /* one way alone is unfolded to its end */
	call_tree_zero(&t, CALL_CPU);
	assert_true(call_node_empty(&t.nodes[0]));
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	assert_int_equal(t.nodes[leaf].self[CALL_CPU], 10);
	assert_true(t.nodes[leaf].open);
	call_tree_fini(&t);
	fixture_free(&f);
}

static void the_largest_branch_is_unfolded_and_no_other(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct call_tree t;
	uint32_t app;

	fixture_add(&f, "app;small;x", (int64_t[]){ 1, 10 });
	fixture_add(&f, "app;large;y", (int64_t[]){ 1, 90 });
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	call_tree_open_largest(&t, 0, CALL_CPU);
	app = below(&t, 0, "app");
	assert_true(t.nodes[app].open && t.nodes[below(&t, app, "large")].open);
	assert_false(t.nodes[below(&t, app, "small")].open);
	call_tree_fini(&t);
	fixture_free(&f);
}

static void what_others_measured_is_shown_as_it_is(void **state)
{
	static const struct value_type pages = { "faults", "count" };
	struct fixture f = fixture_new(&pages, 1);
	struct call_tree t;

	fixture_add(&f, "app;main", (int64_t[]){ 5 });
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	assert_true(t.has[CALL_OTHER]);
	assert_string_equal(t.other_name, "faults");
	assert_int_equal(t.nodes[0].total[CALL_OTHER], 5);
	call_tree_fini(&t);
	fixture_free(&f);
}

static void thousands_of_nodes_are_found_again(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct call_tree t;
	char stack[64];

	for (int i = 0; i < 5000; i++) {
		snprintf(stack, sizeof(stack), "app;main;f%d", i);
		fixture_add(&f, stack, (int64_t[]){ 1, 1 });
	}
	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	assert_int_equal(call_tree_add(&t, f.p, 0), 0);
	assert_int_equal(t.n, 5003);
	assert_int_equal(t.nodes[0].total[CALL_CPU], 10000);
	call_tree_fini(&t);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_of_several_kinds_are_one_tree),
		cmocka_unit_test(released_memory_is_taken_off),
		cmocka_unit_test(processes_and_threads_are_above_their_frames),
		cmocka_unit_test(nodes_stay_when_values_begin_again),
		cmocka_unit_test(the_largest_branch_is_unfolded_and_no_other),
		cmocka_unit_test(what_others_measured_is_shown_as_it_is),
		cmocka_unit_test(thousands_of_nodes_are_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
