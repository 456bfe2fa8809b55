/*
 * Dominators: what would be freed if a node were. A node d dominates n when each chain from a root to n leads through d;
 * the nearest of those is n's immediate dominator, and the bytes of all that a node dominates are what it retains.
 *
 * Semi-NCA (Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", 2005, chapter 2): depth-first numbers,
 * semidominators with path compression, then the nearest common ancestor in the tree as far as it is built. O(n log n) in
 * practice, 37 bytes a node besides the graph while they are found, 8 afterwards.
 */
#ifndef MEMSCOPE_HEAP_GRAPH_DOMINATORS_H
#define MEMSCOPE_HEAP_GRAPH_DOMINATORS_H

#include "heap/graph/reach.h"

struct graph_dominators {
	uint32_t n;
	uint32_t *of;        /* immediate dominator; n: only the roots together; GRAPH_NONE: no root reaches it */
	uint32_t *order;     /* those that are reached, each after its dominator                              */
	uint32_t n_reached;
};

/* -ENOMEM. `reverse`: graph_reversed(g). */
int graph_dominators_find(const struct graph *g, const struct graph *reverse, const struct graph_root *roots,
			  uint64_t n_roots, struct graph_dominators *ret_dominators);
void graph_dominators_fini(struct graph_dominators *d);

/* What each retains of `sizes`, its own among it: d->n sums; 0 for what is not reached. NULL: out of memory. The caller's. */
uint64_t *graph_retained(const struct graph_dominators *d, const uint64_t *sizes);

#endif
