#include "render/formats/svg_layout.h"

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

/* A frame too narrow to draw, at `start`: one more of the run before it, or a new run. */
static int leave_out(struct svg_layout *l, const struct frame_node *n, int64_t start)
{
	struct svg_box *last = &l->boxes[l->n - 1];

	if (last->node == SVG_LEFT_OUT && last->depth == n->depth &&
	    last->start + last->value == start) {
		last->value += n->total;
		return 0;
	}
	return box_add(l, &(struct svg_box){ SVG_LEFT_OUT, n->depth, start, n->total, 0 });
}

/* Depth first, children left to right; `starts[d]` is where the next node of depth d begins. */
static int place(struct svg_layout *l, const struct frame_tree *tree, double least, int64_t *starts)
{
	uint32_t node = 0;
	int r;

	for (;;) {
		const struct frame_node *n = &tree->nodes[node];
		bool shown = !node || (double)n->total >= least;

		if (shown)
			r = box_add(l, &(struct svg_box){ node, n->depth, starts[n->depth],
							  n->total, 0 });
		else
			r = leave_out(l, n, starts[n->depth]);
		if (r < 0)
			return r;
		if (shown && n->first_child) {
			starts[n->depth + 1] = starts[n->depth];
			node = n->first_child;
			continue;
		}
		while (node && !tree->nodes[node].next_sibling) {
			starts[tree->nodes[node].depth] += tree->nodes[node].total;
			node = tree->nodes[node].parent;
		}
		if (!node)
			return 0;
		starts[tree->nodes[node].depth] += tree->nodes[node].total;
		node = tree->nodes[node].next_sibling;
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
	_cleanup_(freep) int64_t *starts = calloc(tree->max_depth + 2ul, sizeof(*starts));
	int r;

	if (!starts)
		return -ENOMEM;
	r = place(layout, tree, least, starts);
	return r < 0 ? r : find_names(layout, tree);
}

void svg_layout_fini(struct svg_layout *layout)
{
	free(layout->boxes);
	*layout = (struct svg_layout){ 0 };
}
