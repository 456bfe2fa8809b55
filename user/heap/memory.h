/*
 * The memory of a process for readers of allocators' structures: what is mapped, bytes, and which
 * of them are resident. The process owns those bytes and may be hostile; it also keeps running
 * while it is read.
 *
 * heap_process.h makes one of a live process; tests and the fuzzer make theirs of bytes.
 */
#ifndef MEMSCOPE_HEAP_MEMORY_H
#define MEMSCOPE_HEAP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAP_PAGE = 4096, HEAP_WALKERS_MAX = 8 };

enum heap_map_kind {
	HEAP_MAP_OTHER,   /* file, shared, not writable                                     */
	HEAP_MAP_DATA,    /* private and writable, of a file: an image's variables          */
	HEAP_MAP_ZEROED,  /* anonymous, right behind such a one: its .bss                   */
	HEAP_MAP_BRK,     /* [heap]                                                         */
	HEAP_MAP_STACK,   /* of a thread                                                    */
	HEAP_MAP_ANON,    /* private, writable, of no file                                  */
};

struct heap_map {
	uint64_t start, end;
	uint64_t rss;
	enum heap_map_kind kind;
};

/* Where an earlier walk of the same process found what others then need not search for; zeroed: nothing yet. */
enum { HEAP_PY_INTERPRETERS = 16 };

struct heap_found {
	uint64_t jemalloc; /* the word of .bss that led to its map of pages */
	/* Of each allocator that is searched for: how often in vain, with these images, and how many walks come
	 * before the next search. */
	uint64_t images;
	struct {
		uint32_t missed, wait;
		bool there; /* it was found: a walk that does not was in the middle of a change */
	} searched[HEAP_WALKERS_MAX];
	uint64_t py_pools, py_arenas; /* CPython's variables usedpools and arenas */
	/* Where the states of its interpreters lie, to be filled in: those with a lock of their own have pools of their own. */
	uint64_t py_interp[HEAP_PY_INTERPRETERS];
	uint32_t n_py_interp;
};

struct heap_memory {
	const struct heap_map *maps;  /* by address, disjoint                            */
	uint32_t n_maps;
	/* Copies `len` bytes. Untouched memory reads as zeros and stays untouched. false: it is not
	 * there (any more), or the time is up. */
	bool (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	/* How many of these bytes are in resident pages. */
	uint64_t (*resident)(void *ctx, uint64_t addr, uint64_t len);
	void *ctx;
	struct heap_found *found; /* is read, checked and written; NULL: search each time */
};

/*
 * The first of words[i] … words[n - 1] that is not 0; n: there is none. Of tables that allocators reserve at once most pages were never
 * touched, and a page's words are looked at together.
 */
uint64_t heap_words_next(const uint64_t *words, uint64_t i, uint64_t n);

/* The mapping that `addr` is in, NULL when there is none. */
const struct heap_map *heap_map_of(const struct heap_memory *mem, uint64_t addr);

/*
 * A window on memory that is read from its low end to its high one, a word at a time.
 */
enum { HEAP_WINDOW = 64 << 10, HEAP_WINDOW_LEAST = 4 << 10 };

struct heap_window {
	const struct heap_memory *mem;
	uint64_t limit;          /* nothing is read at or behind it                       */
	uint64_t addr, len;      /* what `bytes` holds                                     */
	uint64_t size;           /* of the next: it grows while one lies behind the other  */
	uint64_t loads;          /* how often it was filled                               */
	uint8_t bytes[HEAP_WINDOW];
};

/* The word at `addr`, which is a multiple of 8. false: it cannot be read. */
bool heap_window_word(struct heap_window *w, uint64_t addr, uint64_t *ret_word);
/* Drops the window's contents, which are read again. */
void heap_window_forget(struct heap_window *w);

#endif
