#include "analyse/frame_tree.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static struct frame_tree *tree_of(struct fixture *f, bool comm, bool leaf_first)
{
	struct frame_tree *t = NULL;

	assert_int_equal(frame_tree_build(f->p,
					  &(struct frame_tree_opts){ .root_comm = comm,
								     .leaf_first = leaf_first },
					  &t),
			 0);
	return t;
}

/* The node at "a;b;c" from the root; fails when there is none. */
static const struct frame_node *at(const struct frame_tree *t, const char *path)
{
	char *copy = strdup(path), *rest = copy, *word;
	uint32_t node = 0;

	while ((word = strsep(&rest, ";"))) {
		node = t->nodes[node].first_child;
		while (node && strcmp(t->nodes[node].name, word) != 0)
			node = t->nodes[node].next_sibling;
		if (!node)
			fail_msg("no node at %s of %s", word, path);
	}
	free(copy);
	return &t->nodes[node];
}

static void equal_prefixes_are_one_node(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;

	fixture_add1(&f, ";main;a;x", 3);
	fixture_add1(&f, ";main;a;y", 4);
	fixture_add1(&f, ";main;a", 2);
	fixture_add1(&f, ";main;b", 1);
	t = tree_of(&f, true, false);
	assert_int_equal(t->n_nodes, 6);
	assert_int_equal(t->max_depth, 3);
	assert_int_equal(t->n_samples, 4);
	assert_int_equal(t->nodes[0].total, 10);
	assert_int_equal(t->nodes[0].self, 0);
	assert_int_equal(at(t, "main")->total, 10);
	assert_int_equal(at(t, "main;a")->total, 9);
	assert_int_equal(at(t, "main;a")->self, 2);
	assert_int_equal(at(t, "main;a;y")->self, 4);
	frame_tree_free(t);
	fixture_free(&f);
}

static void children_are_sorted_by_name_whatever_the_order_of_samples(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;
	uint32_t n;

	fixture_add1(&f, ";main;zeta", 1);
	fixture_add1(&f, ";main;Alpha", 1);
	fixture_add1(&f, ";main;mid;q", 1);
	fixture_add1(&f, ";main;beta", 1);
	t = tree_of(&f, true, false);
	n = t->nodes[t->nodes[0].first_child].first_child;
	for (const char *const *want =
		     (const char *const[]){ "Alpha", "beta", "mid", "zeta", NULL };
	     *want; want++) {
		assert_int_not_equal(n, 0);
		assert_string_equal(t->nodes[n].name, *want);
		n = t->nodes[n].next_sibling;
	}
	assert_int_equal(n, 0);
	frame_tree_free(t);
	fixture_free(&f);
}

static void the_process_name_is_the_first_level_when_asked_for(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;

	fixture_add1(&f, "redis;main;a", 3);
	fixture_add1(&f, "python;main;a", 4);
	fixture_add1(&f, ";main", 5);
	t = tree_of(&f, true, false);
	assert_int_equal(at(t, "redis;main;a")->total, 3);
	assert_int_equal(at(t, "redis")->kind, FRAME_PROCESS);
	assert_int_equal(at(t, "python")->total, 4);
	assert_int_equal(at(t, "main")->total, 5);
	frame_tree_free(t);
	t = tree_of(&f, false, false);
	assert_int_equal(at(t, "main")->total, 12);
	assert_int_equal(at(t, "main;a")->total, 7);
	frame_tree_free(t);
	fixture_free(&f);
}

static void inlined_calls_are_nodes_between_their_neighbours(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;

	fixture_add1(&f, ";main;outer;mid_[i];inner_[i];leaf", 2);
	t = tree_of(&f, true, false);
	assert_int_equal(at(t, "main;outer")->kind, FRAME_USER);
	assert_int_equal(at(t, "main;outer;mid")->kind, FRAME_INLINED);
	assert_int_equal(at(t, "main;outer;mid;inner")->kind, FRAME_INLINED);
	assert_int_equal(at(t, "main;outer;mid;inner;leaf")->self, 2);
	frame_tree_free(t);
	fixture_free(&f);
}

