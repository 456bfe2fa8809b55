/*
 * Who is reached from the roots, and by which shortest chain. A root is a place outside the graph that points into it; of one
 * kind or another (a stack, a variable), for what keeps a thing alive is another answer by its kind.
 */
#ifndef MEMSCOPE_HEAP_GRAPH_REACH_H
#define MEMSCOPE_HEAP_GRAPH_REACH_H

#include "heap/graph/graph.h"

enum { GRAPH_ROOT_KINDS_MAX = 16 };

struct graph_root {
	uint32_t node;
	uint8_t kind; /* < GRAPH_ROOT_KINDS_MAX; lower ones are the better answer where chains are as long */
};

/* For each node whether a root reaches it: g->n bytes of 0 or 1. NULL: out of memory. The caller's. */
uint8_t *graph_reached(const struct graph *g, const struct graph_root *roots, uint64_t n_roots);

/*
 * A chain from the roots to each node: a tree. Of a root of the lowest kind that reaches the node, for that is the better answer
 * however long its chain is, and of those the shortest. Roots whose kind is not in `kinds` (bits) do not count. Edges that are
 * last lead only to nodes that no chain without one leads to (NULL: none is).
 */
struct graph_tree {
	uint32_t *from;  /* the node before; GRAPH_NONE: a root, or it is not reached     */
	uint32_t *at;    /* the place of that edge in it; of a root: its index            */
	uint8_t *reached;
	uint32_t *order; /* those that are reached, each behind the one before it         */
	uint32_t n_reached;
};

typedef bool (*graph_last_fn)(void *ctx, uint32_t from, const struct graph_edge *edge);

/* -ENOMEM. `roots` are sorted by node, and of one node by kind. */
int graph_tree_grow(const struct graph *g, const struct graph_root *roots, uint64_t n_roots, uint32_t kinds,
		    graph_last_fn is_last, void *ctx, struct graph_tree *ret_tree);
void graph_tree_fini(struct graph_tree *t);

#endif
