/*
 * Large mappings that belong to no allocator that is known: mmap(2) by the program itself, or by an allocator that is not walked.
 * Each is one object, which refers to what its words point to. Nobody can tell whether it is still used: so each is kept by a root of
 * its own.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_MAPPINGS_H
#define MEMSCOPE_HEAP_SNAPSHOT_MAPPINGS_H

#include "heap/snapshot/snapshot.h"

enum { MAPPINGS_LEAST = 64 << 10 };

/* Adds them to s->blocks and s->census, before anything else is made of those. `owned`: of each mapping, whether somebody knows
 * what is in it. -ENOMEM. */
int mappings_add(struct snapshot *s, const bool *owned);
/* Is this block one? */
bool mappings_has(const struct heap_blocks *b, uint64_t row);

#endif
