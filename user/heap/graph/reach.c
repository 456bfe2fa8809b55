#include "heap/graph/reach.h"

#include "base/large.h"

#include <errno.h>
#include <string.h>

uint8_t *graph_reached(const struct graph *g, const struct graph_root *roots, uint64_t n_roots)
{
	_cleanup_(large_freep) uint32_t *queue = large_alloc((size_t)g->n + 1, sizeof(*queue));
	_cleanup_(freep) uint8_t *reached = calloc((size_t)g->n + 1, 1);
	uint32_t n = 0;

	if (!queue || !reached)
		return NULL;
	for (uint64_t i = 0; i < n_roots; i++)
		if (!reached[roots[i].node]) {
			reached[roots[i].node] = 1;
			queue[n++] = roots[i].node;
		}
	/* By depth: the order does not matter, and the queue stays short. */
	while (n) {
		uint32_t from = queue[--n];

		for (uint64_t i = g->first[from]; i < g->first[from + 1]; i++) {
			uint32_t to = g->edges[i].to;

			if (!reached[to]) {
				reached[to] = 1;
				queue[n++] = to;
			}
		}
	}
	return TAKE_PTR(reached);
}

static bool begin(struct graph_tree *t, uint32_t n)
{
	*t = (struct graph_tree){ 0 };
	t->from = large_alloc((size_t)n + 1, sizeof(*t->from));
	t->at = large_alloc((size_t)n + 1, sizeof(*t->at));
	t->reached = large_alloc((size_t)n + 1, 1);
	t->order = large_alloc((size_t)n + 1, sizeof(*t->order));
	return t->from && t->at && t->reached && t->order;
}

static void reach(struct graph_tree *t, uint32_t node, uint32_t from, uint32_t at)
{
	if (t->reached[node])
		return;
	t->reached[node] = 1;
	t->from[node] = from;
	t->at[node] = at;
	t->order[t->n_reached++] = node;
}

static void reach_from(struct graph_tree *t, const struct graph *g, uint32_t from,
		       graph_last_fn is_last, void *ctx)
{
	for (uint64_t e = g->first[from]; e < g->first[from + 1]; e++)
		if (!is_last || !is_last(ctx, from, &g->edges[e]))
			reach(t, g->edges[e].to, from, g->edges[e].at);
}

int graph_tree_grow(const struct graph *g, const struct graph_root *roots, uint64_t n_roots,
		    uint32_t kinds, graph_last_fn is_last, void *ctx, struct graph_tree *ret_tree)
{
	struct graph_tree *t = ret_tree;

	if (!begin(t, g->n) || n_roots >= GRAPH_NONE) {
		graph_tree_fini(t);
		return -ENOMEM;
	}
	for (uint8_t kind = 0; kind < GRAPH_ROOT_KINDS_MAX; kind++) {
		uint32_t done = t->n_reached;

		for (uint64_t i = 0; kinds & 1u << kind && i < n_roots; i++)
			if (roots[i].kind == kind)
				reach(t, roots[i].node, GRAPH_NONE, (uint32_t)i);
		for (; done < t->n_reached; done++)
			reach_from(t, g, t->order[done], is_last, ctx);
	}
	for (uint32_t done = 0; is_last && done < t->n_reached; done++)
		reach_from(t, g, t->order[done], NULL, NULL);
	return 0;
}

void graph_tree_fini(struct graph_tree *t)
{
	large_free(t->from);
	large_free(t->at);
	large_free(t->reached);
	large_free(t->order);
	*t = (struct graph_tree){ 0 };
}
