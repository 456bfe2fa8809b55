/*
 * A process's memory made of bytes: an image's variables with a glibc main arena and mp_ in them, a [heap],
 * a heap of a second arena, and a mapping of a large block. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_GLIBC_FIXTURE_H
#define MEMSCOPE_TESTS_GLIBC_FIXTURE_H

#include "fake_memory.h"

#define FAKE_DATA  0x7f4000000000ULL
#define FAKE_BRK   0x560000001000ULL
#define FAKE_HEAP  0x7f4008000000ULL
#define FAKE_LARGE 0x7f4040000000ULL
#define FAKE_MAIN  (FAKE_DATA + 0x100)

enum { FAKE_PAGES = 16, FAKE_LEN = FAKE_PAGES * 4096, FAKE_BINS = 112 };

/* All bins empty, no fastbin. */
static inline void fake_arena(struct fake_memory *f, uint64_t arena, uint64_t top, uint64_t next,
			      uint64_t system_mem)
{
	uint64_t bins = arena + FAKE_BINS;

	for (uint64_t i = 0; i < 10; i++)
		fake_word(f, bins - 96 + 8 * i, 0);
	fake_word(f, bins - 16, top);
	for (uint64_t i = 0; i < 127; i++) {
		fake_word(f, bins + 16 * i, bins + 16 * i - 16);
		fake_word(f, bins + 16 * i + 8, bins + 16 * i - 16);
	}
	fake_word(f, bins + 2032 + 16, next);
	fake_word(f, bins + 2032 + 40, system_mem);
}

/* A chunk; `flags` as in its size field. Returns where the next one is. */
static inline uint64_t fake_chunk(struct fake_memory *f, uint64_t at, uint64_t size, uint64_t flags)
{
	fake_word(f, at + 8, size | flags);
	return at + size;
}

static inline void fake_heap_init(struct fake_memory *f)
{
	fake_init(f);
	fake_map(f, FAKE_BRK, FAKE_LEN, FAKE_LEN, HEAP_MAP_BRK);
	fake_map(f, FAKE_DATA, FAKE_LEN, FAKE_LEN, HEAP_MAP_DATA);
	fake_map(f, FAKE_HEAP, FAKE_LEN, FAKE_LEN, HEAP_MAP_ANON);
	fake_map(f, FAKE_LARGE, FAKE_LEN, FAKE_LEN, HEAP_MAP_ANON);
	/* mp_: nothing has a mapping of its own. */
	fake_word(f, FAKE_DATA + 0x40, 65536ULL << 32);
	fake_word(f, FAKE_DATA + 0x60, FAKE_BRK);
	fake_arena(f, FAKE_MAIN, FAKE_BRK, FAKE_MAIN, FAKE_LEN);
	fake_chunk(f, FAKE_BRK, FAKE_LEN, 1);
}

/* The top of the main arena begins at `at`. */
static inline void fake_top(struct fake_memory *f, uint64_t at)
{
	fake_word(f, FAKE_MAIN + FAKE_BINS - 16, at);
	fake_chunk(f, at, FAKE_BRK + FAKE_LEN - at, 1);
}

/* A second arena in a heap of its own; returns where its first chunk is. */
static inline uint64_t fake_second(struct fake_memory *f)
{
	uint64_t arena = FAKE_HEAP + 48, first = (arena + 2200 + 15) & ~15ULL;

	fake_word(f, FAKE_HEAP, arena);
	fake_word(f, FAKE_HEAP + 8, 0);
	fake_word(f, FAKE_HEAP + 16, FAKE_LEN);
	fake_arena(f, arena, first, FAKE_MAIN, FAKE_LEN);
	fake_word(f, FAKE_MAIN + FAKE_BINS + 2032 + 16, arena);
	fake_chunk(f, first, FAKE_HEAP + FAKE_LEN - first, 1);
	return first;
}

#endif
