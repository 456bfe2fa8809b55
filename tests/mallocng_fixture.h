/*
 * A process's memory made of bytes: musl's context, an area of metas, a group of ten slots, and one in a slot of it. Tests and
 * the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_MALLOCNG_FIXTURE_H
#define MEMSCOPE_TESTS_MALLOCNG_FIXTURE_H

#include "fake_memory.h"

#define NG_BSS	  0x555000000000ULL
#define NG_AREA	  0x555000100000ULL
#define NG_GROUP  0x7f7000000000ULL
#define NG_SECRET 0x1234567890abcdefULL

enum { NG_CONTEXT = 0x100, NG_LEN = 2 << 12, NG_STRIDE = 36 * 16, NG_SLOTS = 10, NG_INNER_SLOTS = 4 };

static inline uint64_t ng_meta(int i)
{
	return NG_AREA + 24 + 40 * (uint64_t)i;
}

static inline uint64_t ng_slot(uint64_t i)
{
	return NG_GROUP + 16 + i * NG_STRIDE;
}

/* The header of a slot: which it is, and how many of its bytes are spare (up to 4), or what else is said there. */
static inline void ng_header(struct fake_memory *f, uint64_t at, uint32_t index, uint32_t reserved)
{
	fake_put(f, at - 4, 0, 1);
	fake_put(f, at - 3, index | reserved << 5, 1);
}

static inline void ng_fill_meta(struct fake_memory *f, int i, uint64_t mem, uint32_t avail, uint32_t freed, uint64_t bits)
{
	fake_word(f, ng_meta(i) + 16, mem);
	fake_put(f, ng_meta(i) + 24, avail, 4);
	fake_put(f, ng_meta(i) + 28, freed, 4);
	fake_word(f, ng_meta(i) + 32, bits);
	fake_word(f, mem, ng_meta(i));
}

/* Slots 0 to 5 are used, of which 4 has a group with 3 of 4 blocks used; 6 and 7 are freed, 8 and 9 never used. */
static inline void ng_init(struct fake_memory *f)
{
	uint64_t inner = ng_slot(4);

	fake_init(f);
	fake_map(f, NG_BSS, HEAP_PAGE, HEAP_PAGE, HEAP_MAP_ZEROED);
	fake_map(f, NG_AREA, HEAP_PAGE, HEAP_PAGE, HEAP_MAP_BRK);
	fake_map(f, NG_GROUP, NG_LEN, NG_LEN, HEAP_MAP_ANON);
	fake_word(f, NG_BSS + NG_CONTEXT, NG_SECRET);
	fake_word(f, NG_BSS + NG_CONTEXT + 56, NG_AREA);
	fake_word(f, NG_BSS + NG_CONTEXT + 64, NG_AREA);
	fake_word(f, NG_AREA, NG_SECRET);
	fake_put(f, NG_AREA + 16, (HEAP_PAGE - 24) / 40, 4);
	/* Class 16: 36 units; two pages. */
	ng_fill_meta(f, 0, NG_GROUP, 3 << 8, 3 << 6, (NG_SLOTS - 1) | 16 << 6 | (uint64_t)(NG_LEN >> 12) << 12);
	for (uint32_t i = 0; i < NG_SLOTS; i++)
		ng_header(f, ng_slot(i), i, i == 4 ? 6 : i % 4);
	/* Class 1: 2 units. */
	ng_fill_meta(f, 1, inner, 0, 1 << 3, (NG_INNER_SLOTS - 1) | 1 << 6);
	for (uint32_t i = 0; i < NG_INNER_SLOTS; i++)
		ng_header(f, inner + 16 + 32 * i, i, 0);
}

#endif
