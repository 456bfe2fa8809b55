/*
 * Chains of references that prefer a container's own: its nodes and buffers hang on the container, and on an iterator, a pointer to an
 * element or what is left over behind the end of a vector only where no other chain leads to them.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_OWNERS_H
#define MEMSCOPE_HEAP_SNAPSHOT_OWNERS_H

#include "heap/snapshot/snapshot.h"

/* As graph_tree_grow() of s->graph and s->graph_roots; `at` of a root is its index in both. -ENOMEM. */
int owners_tree_grow(const struct snapshot *s, uint32_t kinds, struct graph_tree *ret_tree);

#endif
