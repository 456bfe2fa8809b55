#include "heap/graph/reach.h"

#include <errno.h>
#include <string.h>

uint8_t *graph_reached(const struct graph *g, const struct graph_root *roots, uint64_t n_roots)
{
	_cleanup_(freep) uint32_t *queue = calloc((size_t)g->n + 1, sizeof(*queue));
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

/* The first root of a node; n_roots: it has none. */
static uint64_t find_root(const struct graph_root *roots, uint64_t n_roots, uint32_t node)
{
	uint64_t low = 0, high = n_roots;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (roots[mid].node < node)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n_roots && roots[low].node == node ? low : n_roots;
}

static void note_roots(struct graph_chains *c, const struct graph_root *roots, uint64_t n_roots, uint32_t node,
		       uint32_t length)
{
	for (uint64_t i = find_root(roots, n_roots, node); i < n_roots && roots[i].node == node; i++)
		if (!c->of[roots[i].kind].found) {
			c->of[roots[i].kind].found = true;
			c->of[roots[i].kind].length = length;
			c->of[roots[i].kind].root = i;
		}
}

static bool begin(struct graph_chains *c, uint32_t n)
{
	c->next = malloc(((size_t)n + 1) * sizeof(*c->next));
	c->at = malloc(((size_t)n + 1) * sizeof(*c->at));
	return c->next && c->at;
}

int graph_chains_to(const struct graph *reverse, const struct graph_root *roots, uint64_t n_roots, const uint32_t *wanted,
		    uint64_t n_wanted, bool (*is_weak)(void *ctx, uint32_t from, uint32_t at), void *ctx,
		    struct graph_chains *ret_chains)
{
	_cleanup_(freep) uint32_t *queue = calloc((size_t)reverse->n + 1, sizeof(*queue));
	_cleanup_(freep) uint8_t *met = calloc((size_t)reverse->n + 1, 1);
	uint32_t n = 0, length = 0;

	*ret_chains = (struct graph_chains){ 0 };
	if (!queue || !met || !begin(ret_chains, reverse->n)) {
		graph_chains_fini(ret_chains);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < n_wanted; i++)
		if (!met[wanted[i]]) {
			met[wanted[i]] = 1;
			ret_chains->next[wanted[i]] = GRAPH_NONE;
			queue[n++] = wanted[i];
		}
	for (uint32_t at = 0, level = n; at < n; at++) {
		uint32_t node = queue[at];

		if (at == level) {
			length++;
			level = n;
		}
		note_roots(ret_chains, roots, n_roots, node, length);
		for (uint64_t i = reverse->first[node]; i < reverse->first[node + 1]; i++) {
			const struct graph_edge *e = &reverse->edges[i];

			if (met[e->to] || (is_weak && is_weak(ctx, e->to, e->at)))
				continue;
			met[e->to] = 1;
			ret_chains->next[e->to] = node;
			ret_chains->at[e->to] = e->at;
			queue[n++] = e->to;
		}
	}
	ret_chains->keepers = n;
	return 0;
}

void graph_chains_fini(struct graph_chains *c)
{
	free(c->next);
	free(c->at);
	*c = (struct graph_chains){ 0 };
}
