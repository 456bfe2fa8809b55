#include "render/formats/svg_layout.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static struct frame_tree *tree;
static struct svg_layout layout;

static void lay_out(struct fixture *f, double least)
{
	assert_int_equal(
		frame_tree_build(f->p, &(struct frame_tree_opts){ .root_comm = true }, &tree), 0);
	assert_int_equal(svg_layout_make(tree, least, &layout), 0);
}

static void done(struct fixture *f)
{
	svg_layout_fini(&layout);
	frame_tree_free(tree);
	fixture_free(f);
}

static void assert_box(uint32_t i, const char *name, uint32_t depth, int64_t start, int64_t value)
{
	const struct svg_box *b = &layout.boxes[i];

	assert_true(i < layout.n);
	if (name)
		assert_string_equal(tree->nodes[b->node].name, name);
	else
		assert_true(b->node == SVG_LEFT_OUT);
	assert_int_equal(b->depth, depth);
	assert_int_equal(b->start, start);
	assert_int_equal(b->value, value);
}

static void boxes_are_in_preorder_side_by_side(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, ";main;b;x", 3);
	fixture_add1(&f, ";main;a", 4);
	fixture_add1(&f, ";main;b;y", 2);
	fixture_add1(&f, ";main", 1);
	lay_out(&f, 0);
	assert_int_equal(layout.n, 6);
	assert_box(0, "all", 0, 0, 10);
	assert_box(1, "main", 1, 0, 10);
	assert_box(2, "a", 2, 0, 4);
	assert_box(3, "b", 2, 4, 5);
	assert_box(4, "x", 3, 4, 3);
	assert_box(5, "y", 3, 7, 2);
	assert_int_equal(layout.max_depth, 3);
	done(&f);
}

static void narrow_children_are_one_gap_behind_the_others(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, ";main;a;deep;deeper", 1);
	fixture_add1(&f, ";main;b", 1);
	fixture_add1(&f, ";main;c", 50);
	fixture_add1(&f, ";main;d", 1);
	lay_out(&f, 2);
	assert_int_equal(layout.n, 4);
	assert_box(2, "c", 2, 0, 50);
	assert_box(3, NULL, 2, 50, 3);
	assert_int_equal(layout.max_depth, 2);
	assert_int_equal(layout.n_left_out, 5); /* a, deep, deeper, b, d */
	done(&f);
}

static void gaps_of_different_parents_stay_apart(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, ";main;p;a", 10);
	fixture_add1(&f, ";main;p;z", 1);
	fixture_add1(&f, ";main;q;a", 1);
	fixture_add1(&f, ";main;q;b", 10);
	lay_out(&f, 2);
	assert_int_equal(layout.n, 8);
	assert_box(4, NULL, 3, 10, 1);
	assert_box(5, "q", 2, 11, 11);
	assert_box(6, "b", 3, 11, 10);
	assert_box(7, NULL, 3, 21, 1);
	done(&f);
}

/* As a tree that leaves frames out itself says it. */
static void what_the_tree_left_out_is_part_of_the_gap(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, ";main;a", 10);
	fixture_add1(&f, ";main;b;x", 1);
	fixture_add1(&f, ";main;b;y", 2);
	fixture_add1(&f, ";main;c", 4);
	assert_int_equal(frame_tree_build(f.p, &(struct frame_tree_opts){ .least = 4 }, &tree), 0);
	assert_int_equal(svg_layout_make(tree, 5, &layout), 0);
	assert_int_equal(layout.n, 4);
	assert_box(2, "a", 2, 0, 10);
	assert_box(3, NULL, 2, 10, 7);
	assert_int_equal(layout.n_left_out, 4);
	done(&f);
}

static void equal_names_share_the_first_box(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, ";main;a;main", 3);
	fixture_add1(&f, ";main;main_[k]", 3);
	lay_out(&f, 0);
	assert_int_equal(layout.boxes[1].name, 1);
	assert_int_equal(layout.boxes[3].name, 1);
	assert_int_equal(layout.boxes[4].name, 4);
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_are_in_preorder_side_by_side),
		cmocka_unit_test(narrow_children_are_one_gap_behind_the_others),
		cmocka_unit_test(gaps_of_different_parents_stay_apart),
		cmocka_unit_test(what_the_tree_left_out_is_part_of_the_gap),
		cmocka_unit_test(equal_names_share_the_first_box),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
