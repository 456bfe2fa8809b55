/*
 * The part of a dominator tree that is worth reading: the nodes that retain most, each below the one that retains it.
 *
 * Where a node hands on nearly all that it retains to a single other one, and that again, those in between say nothing: a list of
 * a million nodes is one row. The row at the other end of such a chain says how many there are in between.
 */
#ifndef MEMSCOPE_HEAP_GRAPH_DOMINATOR_TREE_H
#define MEMSCOPE_HEAP_GRAPH_DOMINATOR_TREE_H

#include "heap/graph/dominators.h"

struct dominator_row {
	uint32_t node;
	uint32_t depth;    /* of rows, 0 for those that no other node dominates      */
	uint32_t skipped;  /* nodes between it and the row above it that it hangs on */
};

/*
 * At most `max` rows that retain at least `least` bytes, the largest first, each before the rows below it. `retained`: of
 * graph_retained(). *ret_rows is the caller's. -ENOMEM.
 */
int dominator_tree_rows(const struct graph_dominators *d, const uint64_t *retained, uint64_t least, uint32_t max,
			struct dominator_row **ret_rows, uint32_t *ret_n);

#endif
