/*
 * What each arena of each allocator holds, by what it is and by classes of sizes: sums over a list of blocks and parts
 * (blocks.h), in the terms of the allocators' own statistics.
 *
 *   glibc      mallinfo2(3): arena is `held` of all arenas; fordblks the sum of free, of fast and of top with 8 bytes more for
 *              each chunk of the latter two; uordblks the rest of arena; malloc_info(3) has the same of each arena. What
 *              threads have in their caches is in use there.
 *   jemalloc   stats.arenas.<i>: small.allocated + large.allocated is `live`, pactive pages are heap_arena_active(), pdirty is
 *              dirty, pmuzzy muzzy, retained retained; bins.<j>.curregs the blocks of a class. What threads have in their
 *              caches is in use there, and here.
 *   mimalloc   mi_heap_visit_blocks(): the blocks of a class. An arena is what belongs to one thread.
 */
#ifndef MEMSCOPE_HEAP_ARENAS_H
#define MEMSCOPE_HEAP_ARENAS_H

#include "heap/blocks.h"

struct heap_sum {
	uint64_t blocks, bytes;
};

struct heap_arena {
	const struct heap_owner *owner; /* of the list */
	struct heap_sum live;
	struct heap_sum part[HEAP_PART_KINDS];
};

/* Blocks of about one size in one arena. */
struct heap_class {
	uint32_t owner;
	uint64_t size;                  /* the largest of them, as a request */
	struct heap_sum live, cached, free;
};

struct heap_arenas {
	struct heap_arena *arena;       /* by owner; those that hold nothing, too */
	uint32_t n;
	struct heap_class *class;       /* by arena and size */
	uint64_t n_classes;
};

/* -ENOMEM. `b` lists all, with its parts; *ret borrows from it. */
int heap_arenas_sum(const struct heap_blocks *b, struct heap_arenas *ret);
void heap_arenas_fini(struct heap_arenas *a);

/* Bytes of pages that have blocks in use, or could have without a further one. */
uint64_t heap_arena_active(const struct heap_arena *a);
/* All that the arena has of the system; what it only has the addresses of is not part of it. */
uint64_t heap_arena_mapped(const struct heap_arena *a);

#endif
