#include "analyse/functions.h"

#include "base/grow.h"
#include "base/hash.h"
#include "base/id_index.h"
#include "base/saturate.h"

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

static int compare_functions(const void *a, const void *b)
{
	return function_compare(a, b);
}

static int compare_modules(const void *a, const void *b)
{
	return strcmp(((const struct function *)a)->module, ((const struct function *)b)->module);
}

/* A row while there are more to come. */
struct found {
	struct function row; /* first: it is compared as one */
	uint32_t number;
};

struct grouping {
	int (*compare)(const void *a, const void *b);
	struct found *found;
	uint32_t n_found, cap_found;
	struct id_index by_name; /* the rows found */
	uint32_t *row_of;        /* node → its row                              */
	uint32_t *on_path;       /* row → its nodes between the root and here   */
};

static void grouping_fini(struct grouping *g)
{
	free(g->found);
	id_index_free(&g->by_name);
	free(g->row_of);
	free(g->on_path);
}

void functions_fini(struct functions *f)
{
	free(f->rows);
	free(f->row_of);
	*f = (struct functions){ 0 };
}

/* The number of the row for a node, made where there is none yet. -ENOMEM. */
static int find_row(struct grouping *g, const struct frame_node *n, uint32_t *ret_row)
{
	bool modules = g->compare == compare_modules;
	struct function row = { .name = modules ? n->module : n->name,
				.module = n->module,
				.kind = n->kind };
	uint32_t hash = modules ? hash_bytes(n->module, strlen(n->module))
				: hash_bytes(&n->name, sizeof(n->name));
	struct id_at at = id_index_begin(&g->by_name, hash);

	while (id_index_next(&at, ret_row)) {
		struct function *found = &g->found[*ret_row].row;

		if (g->compare(found, &row) != 0)
			continue;
		if (found->kind == FRAME_INLINED)
			found->kind = n->kind;
		return 0;
	}
	if (!GROW(g->found, g->n_found, g->cap_found) ||
	    id_index_add(&g->by_name, hash, g->n_found) < 0)
		return -ENOMEM;
	*ret_row = g->n_found;
	g->found[g->n_found] = (struct found){ row, g->n_found };
	g->n_found++;
	return 0;
}

/* One row per function in their order, and which row each node belongs to. */
static int group(struct functions *f, struct grouping *g, const struct frame_tree *tree)
{
	_cleanup_(freep) uint32_t *place = NULL;

	g->row_of = calloc(tree->n_nodes, sizeof(*g->row_of));
	if (!g->row_of)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->n_nodes; i++)
		if (find_row(g, &tree->nodes[i], &g->row_of[i]) < 0)
			return -ENOMEM;
	f->n = g->n_found;
	f->rows = calloc(f->n + 1ul, sizeof(*f->rows));
	g->on_path = calloc(f->n + 1ul, sizeof(*g->on_path));
	place = calloc(f->n + 1ul, sizeof(*place));
	if (!f->rows || !g->on_path || !place)
		return -ENOMEM;
	if (f->n)
		qsort(g->found, f->n, sizeof(*g->found), g->compare);
	for (uint32_t i = 0; i < f->n; i++) {
		f->rows[i] = g->found[i].row;
		place[g->found[i].number] = i;
	}
	for (uint32_t i = 1; i < tree->n_nodes; i++)
		g->row_of[i] = place[g->row_of[i]];
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
	return make(tree, &(struct grouping){ .compare = compare_functions }, f);
}

int functions_make_modules(const struct frame_tree *tree, struct functions *f)
{
	return make(tree, &(struct grouping){ .compare = compare_modules }, f);
}
