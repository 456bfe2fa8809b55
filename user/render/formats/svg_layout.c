#include "render/formats/svg_layout.h"

#include "base/saturate.h"

#include <errno.h>

static int box_add(struct svg_layout *l, const struct svg_box *box)
{
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 1024;
		struct svg_box *grown;

		if (cap <= l->cap)
			return -ENOMEM;
		grown = realloc(l->boxes, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->boxes = grown;
		l->cap = cap;
	}
	l->boxes[l->n++] = *box;
	if (box->node != SVG_LEFT_OUT && box->depth > l->max_depth)
		l->max_depth = box->depth;
	return 0;
}

/* Of each depth: where the next frame begins, and what of its parent's children is left out so far. */
struct at_depth {
	int64_t start, left_out;
};

struct placing {
	struct svg_layout *layout;
	const struct frame_tree *tree;
	double least;
	struct at_depth *depths;
	uint32_t n_shown;
};

static bool is_shown(const struct placing *p, uint32_t node)
{
	return !node || (double)p->tree->nodes[node].total >= p->least;
}

/* A box, or one more of those left out. */
static int place_one(struct placing *p, uint32_t node)
{
	const struct frame_node *n = &p->tree->nodes[node];
	struct at_depth *here = &p->depths[n->depth];

	if (!is_shown(p, node)) {
		here->left_out = add_saturating(here->left_out, n->total);
		return 0;
	}
	p->n_shown++;
	here[1].start = here->start;
	here[1].left_out = p->tree->left_out ? p->tree->left_out[node] : 0;
	here->start = add_saturating(here->start, n->total);
	return box_add(p->layout, &(struct svg_box){ node, n->depth, here[1].start, n->total, 0 });
}

/* Behind the last child. */
static int place_left_out(struct placing *p, uint32_t depth)
{
	struct at_depth *here = &p->depths[depth];

	if (!here->left_out)
		return 0;
	return box_add(p->layout,
		       &(struct svg_box){ SVG_LEFT_OUT, depth, here->start, here->left_out, 0 });
}

/* Depth first, children left to right. */
static int place(struct placing *p)
{
	const struct frame_node *nodes = p->tree->nodes;
	uint32_t node = 0;
	int r;

	for (;;) {
		bool shown = is_shown(p, node);

		r = place_one(p, node);
		if (r == 0 && shown && nodes[node].first_child) {
			node = nodes[node].first_child;
			continue;
		}
		if (r == 0 && shown)
			r = place_left_out(p, nodes[node].depth + 1);
		while (r == 0 && node && !nodes[node].next_sibling) {
			r = place_left_out(p, nodes[node].depth);
			node = nodes[node].parent;
		}
		if (r < 0 || !node)
			return r;
		node = nodes[node].next_sibling;
	}
}

struct naming {
	const struct svg_box *boxes;
	const struct frame_node *nodes;
};

static int compare_pointers(const void *a, const void *b)
{
	return a == b ? 0 : (uintptr_t)a < (uintptr_t)b ? -1 : 1;
}

static int same_name(const struct frame_node *a, const struct frame_node *b)
{
	return compare_pointers(a->name, b->name) ?: compare_pointers(a->module, b->module) ?:
	       (int)a->kind - (int)b->kind;
}

/* Equal names together (their pointers are equal: they are interned), first box first. */
static int compare_boxes(const void *a, const void *b, void *arg)
{
	const struct naming *by = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return same_name(&by->nodes[by->boxes[x].node], &by->nodes[by->boxes[y].node])
		       ?: (x < y ? -1 : 1);
}

static int find_names(struct svg_layout *l, const struct frame_tree *tree)
{
	_cleanup_(freep) uint32_t *order = calloc(l->n, sizeof(*order));
	struct naming by = { l->boxes, tree->nodes };
	uint32_t n = 0, first = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->boxes[i].node != SVG_LEFT_OUT)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), compare_boxes, &by);
	for (uint32_t i = 0; i < n; i++) {
		struct svg_box *box = &l->boxes[order[i]];

		if (!i ||
		    same_name(&tree->nodes[l->boxes[first].node], &tree->nodes[box->node]) != 0)
			first = order[i];
		box->name = first;
	}
	return 0;
}

int svg_layout_make(const struct frame_tree *tree, double least, struct svg_layout *layout)
{
	_cleanup_(freep) struct at_depth *depths = calloc(tree->max_depth + 3ul, sizeof(*depths));
	struct placing p = { layout, tree, least, depths, 0 };
	int r;

	if (!depths)
		return -ENOMEM;
	layout->n = layout->max_depth = 0;
	r = place(&p);
	if (r < 0)
		return r;
	layout->n_left_out = tree->n_nodes - p.n_shown + tree->n_left_out;
	return find_names(layout, tree);
}

void svg_layout_fini(struct svg_layout *layout)
{
	free(layout->boxes);
	*layout = (struct svg_layout){ 0 };
}
