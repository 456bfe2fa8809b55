#include "screen/flame.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type cpu[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };

static struct call_tree tree_of(struct fixture *f)
{
	struct call_tree t;

	assert_int_equal(call_tree_init(&t), 0);
	assert_int_equal(call_tree_add(&t, f->p, 0), 0);
	return t;
}

static const struct flame_block *named(const struct flame *f, const struct call_tree *t,
				       const char *name)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (strcmp(t->nodes[f->blocks[i].node].name, name) == 0)
			return &f->blocks[i];
	fail_msg("%s has no block", name);
	return NULL;
}

static void blocks_are_as_wide_as_their_shares(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct flame fl = { 0 };
	struct call_tree t;

	fixture_add(&f, "app;main;a", (int64_t[]){ 1, 25 });
	fixture_add(&f, "app;main;b;c", (int64_t[]){ 1, 50 });
	fixture_add(&f, "app;main", (int64_t[]){ 1, 25 });
	t = tree_of(&f);
	assert_int_equal(flame_layout(&fl, &t, 80), 0);
	assert_int_equal(named(&fl, &t, "all")->to, 80);
	assert_int_equal(named(&fl, &t, "main")->to, 80);
	assert_int_equal(named(&fl, &t, "a")->from, 0);
	assert_int_equal(named(&fl, &t, "a")->to, 20);
	assert_int_equal(named(&fl, &t, "b")->from, 20);
	assert_int_equal(named(&fl, &t, "b")->to, 60);
	assert_int_equal(named(&fl, &t, "c")->level, 4);
	flame_fini(&fl);
	call_tree_fini(&t);
	fixture_free(&f);
}

/* However many children there are, and whatever their shares: none overlaps another or leaves its parent. */
static void blocks_never_overlap(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct flame fl = { 0 };
	struct call_tree t;
	char stack[64];

	for (int i = 0; i < 300; i++) {
		snprintf(stack, sizeof(stack), "app;main;f%03d;g%d", i, i % 7);
		fixture_add(&f, stack, (int64_t[]){ 1, 1 + i * 37 % 101 });
	}
	t = tree_of(&f);
	for (int columns = 1; columns < 300; columns += 13) {
		assert_int_equal(flame_layout(&fl, &t, columns), 0);
		for (uint32_t i = 0; i < fl.n; i++) {
			const struct flame_block *b = &fl.blocks[i],
						 *up = flame_block_of(&fl, t.nodes[b->node].parent);

			assert_true(b->from < b->to && b->to <= columns);
			assert_true(!up || !b->level || (up->from <= b->from && b->to <= up->to));
			if (i && fl.blocks[i - 1].level == b->level)
				assert_true(fl.blocks[i - 1].to <= b->from);
		}
	}
	flame_fini(&fl);
	call_tree_fini(&t);
	fixture_free(&f);
}

static void keys_go_to_the_neighbours(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct flame fl = { 0 };
	struct call_tree t;

	fixture_add(&f, "app;main;a", (int64_t[]){ 1, 25 });
	fixture_add(&f, "app;main;b", (int64_t[]){ 1, 75 });
	t = tree_of(&f);
	assert_int_equal(flame_layout(&fl, &t, 80), 0);
	fl.at = named(&fl, &t, "main")->node;
	fl.at = flame_neighbour(&fl, &t, ACT_DOWN);
	assert_string_equal(t.nodes[fl.at].name, "b"); /* the widest */
	assert_int_equal(flame_neighbour(&fl, &t, ACT_OPEN), fl.at);
	fl.at = flame_neighbour(&fl, &t, ACT_CLOSE);
	assert_string_equal(t.nodes[fl.at].name, "a");
	fl.at = flame_neighbour(&fl, &t, ACT_UP);
	assert_string_equal(t.nodes[fl.at].name, "main");
	assert_string_equal(t.nodes[flame_node_at(&fl, 3, 79)].name, "b");
	assert_int_equal(flame_node_at(&fl, 9, 0), 0);
	flame_fini(&fl);
	call_tree_fini(&t);
	fixture_free(&f);
}

static void a_zoom_gives_a_block_all_columns(void **state)
{
	struct fixture f = fixture_new(cpu, 2);
	struct flame fl = { 0 };
	struct call_tree t;

	fixture_add(&f, "app;main;a;x", (int64_t[]){ 1, 25 });
	fixture_add(&f, "app;main;b", (int64_t[]){ 1, 75 });
	t = tree_of(&f);
	assert_int_equal(flame_layout(&fl, &t, 80), 0);
	fl.root = named(&fl, &t, "a")->node;
	assert_int_equal(flame_layout(&fl, &t, 80), 0);
	assert_int_equal(fl.n, 2);
	assert_int_equal(named(&fl, &t, "x")->to, 80);
	assert_int_equal(fl.at, fl.root); /* what was under the cursor has no block any more */
	flame_fini(&fl);
	call_tree_fini(&t);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_as_wide_as_their_shares),
		cmocka_unit_test(blocks_never_overlap),
		cmocka_unit_test(keys_go_to_the_neighbours),
		cmocka_unit_test(a_zoom_gives_a_block_all_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
