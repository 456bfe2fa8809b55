/*
 * What a process's allocators hold, by their own structures, read from outside: blocks in use,
 * blocks that are free but retained, and bookkeeping.
 *
 * The process is not stopped. Each 64 KiB of its memory is of one moment, the whole is not: blocks
 * that are allocated or freed during the walk may be counted or not. What does not add up is read
 * again, and finally counted in `unknown`: held by the allocator, in use or not. Nothing is
 * trusted: the bytes are the process's, every size and pointer is checked against the mappings,
 * every loop is bounded.
 *
 * Bytes in use are the usable sizes of blocks, which are the requested sizes rounded up: no
 * allocator here keeps the requested size. A block that was never touched is in use, and not
 * resident.
 */
#ifndef MEMSCOPE_HEAP_CENSUS_H
#define MEMSCOPE_HEAP_CENSUS_H

#include "heap/blocks.h"
#include "heap/memory.h"

struct heap_amount {
	uint64_t blocks;
	uint64_t bytes;
	uint64_t resident;  /* of bytes: in resident pages */
};

struct heap_use {
	const char *allocator;        /* "glibc"                                             */
	uint32_t arenas;
	uint32_t caches;              /* of threads, that hold something                    */
	bool objects;                 /* an interpreter's: its blocks are listed only if asked for */
	struct heap_amount live;      /* in use; mapped among them                           */
	struct heap_amount mapped;    /* of live: those that have a mapping of their own     */
	struct heap_amount cached;    /* freed, kept for the thread that freed: tcache        */
	struct heap_amount fast;      /* freed, not joined with their neighbours yet         */
	struct heap_amount free;      /* in the allocator's lists                            */
	struct heap_amount top;       /* ends of arenas, not handed out (since the last trim) */
	struct heap_amount metadata;  /* headers of blocks and of arenas; `blocks` is 0      */
	struct heap_amount unknown;   /* not walked: in use or free                          */
	const char *caveat;            /* why some is unknown or not separated; a sentence; or NULL */
};

enum { HEAP_ALLOCATORS_MAX = 8 };

/* Of an address; in_use.h says what they mean. */
enum heap_answer { HEAP_FREE, HEAP_IN_USE, HEAP_CANNOT_SAY };

struct heap_census {
	struct heap_use use[HEAP_ALLOCATORS_MAX];
	uint32_t n;
	struct heap_blocks *blocks;   /* where blocks in use go, or NULL    */
};

/* Everything the table of walkers finds. `c` is zeroed but for c->blocks. -ENOMEM. */
int heap_census_take(const struct heap_memory *mem, struct heap_census *c);

/* What is resident of all that allocators hold. */
uint64_t heap_use_resident(const struct heap_use *u);

/* --- for walkers --- */

/* Returns how much of it is resident. */
uint64_t heap_amount_add(struct heap_amount *a, const struct heap_memory *mem, uint64_t addr,
			 uint64_t bytes);
/* The same, and a part of `blocks`, which may be NULL. */
void heap_part_add(struct heap_amount *a, const struct heap_memory *mem, struct heap_blocks *blocks,
		   enum heap_kind kind, uint64_t addr, uint64_t bytes);
/* Removes a counted block from an amount. */
void heap_amount_take(struct heap_amount *a, const struct heap_memory *mem, uint64_t addr,
		      uint64_t bytes);
/*
 * One allocator. Adds what it finds to a zeroed `use`, and blocks in use to `blocks`, which may be NULL.
 * -ENOENT: this process does not have it; -ENOMEM.
 */
typedef int (*heap_walk_fn)(const struct heap_memory *mem, struct heap_use *use,
			    struct heap_blocks *blocks);

int heap_walk_glibc(const struct heap_memory *mem, struct heap_use *use, struct heap_blocks *blocks);
int heap_walk_jemalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks);
int heap_walk_mimalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks);
int heap_walk_mallocng(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks);
int heap_walk_tcmalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks);
int heap_walk_pymalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks);

#endif