static void frames_without_names_are_named_by_their_image(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;

	fixture_add1(&f, ";main;libx.so.1+0x4a21", 1);
	fixture_add1(&f, ";main;?", 1);
	fixture_add1(&f, ";main;//anon", 1);
	fixture_add1(&f, ";main;do_syscall_64_[k]", 1);
	t = tree_of(&f, true, false);
	assert_string_equal(at(t, "main;libx.so.1+0x4a21")->module, "libx.so.1");
	assert_int_equal(at(t, "main;libx.so.1+0x4a21")->kind, FRAME_USER);
	assert_int_equal(at(t, "main;[unknown]")->kind, FRAME_UNKNOWN);
	assert_int_equal(at(t, "main;[anon]")->kind, FRAME_UNKNOWN);
	assert_int_equal(at(t, "main;do_syscall_64")->kind, FRAME_KERNEL);
	assert_string_equal(at(t, "main")->module, "prog");
	frame_tree_free(t);
	fixture_free(&f);
}

static void one_name_in_kernel_and_user_space_is_two_nodes(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;

	fixture_add1(&f, ";main;read", 1);
	fixture_add1(&f, ";main;read_[k]", 2);
	t = tree_of(&f, true, false);
	assert_int_equal(t->n_nodes, 4);
	frame_tree_free(t);
	fixture_free(&f);
}

static void leaf_first_puts_callers_below(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;

	fixture_add1(&f, "c;main;a;malloc", 3);
	fixture_add1(&f, "c;main;b;malloc", 4);
	t = tree_of(&f, true, true);
	assert_int_equal(at(t, "malloc")->total, 7);
	assert_int_equal(at(t, "malloc;b;main;c")->self, 4);
	frame_tree_free(t);
	fixture_free(&f);
}

static uint32_t parent_of_x(const struct frame_tree *t, uint32_t node)
{
	return strcmp(t->nodes[node].name, "x") == 0 ? t->nodes[node].parent : node;
}

static void a_tree_turned_round_begins_where_it_was_charged_to(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t, *back;

	fixture_add1(&f, "server;main;a;x", 3);
	fixture_add1(&f, "server;main;b;x", 4);
	fixture_add1(&f, "server;main;a", 2);
	fixture_add1(&f, "server", 1);
	t = tree_of(&f, true, false);
	assert_int_equal(frame_tree_reversed(t, f.d, &back), 0);
	assert_int_equal(back->nodes[0].total, 10);
	assert_int_equal(at(back, "x")->total, 7);
	assert_int_equal(at(back, "x;b;main;server")->self, 4);
	assert_int_equal(at(back, "a;main;server")->self, 2);
	assert_int_equal(at(back, "server")->self, 1);
	frame_tree_free(back);
	assert_int_equal(frame_tree_charge(t, parent_of_x), 0);
	assert_int_equal(frame_tree_reversed(t, f.d, &back), 0);
	assert_int_equal(at(back, "a;main")->total, 5);
	assert_int_equal(at(back, "b;main;server")->self, 4);
	assert_int_equal(back->nodes[0].total, 10);
	frame_tree_free(back);
	frame_tree_free(t);
	fixture_free(&f);
}

static void values_of_zero_or_less_are_left_out(void **state)
{
	static const struct value_type two[] = { { "blocked", "nanoseconds" },
						 { "runnable", "nanoseconds" } };
	struct fixture f = fixture_new(two, 2);
	struct frame_tree *t;

	fixture_add(&f, ";main;a", (int64_t[]){ 5, 0 });
	fixture_add(&f, ";main;b", (int64_t[]){ 0, 5 });
	fixture_add(&f, ";main;c", (int64_t[]){ -7, 5 });
	t = tree_of(&f, true, false);
	assert_int_equal(t->n_nodes, 3);
	assert_int_equal(t->nodes[0].total, 5);
	assert_int_equal(t->n_samples, 1);
	assert_int_equal(t->n_negative, 1);
	assert_string_equal(t->type, "blocked");
	frame_tree_free(t);
	fixture_free(&f);
}

static void totals_saturate(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;

	fixture_add1(&f, ";main;a", INT64_MAX - 1);
	fixture_add1(&f, ";main;b", INT64_MAX - 1);
	t = tree_of(&f, true, false);
	assert_true(at(t, "main")->total == INT64_MAX);
	frame_tree_free(t);
	fixture_free(&f);
}

static void an_empty_profile_is_a_root_of_zero(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t = tree_of(&f, true, false);

	assert_int_equal(t->n_nodes, 1);
	assert_int_equal(t->nodes[0].total, 0);
	frame_tree_free(t);
	fixture_free(&f);
}

