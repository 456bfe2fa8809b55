/*
 * What the fuzz targets of allocators have in common: the words that they put into a process's memory, and checks of a
 * walk over it.
 */
#ifndef MEMSCOPE_TESTS_FUZZ_HEAP_INPUT_H
#define MEMSCOPE_TESTS_FUZZ_HEAP_INPUT_H

#include "base/bytes.h"
#include "fake_memory.h"
#include "heap/blocks.h"

#include <errno.h>

/* `word` goes to an offset of one of several places; `what` is what it is counted from. */
struct heap_word {
	uint8_t where, len, what;
	uint16_t offset;
	uint64_t word;
};

/* where:1 offset:2 bytes:1 what:1 word:8. false: that was the last. */
static inline bool heap_word_next(struct bytes *in, struct heap_word *ret)
{
	*ret = (struct heap_word){ 0 };
	if (bytes_u8(in, &ret->where) < 0 || bytes_u16(in, &ret->offset) < 0 ||
	    bytes_u8(in, &ret->len) < 0 || bytes_u8(in, &ret->what) < 0 ||
	    bytes_u64(in, &ret->word) < 0)
		return false;
	ret->len = 1 + ret->len % 8;
	return true;
}

/* The walk ends, in so many reads at most; the blocks that it counts as live are those in `blocks`, the caller's. */
static inline void heap_check_walk(struct fake_memory *f, heap_walk *walk, const char *allocator,
				   uint64_t reads_max, struct heap_blocks *blocks)
{
	struct heap_use use;
	int r = fake_walk(f, walk, allocator, &use, blocks);

	if ((r < 0 && r != -ENOENT) || f->reads > reads_max ||
	    (!blocks->over && use.live.blocks != blocks->n))
		abort();
}

/* The same, and each block lies in a mapping, apart from the others. */
static inline void heap_check_walk_apart(struct fake_memory *f, heap_walk *walk,
					 const char *allocator, uint64_t reads_max)
{
	struct heap_blocks blocks = { .max = 1 << 16, .wants_parts = true };

	heap_check_walk(f, walk, allocator, reads_max, &blocks);
	if (!fake_blocks_lie_apart(f, &blocks, 0))
		abort();
	heap_blocks_free(&blocks);
}

#endif
