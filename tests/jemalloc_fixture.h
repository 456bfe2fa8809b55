/*
 * A process's memory made of bytes: jemalloc's map of pages with one leaf, its extents' edata, and memory
 * for them. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_JEMALLOC_FIXTURE_H
#define MEMSCOPE_TESTS_JEMALLOC_FIXTURE_H

#include "fake_memory.h"

#define JE_BSS   0x7f5000000000ULL
#define JE_ROOT  (JE_BSS + 0x3040) /* begins anywhere in it */
#define JE_LEAF  0x7f5040000000ULL
#define JE_EDATA 0x7f5050000000ULL
#define JE_MEM   0x7f5080000000ULL

enum { JE_TABLE = 8 << 18, JE_BSS_LEN = JE_TABLE + 0x4000, JE_EDATA_LEN = 1 << 16,
       JE_MEM_LEN = 64 << 12 };

static inline void je_init(struct fake_memory *f)
{
	fake_init(f);
	fake_map(f, JE_BSS, JE_BSS_LEN, JE_BSS_LEN, HEAP_MAP_ZEROED);
	fake_map(f, JE_LEAF, JE_TABLE, JE_TABLE, HEAP_MAP_ANON);
	fake_map(f, JE_EDATA, JE_EDATA_LEN, JE_EDATA_LEN, HEAP_MAP_ANON);
	fake_map(f, JE_MEM, JE_MEM_LEN, JE_MEM_LEN, HEAP_MAP_ANON);
	fake_word(f, JE_ROOT + 8 * (JE_MEM >> 30), JE_LEAF);
}

/* The tables of size classes, at `sizes` and at `classes`. */
static inline void je_tables(struct fake_memory *f, uint64_t sizes, uint64_t classes)
{
	uint64_t size = 0, step = 8;
	uint32_t n = 0;
	uint8_t bytes[8 * 65] = { 0 };

	/* 8, 16, 32, 48, 64, then four steps to each next power of two. */
	for (uint32_t class = 0; class < 232; class++) {
		step = class < 2 ? 8 : class < 5 ? 16 : (class - 5) % 4 ? step : 1ULL << (4 + (class - 5) / 4);
		size += step;
		fake_word(f, sizes + 8 * class, size);
		for (; n <= 512 && 8 * n <= size; n++)
			bytes[n] = (uint8_t)class;
	}
	for (uint32_t i = 0; i < 65; i++) {
		uint64_t word;

		memcpy(&word, bytes + 8 * i, sizeof(word));
		fake_word(f, classes + 8 * i, word);
	}
}

static inline void je_entry(struct fake_memory *f, uint64_t page, uint64_t class, uint64_t number,
			    bool slab)
{
	fake_word(f, JE_LEAF + 8 * (page >> 12 & 0x3ffff),
		  class << 48 | (JE_EDATA + 128 * number) | slab);
}

/* An extent of a class, its edata being the `number`th. */
struct je_extent {
	uint64_t number, addr, size, state, class, nfree;
	bool slab;
};

/* With its entries in the leaf. */
static inline void je_extent(struct fake_memory *f, struct je_extent x)
{
	uint64_t d = JE_EDATA + 128 * x.number;

	fake_word(f, d, (uint64_t)x.slab << 12 | x.state << 17 | x.class << 20 | x.nfree << 28);
	fake_word(f, d + 8, x.addr);
	fake_word(f, d + 16, x.size);
	for (uint64_t i = 0; i < 8; i++) { /* the first ones are free */
		uint64_t n = x.nfree > 64 * i ? x.nfree - 64 * i : 0;

		fake_word(f, d + 64 + 8 * i, n >= 64 ? UINT64_MAX : (1ULL << n) - 1);
	}
	for (uint64_t page = x.addr & ~4095ULL; page < x.addr + x.size; page += 4096)
		if (x.slab || page == (x.addr & ~4095ULL) || page + 4096 >= x.addr + x.size)
			je_entry(f, page, x.class, x.number, x.slab);
}

#endif
