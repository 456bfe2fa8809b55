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
 * The shortest chain from a root of each kind to one of some nodes, found backwards from them: one pass over what keeps them, by
 * breadth. `reverse`: graph_reversed(). Edges `is_weak` keep nothing alive: they are no part of a chain (NULL: none is).
 */
struct graph_chains {
	struct {
		bool found;
		uint32_t length;    /* edges; 0: the root points to it                      */
		uint64_t root;      /* index of the root                                    */
	} of[GRAPH_ROOT_KINDS_MAX];
	uint32_t *next;             /* of each node met: the next towards the wanted ones; GRAPH_NONE: it is one of them */
	uint32_t *at;               /* … and the place of that edge                          */
	uint64_t keepers;           /* nodes met: all that reach one of the wanted ones      */
};

/* -ENOMEM. `roots` are sorted by node. */
int graph_chains_to(const struct graph *reverse, const struct graph_root *roots, uint64_t n_roots, const uint32_t *wanted,
		    uint64_t n_wanted, bool (*is_weak)(void *ctx, uint32_t from, uint32_t at), void *ctx,
		    struct graph_chains *ret_chains);
void graph_chains_fini(struct graph_chains *c);

#endif
