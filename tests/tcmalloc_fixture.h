/*
 * A process's memory made of bytes: tcmalloc's map of pages with three spans, a thread's cache and one between threads. Tests
 * and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_TCMALLOC_FIXTURE_H
#define MEMSCOPE_TESTS_TCMALLOC_FIXTURE_H

#include "fake_memory.h"
#include "heap/tcmalloc.h"

#define TCF_BSS	 0x555000000000ULL
#define TCF_META 0x556000000000ULL
#define TCF_HEAP 0x200000000ULL

enum {
	TCF_PAGE = TCF_HEAP >> TC_SHIFT,
	TCF_ROOT = 0x100,
	TCF_SIZES = 0x804, /* as in 2.10, not at a multiple of 8 */
	TCF_CACHES = 0x900,
	TCF_CENTRAL = 0x1000,
	TCF_BSS_LEN = 8 << 12,
	TCF_SPANS = 8 * TC_LEAF,
	TCF_CACHE = TCF_SPANS + (4 << 10),
	TCF_META_LEN = TCF_SPANS + (16 << 10),
	TCF_HEAP_LEN = 4 << TC_SHIFT,
	TCF_CLASSES = 17,  /* 0, 8, 16 … 262144 */
	TCF_CLASS = 8,     /* of 1,024 bytes     */
	TCF_SIZE = 1024,
	TCF_OBJECTS = 8,
};

static inline uint64_t tcf_object(uint64_t i)
{
	return TCF_HEAP + i * TCF_SIZE;
}

static inline uint64_t tcf_span(int i)
{
	return TCF_META + TCF_SPANS + TC_SPAN * (uint64_t)i;
}

/* The words of span `i`, and the entries of its pages. */
static inline void tcf_put_span(struct fake_memory *f, int i, uint64_t page, uint64_t length, uint64_t objects, uint32_t bits)
{
	fake_word(f, tcf_span(i), TCF_PAGE + page);
	fake_word(f, tcf_span(i) + 8, length);
	fake_word(f, tcf_span(i) + 32, objects);
	fake_put(f, tcf_span(i) + 40, bits, 4);
	for (uint64_t k = 0; k < length && k < 8; k++)
		fake_word(f, TCF_META + 8 * ((TCF_PAGE + page + k) % TC_LEAF), tcf_span(i));
}

/* Of eight objects 0 and 1 are free, 2 is in a thread's cache, 3 between threads, four are in use; then a block of two pages,
 * and a free page. */
static inline void tcf_init(struct fake_memory *f)
{
	fake_init(f);
	fake_map(f, TCF_HEAP, TCF_HEAP_LEN, TCF_HEAP_LEN, HEAP_MAP_ANON);
	fake_map(f, TCF_BSS, TCF_BSS_LEN, TCF_BSS_LEN, HEAP_MAP_ZEROED);
	fake_map(f, TCF_META, TCF_META_LEN, TCF_META_LEN, HEAP_MAP_BRK);
	fake_word(f, TCF_BSS + TCF_ROOT + 8 * (TCF_PAGE / TC_LEAF), TCF_META);
	fake_word(f, TCF_BSS + TCF_CACHES, TCF_META + TCF_CACHE);
	for (uint64_t c = 1; c < TCF_CLASSES; c++) {
		fake_put(f, TCF_BSS + TCF_SIZES + 4 * c, 4 << c, 4);
		fake_word(f, TCF_BSS + TCF_CENTRAL + (c - 1) * TC_CENTRAL, c);
		fake_put(f, TCF_META + TCF_CACHE + c * TC_LIST + 24, 4 << c, 4);
	}
	tcf_put_span(f, 0, 0, 1, tcf_object(0), (TCF_OBJECTS - 2) | TCF_CLASS << 16);
	fake_word(f, tcf_object(0), tcf_object(1));
	tcf_put_span(f, 1, 1, 2, 0, 1);
	tcf_put_span(f, 2, 3, 1, 0, 1 << 24);
	fake_word(f, TCF_META + TCF_CACHE + TCF_CLASS * TC_LIST, tcf_object(2));
	fake_put(f, TCF_META + TCF_CACHE + TCF_CLASS * TC_LIST + 8, 1, 4);
	fake_word(f, TCF_BSS + TCF_CENTRAL + (TCF_CLASS - 1) * TC_CENTRAL + TC_SLOTS_AT, tcf_object(3));
	fake_word(f, TCF_BSS + TCF_CENTRAL + (TCF_CLASS - 1) * TC_CENTRAL + TC_SLOTS_AT + 8, tcf_object(3));
	fake_put(f, TCF_BSS + TCF_CENTRAL + (TCF_CLASS - 1) * TC_CENTRAL + TC_USED_AT, 1, 4);
}

#endif
