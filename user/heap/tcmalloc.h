/*
 * Inside heap/: how gperftools' tcmalloc has its structures (2.7 to 2.16 on 64-bit machines with addresses of 48 bits and pages
 * of 8 KiB), found by what they contain and not by symbols.
 *
 *   root:     2^17 words in .bss, by bits 47 … 31 of an address: where the leaf is
 *   leaf:     2^18 words, by bits 30 … 13: the span that this page belongs to (of a free one: its first and last page)
 *   span:     start:8 length:8 (in pages) next:8 prev:8 objects:8 refcount:16|class:8|location:2|sample:1 …
 *             objects: those that are free, a list through their first words; class 0: the span is one block
 *             location: 0 in use, 1 free, 2 free and released to the system
 *   sizes:    class_to_size_, words of 4 bytes: 0, 8, 16, 32 … 262144
 *   central:  for each class, 1,216 bytes apart: lock:8 class:8 two spans of 48 n:8 n:8 slots[64] { head tail } used:4 …
 *   cache:    of a thread: for each class { list:8 length:4 … size:4 } of 32 bytes; behind them next and prev
 */
#ifndef MEMSCOPE_HEAP_TCMALLOC_H
#define MEMSCOPE_HEAP_TCMALLOC_H

#include "heap/census.h"

enum {
	TC_SHIFT = 13,
	TC_ROOT = 1 << 17,
	TC_LEAF = 1 << 18,
	TC_CLASSES = 128,
	TC_SPAN = 48,
	TC_LIST = 32,        /* of a class in a thread's cache                 */
	TC_CENTRAL = 1216,   /* from one class to the next                     */
	TC_SLOTS = 64,
	TC_SLOTS_AT = 120,   /* behind the word that has the class …           */
	TC_USED_AT = TC_SLOTS_AT + 16 * TC_SLOTS,
};

struct tc_span {
	uint64_t start, length, next, prev, objects;
	uint32_t bits, pad;
};

struct tc_found {
	uint64_t root;
	uint64_t central;    /* the word that has class 1; 0: not found        */
	uint64_t cache;      /* of some thread; 0: not found                   */
	uint32_t sizes[TC_CLASSES];
	uint32_t n_classes;
};

static inline uint32_t tc_class(const struct tc_span *s)
{
	return s->bits >> 16 & 255;
}

static inline uint32_t tc_location(const struct tc_span *s)
{
	return s->bits >> 24 & 3;
}

/* Do the words of `at` look like the cache of a thread? */
bool tc_is_cache(const struct heap_memory *mem, const struct tc_found *tc, uint64_t at);
/* -ENOENT: it is not there. */
int tc_find(const struct heap_memory *mem, struct tc_found *ret_found);

#endif
