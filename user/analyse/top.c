#include "analyse/top.h"

#include <errno.h>
#include <string.h>

/* A function is a name in an image; inlined copies of it are the same function. */
static int compare_functions(const struct frame_node *a, const struct frame_node *b)
{
	/* Names are interned: equal strings are equal pointers. */
	if (a->name != b->name)
		return (uintptr_t)a->name < (uintptr_t)b->name ? -1 : 1;
	return a->module == b->module ? 0 : strcmp(a->module, b->module);
}

static int compare_nodes(const void *a, const void *b, void *nodes)
{
	const struct frame_node *all = nodes;

	return compare_functions(&all[*(const uint32_t *)a], &all[*(const uint32_t *)b]);
}

struct table {
	struct top_row *rows;
	uint32_t n;
	uint32_t *row_of;  /* node → its row                              */
	uint32_t *on_path; /* row → its nodes between the root and here   */
};

static void table_fini(struct table *t)
{
	free(t->rows);
	free(t->row_of);
	free(t->on_path);
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* One row per function, and which row each node belongs to. */
static int group(struct table *t, const struct frame_tree *tree)
{
	_cleanup_(freep) uint32_t *order = calloc(tree->n_nodes, sizeof(*order));
	const struct frame_node *last = NULL;

	t->rows = calloc(tree->n_nodes, sizeof(*t->rows));
	t->row_of = calloc(tree->n_nodes, sizeof(*t->row_of));
	t->on_path = calloc(tree->n_nodes, sizeof(*t->on_path));
	if (!order || !t->rows || !t->row_of || !t->on_path)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->n_nodes; i++)
		order[i - 1] = i;
	qsort_r(order, tree->n_nodes - 1, sizeof(*order), compare_nodes, (void *)tree->nodes);
	for (uint32_t i = 0; i + 1 < tree->n_nodes; i++) {
		const struct frame_node *n = &tree->nodes[order[i]];

		if (!last || compare_functions(n, last) != 0)
			t->rows[t->n++] = (struct top_row){ n->name, n->module, n->kind, 0, 0 };
		else if (t->rows[t->n - 1].kind == FRAME_INLINED)
			t->rows[t->n - 1].kind = n->kind;
		t->row_of[order[i]] = t->n - 1;
		last = n;
	}
	return 0;
}

static void enter(struct table *t, const struct frame_tree *tree, uint32_t node)
{
	uint32_t row = t->row_of[node];
	const struct frame_node *n = &tree->nodes[node];

	t->rows[row].self = add_saturating(t->rows[row].self, n->self);
	if (!t->on_path[row]++)
		t->rows[row].total = add_saturating(t->rows[row].total, n->total);
}

/* Down to the first child, along the siblings, up when there is none; no recursion. */
static void add_up(struct table *t, const struct frame_tree *tree)
{
	uint32_t node = tree->nodes[0].first_child;

	while (node) {
		enter(t, tree, node);
		if (tree->nodes[node].first_child) {
			node = tree->nodes[node].first_child;
			continue;
		}
		for (;;) {
			t->on_path[t->row_of[node]]--;
			if (tree->nodes[node].next_sibling) {
				node = tree->nodes[node].next_sibling;
				break;
			}
			node = tree->nodes[node].parent;
			if (!node)
				return;
		}
	}
}

static int compare_rows(const void *a, const void *b, void *order)
{
	const struct top_row *x = a, *y = b;
	bool by_self = *(enum top_order *)order == TOP_BY_SELF;
	int64_t vx = by_self ? x->self : x->total, vy = by_self ? y->self : y->total;

	if (vx != vy)
		return vx > vy ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->module, y->module);
}

int top_functions(const struct profile *p, uint32_t type, enum top_order order, struct top_row *out,
		  uint32_t cap)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(table_fini) struct table t = { 0 };
	uint32_t n = 0;
	int r;

	r = frame_tree_build(p, &(struct frame_tree_opts){ .type = type }, &tree);
	if (r < 0)
		return r;
	r = group(&t, tree);
	if (r < 0)
		return r;
	add_up(&t, tree);
	qsort_r(t.rows, t.n, sizeof(*t.rows), compare_rows, &order);
	for (; n < t.n && n < cap; n++) {
		if (order == TOP_BY_SELF && !t.rows[n].self)
			break;
		out[n] = t.rows[n];
	}
	return (int)n;
}
