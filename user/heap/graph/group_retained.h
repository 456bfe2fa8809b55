/*
 * What groups of nodes retain (all objects of a type): the sum of what its nodes retain, without those that another one of the same
 * group retains anyway.
 */
#ifndef MEMSCOPE_HEAP_GRAPH_GROUP_RETAINED_H
#define MEMSCOPE_HEAP_GRAPH_GROUP_RETAINED_H

#include "heap/graph/dominators.h"

/*
 * `retained`: graph_retained() of the same; `group_of`: of each node, < n_groups. A sum for each group; NULL: out of memory. The
 * caller's.
 */
uint64_t *graph_group_retained(const struct graph_dominators *d, const uint64_t *retained,
			       const uint32_t *group_of, uint32_t n_groups);

#endif
