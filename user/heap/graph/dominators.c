#include "heap/graph/dominators.h"

#include "base/large.h"

#include <errno.h>
#include <string.h>

/*
 * Everything is by depth-first number: 0 is the root of all roots, which the graph does not have. A number's `semi` and
 * `idom` are numbers as well.
 */
struct work {
	const struct graph *g, *reverse;
	uint32_t *number; /* of a node; 0: not reached                                    */
	uint32_t *node;   /* of a number                                                  */
	uint32_t *parent, *semi, *label, *idom;
	uint32_t *path; /* of the compression, and before that the stack of the search  */
	uint64_t *next; /* … how far each row is read                                   */
	uint8_t *rooted;
	uint32_t n; /* numbers, 0 among them                                        */
};

static void work_fini(struct work *w)
{
	large_free(w->number);
	large_free(w->node);
	large_free(w->parent);
	large_free(w->semi);
	large_free(w->label);
	large_free(w->idom);
	large_free(w->path);
	large_free(w->next);
	large_free(w->rooted);
}

static bool work_init(struct work *w)
{
	size_t n = (size_t)w->g->n + 1;

	w->number = large_alloc(n, sizeof(*w->number));
	w->node = large_alloc(n, sizeof(*w->node));
	w->parent = large_alloc(n, sizeof(*w->parent));
	w->semi = large_alloc(n, sizeof(*w->semi));
	w->label = large_alloc(n, sizeof(*w->label));
	w->idom = large_alloc(n, sizeof(*w->idom));
	w->path = large_alloc(n, sizeof(*w->path));
	w->next = large_alloc(n, sizeof(*w->next));
	w->rooted = large_alloc(n, 1);
	return w->number && w->node && w->parent && w->semi && w->label && w->idom && w->path &&
	       w->next && w->rooted;
}

static void number(struct work *w, uint32_t node, uint32_t parent)
{
	w->number[node] = w->n;
	w->node[w->n] = node;
	w->parent[w->n] = parent;
	w->next[node] = w->g->first[node];
	w->n++;
}

/* Numbers what is reached from one root. */
static void search_from(struct work *w, uint32_t root)
{
	uint32_t depth = 0;

	number(w, root, 0);
	w->path[depth++] = root;
	while (depth) {
		uint32_t from = w->path[depth - 1], to;

		if (w->next[from] == w->g->first[from + 1]) {
			depth--;
			continue;
		}
		to = w->g->edges[w->next[from]++].to;
		if (w->number[to])
			continue;
		number(w, to, w->number[from]);
		w->path[depth++] = to;
	}
}

/* The least semidominator on the way up from `v`, as far as numbers above `last` go: those are linked. Compresses the way. */
static uint32_t least_on_way(struct work *w, uint32_t v, uint32_t last)
{
	uint32_t n = 0, up;

	if (v <= last)
		return w->label[v];
	for (up = v; w->parent[up] > last; up = w->parent[up])
		w->path[n++] = up;
	/* From the top down: each has its parent's label, where that is less, and its ancestor. */
	while (n) {
		uint32_t x = w->path[--n], above = w->parent[x];

		if (w->label[above] < w->label[x])
			w->label[x] = w->label[above];
		w->parent[x] = w->parent[above];
	}
	return w->label[v];
}

static void find_semidominators(struct work *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		w->idom[i] = w->parent[i];
		w->label[i] = w->semi[i] = i;
	}
	for (uint32_t i = w->n - 1; i > 0; i--) {
		uint32_t node = w->node[i], semi = w->parent[i];

		if (w->rooted[node])
			semi = 0;
		for (uint64_t e = w->reverse->first[node]; semi && e < w->reverse->first[node + 1];
		     e++) {
			uint32_t from = w->number[w->reverse->edges[e].to], least;

			if (!from)
				continue;
			least = least_on_way(w, from, i);
			if (least < semi)
				semi = least;
		}
		w->semi[i] = w->label[i] = semi;
	}
}

static void find_dominators(struct work *w)
{
	for (uint32_t i = 1; i < w->n; i++)
		while (w->idom[i] > w->semi[i])
			w->idom[i] = w->idom[w->idom[i]];
}

int graph_dominators_find(const struct graph *g, const struct graph *reverse,
			  const struct graph_root *roots, uint64_t n_roots,
			  struct graph_dominators *ret_dominators)
{
	_cleanup_(work_fini) struct work w = { .g = g, .reverse = reverse, .n = 1 };
	struct graph_dominators *d = ret_dominators;

	*d = (struct graph_dominators){ .n = g->n };
	d->of = large_alloc((size_t)g->n + 1, sizeof(*d->of));
	d->order = large_alloc((size_t)g->n + 1, sizeof(*d->order));
	if (!d->of || !d->order || !work_init(&w)) {
		graph_dominators_fini(d);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < n_roots; i++) {
		w.rooted[roots[i].node] = 1;
		if (!w.number[roots[i].node])
			search_from(&w, roots[i].node);
	}
	find_semidominators(&w);
	find_dominators(&w);
	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t idom = w.idom[w.number[i]];

		d->of[i] = !w.number[i] ? GRAPH_NONE : idom ? w.node[idom] : g->n;
	}
	d->n_reached = w.n - 1;
	memcpy(d->order, w.node + 1, (size_t)d->n_reached * sizeof(*d->order));
	return 0;
}

void graph_dominators_fini(struct graph_dominators *d)
{
	large_free(d->of);
	large_free(d->order);
	*d = (struct graph_dominators){ 0 };
}

uint64_t *graph_retained(const struct graph_dominators *d, const uint64_t *sizes)
{
	uint64_t *retained = calloc((size_t)d->n + 1, sizeof(*retained));

	if (!retained)
		return NULL;
	for (uint32_t i = d->n_reached; i-- > 0;) {
		uint32_t node = d->order[i], of = d->of[node];

		retained[node] += sizes[node];
		if (of != d->n)
			retained[of] += retained[node];
	}
	return retained;
}
