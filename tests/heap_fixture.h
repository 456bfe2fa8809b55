/*
 * A process's memory made of bytes: an image's variables with a glibc main arena and mp_ in them, a [heap],
 * a heap of a second arena, and a mapping of a large block. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_HEAP_FIXTURE_H
#define MEMSCOPE_TESTS_HEAP_FIXTURE_H

#include "heap/memory.h"

#include <stdlib.h>
#include <string.h>

#define FAKE_DATA  0x7f4000000000ULL
#define FAKE_BRK   0x560000001000ULL
#define FAKE_HEAP  0x7f4008000000ULL
#define FAKE_LARGE 0x7f4040000000ULL
#define FAKE_MAIN  (FAKE_DATA + 0x100)

enum { FAKE_PAGES = 16, FAKE_LEN = FAKE_PAGES * 4096, FAKE_N = 4, FAKE_BINS = 112 };

struct fake_heap {
	struct heap_memory mem;
	struct heap_map maps[FAKE_N];
	uint8_t *bytes[FAKE_N];
	uint64_t reads;
};

static inline uint8_t *fake_at(struct fake_heap *f, uint64_t addr, size_t len)
{
	for (int i = 0; i < FAKE_N; i++)
		if (addr >= f->maps[i].start && addr < f->maps[i].end &&
		    len <= f->maps[i].end - addr)
			return f->bytes[i] + (addr - f->maps[i].start);
	return NULL;
}

static inline bool fake_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct fake_heap *f = ctx;
	uint8_t *from = fake_at(f, addr, len);

	f->reads++;
	if (from)
		memcpy(buf, from, len);
	return from;
}

static inline uint64_t fake_resident(void *ctx, uint64_t addr, uint64_t len)
{
	(void)ctx;
	(void)addr;
	return len;
}

static inline void fake_word(struct fake_heap *f, uint64_t addr, uint64_t word)
{
	uint8_t *to = fake_at(f, addr, sizeof(word));

	if (to)
		memcpy(to, &word, sizeof(word));
}

static inline uint64_t fake_word_at(struct fake_heap *f, uint64_t addr)
{
	uint64_t word = 0;

	fake_read(f, addr, &word, sizeof(word));
	return word;
}

/* All bins empty, no fastbin. */
static inline void fake_arena(struct fake_heap *f, uint64_t arena, uint64_t top, uint64_t next,
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
static inline uint64_t fake_chunk(struct fake_heap *f, uint64_t at, uint64_t size, uint64_t flags)
{
	fake_word(f, at + 8, size | flags);
	return at + size;
}

static inline void fake_heap_init(struct fake_heap *f)
{
	static const struct heap_map maps[FAKE_N] = {
		{ FAKE_BRK, FAKE_BRK + FAKE_LEN, FAKE_LEN, HEAP_MAP_BRK },
		{ FAKE_DATA, FAKE_DATA + FAKE_LEN, FAKE_LEN, HEAP_MAP_DATA },
		{ FAKE_HEAP, FAKE_HEAP + FAKE_LEN, FAKE_LEN, HEAP_MAP_ANON },
		{ FAKE_LARGE, FAKE_LARGE + FAKE_LEN, FAKE_LEN, HEAP_MAP_ANON },
	};

	memset(f, 0, sizeof(*f));
	memcpy(f->maps, maps, sizeof(maps));
	for (int i = 0; i < FAKE_N; i++) {
		f->bytes[i] = calloc(1, FAKE_LEN);
		if (!f->bytes[i])
			abort();
	}
	f->mem = (struct heap_memory){ f->maps, FAKE_N, fake_read, fake_resident, f };
	/* mp_: nothing has a mapping of its own. */
	fake_word(f, FAKE_DATA + 0x40, 65536ULL << 32);
	fake_word(f, FAKE_DATA + 0x60, FAKE_BRK);
	fake_arena(f, FAKE_MAIN, FAKE_BRK, FAKE_MAIN, FAKE_LEN);
	fake_chunk(f, FAKE_BRK, FAKE_LEN, 1);
}

static inline void fake_heap_fini(struct fake_heap *f)
{
	for (int i = 0; i < FAKE_N; i++)
		free(f->bytes[i]);
}

/* The top of the main arena begins at `at`. */
static inline void fake_top(struct fake_heap *f, uint64_t at)
{
	fake_word(f, FAKE_MAIN + FAKE_BINS - 16, at);
	fake_chunk(f, at, FAKE_BRK + FAKE_LEN - at, 1);
}

/* A second arena in a heap of its own; returns where its first chunk is. */
static inline uint64_t fake_second(struct fake_heap *f)
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
