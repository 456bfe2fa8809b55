/*
 * Chains of references that prefer a container's own: its nodes and buffers hang on the container, and on an iterator, a pointer to an
 * element or what is left over behind the end of a vector only where no other chain leads to them.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_OWNERS_H
#define MEMSCOPE_HEAP_SNAPSHOT_OWNERS_H

#include "heap/graph/dominators.h"
#include "heap/snapshot/snapshot.h"

/* As graph_tree_grow() of s->graph and s->graph_roots; `at` of a root is its index in both. -ENOMEM. */
int owners_tree_grow(const struct snapshot *s, uint32_t kinds, struct graph_tree *ret_tree);

/*
 * What each object retains (graph/dominators.h): bytes that would be freed with it. A stack's or a variable's pointer into a container's
 * nodes does not count where the container leads there anyway: else one iterator that was forgotten on a stack would
 * take all of a map away from the object that has it. *ret_retained is the caller's, of large_free(). -ENOMEM.
 */
int owners_retained(const struct snapshot *s, struct graph_dominators *ret_dominators, uint64_t **ret_retained);

#endif
