/*
 * A directed graph in compressed rows: who points to whom. Nodes are numbered from 0 and carry nothing here; what a node
 * is (a block of memory, an object) is the caller's. An edge carries one number, its place in its source, so that a chain of
 * edges can be said in terms of fields.
 *
 * It is built in two passes over the same edges: the first counts them, the second puts each where it belongs, so that it
 * takes 8 bytes an edge and 8 a node, and 8 more a node while it is made.
 *
 *   graph_new(n)   graph_count(g, from) for each   graph_lay_out(g)   graph_add(g, from, to, at) for each
 *
 * The second pass may have fewer edges than the first (memory that changes while it is read): graph_finish() closes the
 * gaps. More are refused.
 */
#ifndef MEMSCOPE_HEAP_GRAPH_GRAPH_H
#define MEMSCOPE_HEAP_GRAPH_GRAPH_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

#define GRAPH_NONE UINT32_MAX

struct graph_edge {
	uint32_t to;
	uint32_t at; /* its place in the node that it leaves, in the caller's units */
};

struct graph {
	uint32_t n;               /* nodes, < GRAPH_NONE                                   */
	uint64_t *first;          /* n + 1: edges of node i are [first[i], first[i + 1])    */
	struct graph_edge *edges;
	uint64_t *end;            /* while it is built: how far each row is filled          */
	bool borrowed;            /* first and edges are another's, who frees them            */
};

/* NULL: out of memory. */
struct graph *graph_new(uint32_t n);
void graph_free(struct graph *g);
DEFINE_CLEANUP(struct graph *, graph_freep, graph_free)

void graph_count(struct graph *g, uint32_t from);
/* -ENOMEM. */
int graph_lay_out(struct graph *g);
/* false: there is no room, for the first pass counted fewer of this node. */
bool graph_add(struct graph *g, uint32_t from, uint32_t to, uint32_t at);
void graph_finish(struct graph *g);

static inline uint64_t graph_edges(const struct graph *g)
{
	return g->first[g->n];
}

/* The same edges the other way round; `at` stays that of the node the edge left. NULL: out of memory. */
struct graph *graph_reversed(const struct graph *g);

#endif
