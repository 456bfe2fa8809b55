#include "heap/graph/graph.h"

#include "base/large.h"

#include <errno.h>
#include <string.h>

struct graph *graph_new(uint32_t n)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->n = n;
	g->first = large_alloc((size_t)n + 1, sizeof(*g->first));
	if (g->first)
		return g;
	free(g);
	return NULL;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	if (!g->borrowed) {
		large_free(g->first);
		large_free(g->edges);
	}
	large_free(g->end);
	free(g);
}

void graph_count(struct graph *g, uint32_t from)
{
	g->first[from + 1]++;
}

int graph_lay_out(struct graph *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		g->first[i + 1] += g->first[i];
	g->end = large_alloc((size_t)g->n + 1, sizeof(*g->end));
	g->edges = large_alloc(graph_edges(g) + 1, sizeof(*g->edges));
	if (!g->end || !g->edges)
		return -ENOMEM;
	memcpy(g->end, g->first, ((size_t)g->n + 1) * sizeof(*g->end));
	return 0;
}

bool graph_add(struct graph *g, uint32_t from, uint32_t to, uint32_t at)
{
	if (g->end[from] == g->first[from + 1])
		return false;
	g->edges[g->end[from]++] = (struct graph_edge){ to, at };
	return true;
}

void graph_finish(struct graph *g)
{
	uint64_t to = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		uint64_t first = g->first[i], n = g->end[i] - first;

		if (to != first)
			memmove(&g->edges[to], &g->edges[first], n * sizeof(*g->edges));
		g->first[i] = to;
		to += n;
	}
	g->first[g->n] = to;
	large_free(g->end);
	g->end = NULL;
}

struct graph *graph_reversed(const struct graph *g)
{
	_cleanup_(graph_freep) struct graph *r = graph_new(g->n);

	if (!r)
		return NULL;
	for (uint64_t i = 0; i < graph_edges(g); i++)
		graph_count(r, g->edges[i].to);
	if (graph_lay_out(r) < 0)
		return NULL;
	for (uint32_t from = 0; from < g->n; from++)
		for (uint64_t i = g->first[from]; i < g->first[from + 1]; i++)
			graph_add(r, g->edges[i].to, from, g->edges[i].at);
	graph_finish(r);
	return TAKE_PTR(r);
}
