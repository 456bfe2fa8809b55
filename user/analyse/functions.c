#include "analyse/functions.h"

#include <errno.h>
#include <string.h>

static int compare_names(const char *a, const char *a_module, const char *b, const char *b_module)
{
	/* Names are interned: equal strings are equal pointers. */
	if (a != b)
		return (uintptr_t)a < (uintptr_t)b ? -1 : 1;
	return a_module == b_module ? 0 : strcmp(a_module, b_module);
}

int function_compare(const struct function *a, const struct function *b)
{
	return compare_names(a->name, a->module, b->name, b->module);
}

static int compare_nodes(const void *a, const void *b, void *nodes)
{
	const struct frame_node *all = nodes, *x = &all[*(const uint32_t *)a],
				*y = &all[*(const uint32_t *)b];

	return compare_names(x->name, x->module, y->name, y->module);
}

static int compare_modules(const void *a, const void *b, void *nodes)
{
	const struct frame_node *all = nodes;

	return strcmp(all[*(const uint32_t *)a].module, all[*(const uint32_t *)b].module);
}

struct grouping {
	int (*compare)(const void *a, const void *b, void *nodes);
	uint32_t *row_of;  /* node → its row                              */
	uint32_t *on_path; /* row → its nodes between the root and here   */
};

static void grouping_fini(struct grouping *g)
{
	free(g->row_of);
	free(g->on_path);
}

void functions_fini(struct functions *f)
{
	free(f->rows);
	free(f->row_of);
	*f = (struct functions){ 0 };
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* One row per function, and which row each node belongs to. */
static int group(struct functions *f, struct grouping *g, const struct frame_tree *tree)
{
	_cleanup_(freep) uint32_t *order = calloc(tree->n_nodes, sizeof(*order));
	void *nodes = (void *)tree->nodes;

	f->rows = calloc(tree->n_nodes, sizeof(*f->rows));
	g->row_of = calloc(tree->n_nodes, sizeof(*g->row_of));
	g->on_path = calloc(tree->n_nodes, sizeof(*g->on_path));
	if (!order || !f->rows || !g->row_of || !g->on_path)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->n_nodes; i++)
		order[i - 1] = i;
	qsort_r(order, tree->n_nodes - 1, sizeof(*order), g->compare, nodes);
	for (uint32_t i = 0; i + 1 < tree->n_nodes; i++) {
		const struct frame_node *n = &tree->nodes[order[i]];

		if (!i || g->compare(&order[i - 1], &order[i], nodes) != 0)
			f->rows[f->n++] = (struct function){
				.name = g->compare == compare_modules ? n->module : n->name,
				.module = n->module,
				.kind = n->kind,
			};
		else if (f->rows[f->n - 1].kind == FRAME_INLINED)
			f->rows[f->n - 1].kind = n->kind;
		g->row_of[order[i]] = f->n - 1;
	}
	return 0;
}

static void enter_sides(struct function *row, const struct frame_sides *s, bool first)
{
	for (int i = 0; i < 2; i++) {
		row->sides.self[i] = add_saturating(row->sides.self[i], s->self[i]);
		if (first)
			row->sides.total[i] = add_saturating(row->sides.total[i], s->total[i]);
	}
}

static void enter(struct functions *f, struct grouping *g, const struct frame_tree *tree,
		  uint32_t node)
{
	struct function *row = &f->rows[g->row_of[node]];
	const struct frame_node *n = &tree->nodes[node];
	bool first = !g->on_path[g->row_of[node]]++;

	row->self = add_saturating(row->self, n->self);
	if (first)
		row->total = add_saturating(row->total, n->total);
	if (tree->sides)
		enter_sides(row, &tree->sides[node], first);
}

/* Down to the first child, along the siblings, up when there is none; no recursion. */
static void add_up(struct functions *f, struct grouping *g, const struct frame_tree *tree)
{
	uint32_t node = tree->nodes[0].first_child;

	while (node) {
		enter(f, g, tree, node);
		if (tree->nodes[node].first_child) {
			node = tree->nodes[node].first_child;
			continue;
		}
		for (;;) {
			g->on_path[g->row_of[node]]--;
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

static int make(const struct frame_tree *tree, struct grouping *g, struct functions *f)
{
	int r;

	*f = (struct functions){ 0 };
	r = group(f, g, tree);
	if (r == 0) {
		add_up(f, g, tree);
		f->row_of = TAKE_PTR(g->row_of);
	}
	grouping_fini(g);
	return r;
}

int functions_make(const struct frame_tree *tree, struct functions *f)
{
	return make(tree, &(struct grouping){ .compare = compare_nodes }, f);
}

int functions_make_modules(const struct frame_tree *tree, struct functions *f)
{
	return make(tree, &(struct grouping){ .compare = compare_modules }, f);
}