static void a_very_deep_stack_needs_no_deep_recursion(void **state)
{
	enum { DEEP = 300000 };
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree *t;
	stack_id s = { 0 };
	char name[32];
	int64_t one = 1;

	for (int i = 0; i < DEEP; i++) {
		snprintf(name, sizeof(name), "f%d", i % 1000);
		s = dict_stack_push(f.d, s, fixture_location(&f, name));
	}
	profile_add(f.p, s, (labels_id){ 0 }, &one);
	t = tree_of(&f, true, false);
	assert_int_equal(t->max_depth, DEEP);
	assert_int_equal(t->nodes[t->n_nodes - 1].self, 1);
	frame_tree_free(t);
	fixture_free(&f);
}

/* `key` has a text, or is a number. */
static labels_id label(struct fixture *f, const char *key, const char *text, int64_t num)
{
	struct label l = { .key = dict_string(f->d, key), .num = num };

	if (text)
		l.str = dict_string(f->d, text);
	return dict_labels(f->d, &l, 1);
}

static void a_label_is_the_first_level_when_asked_for(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	location_id main_ = fixture_location(&f, "main");
	stack_id s = dict_stack(f.d, &main_, 1);
	struct frame_tree_opts opts = { .by = "container", .root_comm = true };
	int64_t one = 1;
	struct frame_tree *t;

	profile_add(f.p, s, label(&f, "container", "web", 0), &one);
	profile_add(f.p, s, label(&f, "pid", NULL, 7), &one);
	assert_int_equal(frame_tree_build(f.p, &opts, &t), 0);
	assert_int_equal(at(t, "web;main")->total, 1);
	assert_int_equal(at(t, "[host];main")->total, 1);
	frame_tree_free(t);
	opts.by = "pid";
	opts.leaf_first = true;
	assert_int_equal(frame_tree_build(f.p, &opts, &t), 0);
	assert_int_equal(at(t, "main;pid 7")->self, 1);
	assert_int_equal(at(t, "main;[other]")->self, 1);
	frame_tree_free(t);
	fixture_free(&f);
}

/* One sample of "main" with these labels; `thread` may be NULL. */
static void add_thread(struct fixture *f, const char *comm, const char *thread, int64_t tid)
{
	struct label set[3] = {
		{ .key = dict_string(f->d, "comm"), .str = dict_string(f->d, comm) },
		{ .key = dict_string(f->d, "tid"), .num = tid },
	};
	location_id main_ = fixture_location(f, (char[]){ "main" });
	int64_t one = 1;

	if (thread)
		set[2] = (struct label){ .key = dict_string(f->d, "thread"),
					 .str = dict_string(f->d, thread) };
	profile_add(f->p, dict_stack(f->d, &main_, 1), dict_labels(f->d, set, thread ? 3 : 2),
		    &one);
}

static void threads_are_below_their_process_and_distinguished_by_number(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree_opts opts = { .by = "thread", .root_comm = true };
	struct frame_tree *t;

	add_thread(&f, "server", NULL, 70);
	add_thread(&f, "server", "pool", 71);
	add_thread(&f, "server", "pool", 72);
	fixture_add1(&f, "server;main", 1);
	assert_int_equal(frame_tree_build(f.p, &opts, &t), 0);
	assert_int_equal(at(t, "server;server (tid 70);main")->total, 1);
	assert_int_equal(at(t, "server;pool (tid 71);main")->total, 1);
	assert_int_equal(at(t, "server;pool (tid 72);main")->total, 1);
	assert_int_equal(at(t, "server;[other];main")->total, 1);
	frame_tree_free(t);
	assert_true(frame_tree_has_label(f.p, "thread"));
	assert_false(frame_tree_has_label(f.p, "container"));
	fixture_free(&f);
}

static void from_a_function_there_are_its_callees_or_its_callers_of_the_outermost_call(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_tree_opts opts = { .from = "walk", .root_comm = true };
	struct frame_tree *t;

	fixture_add1(&f, "p;main;walk;walk;visit", 3);
	fixture_add1(&f, "p;other;walk", 4);
	fixture_add1(&f, "p;main;visit", 100);
	opts.root_comm = false;
	assert_int_equal(frame_tree_build(f.p, &opts, &t), 0);
	assert_int_equal(t->nodes[0].total, 7);
	assert_int_equal(at(t, "walk")->total, 7);
	assert_int_equal(at(t, "walk")->self, 4);
	assert_int_equal(at(t, "walk;walk;visit")->self, 3);
	frame_tree_free(t);
	opts.root_comm = true;
	opts.leaf_first = true;
	assert_int_equal(frame_tree_build(f.p, &opts, &t), 0);
	assert_int_equal(at(t, "walk")->total, 7);
	assert_int_equal(at(t, "walk;main;p")->self, 3);
	assert_int_equal(at(t, "walk;other;p")->self, 4);
	frame_tree_free(t);
	fixture_free(&f);
}

