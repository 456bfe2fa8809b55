/*
 * Which of millions of blocks an address lies in, in two loads: a bit for each 8 bytes of the stretches of memory that have
 * blocks, set where one begins, and how many begin before each 64 of those (24 MiB a GiB). Addresses that no stretch has, which
 * most words are, end at a comparison.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_BLOCK_INDEX_H
#define MEMSCOPE_HEAP_SNAPSHOT_BLOCK_INDEX_H

#include "base/cleanup.h"
#include "heap/blocks.h"

#define BLOCK_NONE UINT32_MAX

struct block_index;

/* `blocks`: sorted by address, none begins in another; borrowed. NULL: out of memory, or 2^32 - 1 of them or more. */
struct block_index *block_index_new(const struct heap_block *blocks, uint64_t n);
/* The same without the bits: no memory and no time for it, and a search of some 30 steps for each address. */
struct block_index *block_index_sorted(const struct heap_block *blocks, uint64_t n);
void block_index_free(struct block_index *w);
DEFINE_CLEANUP(struct block_index *, block_index_freep, block_index_free)

/* The index of the block that has the byte at `addr`, and how far into it that is; BLOCK_NONE. */
uint32_t block_index_find(const struct block_index *w, uint64_t addr, uint32_t *ret_offset);

#endif
