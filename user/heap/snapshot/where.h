/*
 * Which of millions of blocks an address lies in, in two loads: a bit for each 8 bytes of the stretches of memory that have
 * blocks, set where one begins, and how many begin before each 64 of those (24 MiB a GiB). Addresses that no stretch has, which
 * most words are, end at a comparison.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_WHERE_H
#define MEMSCOPE_HEAP_SNAPSHOT_WHERE_H

#include "base/cleanup.h"
#include "heap/blocks.h"

#define WHERE_NONE UINT32_MAX

struct where;

/* `blocks`: sorted by address, none begins in another; borrowed. NULL: out of memory, or 2^32 - 1 of them or more. */
struct where *where_new(const struct heap_block *blocks, uint64_t n);
void where_free(struct where *w);
DEFINE_CLEANUP(struct where *, where_freep, where_free)

/* The index of the block that has the byte at `addr`, and how far into it that is; WHERE_NONE. */
uint32_t where_is(const struct where *w, uint64_t addr, uint32_t *ret_offset);

#endif