/* --- with a least total --- */

/* Each node of `wide` is in `full` with the same figures; what is not there is below `least` and counted. */
static void compare_wide(const struct frame_tree *full, const struct frame_tree *wide,
			 int64_t least)
{
	uint32_t *map = calloc(wide->n_nodes, sizeof(*map)), n = 0;

	frame_tree_map(wide, full, map);
	assert_int_equal(wide->n_samples, full->n_samples);
	assert_int_equal(wide->n_nodes + wide->n_left_out, full->n_nodes);
	for (uint32_t i = 0; i < wide->n_nodes; i++) {
		const struct frame_node *a = &wide->nodes[i], *b = &full->nodes[map[i]];
		int64_t left_out = 0;

		assert_true(!i || map[i]);
		assert_string_equal(a->name, b->name);
		assert_string_equal(a->module, b->module);
		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->depth, b->depth);
		assert_int_equal(a->self, b->self);
		assert_int_equal(a->total, b->total);
		assert_true(!i || a->parent < i);
		for (uint32_t c = b->first_child; c; c = full->nodes[c].next_sibling)
			if (full->nodes[c].total < least && full->nodes[c].kind != FRAME_PROCESS)
				left_out += full->nodes[c].total;
		assert_int_equal(wide->left_out[i], left_out);
	}
	for (uint32_t i = 1; i < full->n_nodes; i++)
		n += full->nodes[i].total >= least || full->nodes[i].kind == FRAME_PROCESS;
	assert_int_equal(wide->n_nodes, n + 1);
	free(map);
}

static void only_wide_nodes_are_made_and_the_others_counted(void **state)
{
	static const char *const comms[] = { "", "a", "b" };
	static const char *const functions[] = {
		"f", "g", "h\ni", "j\ni", "k_[k]", "lib+0x12", "?"
	};
	struct fixture f = fixture_new(&samples, 1);
	uint32_t seed = 1;

	for (int i = 0; i < 3000; i++) {
		char text[256];
		size_t n = (size_t)snprintf(text, sizeof(text), "%s", comms[i % 3]);

		seed = (uint32_t)(seed * 48271ull % 2147483647u);
		for (uint32_t d = 0, left = seed; d < 2 + seed % 7; d++, left /= 7)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ";%s",
					      functions[left % 7 * (left % 3 ? 1 : 0)]);
		fixture_add1(&f, text, (int64_t)(seed % 40) - 2);
	}
	for (int64_t least = 2; least < 100000; least = least * 5 / 2) {
		for (int by = 0; by < 2; by++) {
			struct frame_tree_opts opts = { .root_comm = !by,
							.by = by ? "comm" : NULL };
			struct frame_tree *full, *wide;

			assert_int_equal(frame_tree_build(f.p, &opts, &full), 0);
			opts.least = least;
			assert_int_equal(frame_tree_build(f.p, &opts, &wide), 0);
			assert_int_equal(wide->n_negative, full->n_negative);
			compare_wide(full, wide, least);
			frame_tree_free(full);
			frame_tree_free(wide);
		}
	}
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_wide_nodes_are_made_and_the_others_counted),
		cmocka_unit_test(equal_prefixes_are_one_node),
		cmocka_unit_test(children_are_sorted_by_name_whatever_the_order_of_samples),
		cmocka_unit_test(the_process_name_is_the_first_level_when_asked_for),
		cmocka_unit_test(a_label_is_the_first_level_when_asked_for),
		cmocka_unit_test(threads_are_below_their_process_and_distinguished_by_number),
		cmocka_unit_test(
			from_a_function_there_are_its_callees_or_its_callers_of_the_outermost_call),
		cmocka_unit_test(inlined_calls_are_nodes_between_their_neighbours),
		cmocka_unit_test(frames_without_names_are_named_by_their_image),
		cmocka_unit_test(one_name_in_kernel_and_user_space_is_two_nodes),
		cmocka_unit_test(leaf_first_puts_callers_below),
		cmocka_unit_test(a_tree_turned_round_begins_where_it_was_charged_to),
		cmocka_unit_test(values_of_zero_or_less_are_left_out),
		cmocka_unit_test(totals_saturate),
		cmocka_unit_test(an_empty_profile_is_a_root_of_zero),
		cmocka_unit_test(a_very_deep_stack_needs_no_deep_recursion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
