/*
 * What is free between blocks in use, and what pins it. A unit of memory can go back to the system, or to blocks of
 * other sizes, when nothing in it is in use: a slab, page or span of an allocator that has such runs, a page of 4 KiB of
 * others (glibc: malloc_trim(3) releases those inside free chunks). A unit of which an eighth or less is in use is
 * sparse; its free bytes are pinned by the type that has most of the bytes in use in it.
 */
#ifndef MEMSCOPE_HEAP_FRAGMENTATION_H
#define MEMSCOPE_HEAP_FRAGMENTATION_H

#include "heap/blocks.h"

enum { FRAGMENTATION_SPARSE = 8 };

struct fragmentation_arena {
	uint64_t live;             /* bytes in use                                               */
	uint64_t free;             /* bytes in no use: caches, lists, ends, dirty and muzzy pages  */
	uint64_t between;          /* … at lower addresses than some block in use of the arena   */
	uint64_t empty;            /* … in units that have nothing in use                        */
	uint64_t shared;           /* … in units that have: free is empty + shared                */
	uint64_t pinned;           /* … of those in sparse ones                                  */
	uint64_t used, sparse;     /* units that have something in use                           */
	uint64_t last;             /* the row of the last block in use, UINT64_MAX: none         */
};

/* What sparse units have in use. */
struct fragmentation_type {
	uint64_t pinned;           /* free bytes of units of which it has most                   */
	uint64_t units;            /* … those                                                    */
	uint64_t blocks, bytes;    /* of the type, in all sparse units; a block in two pages counts in both */
};

struct fragmentation {
	struct fragmentation_arena *arena; /* by owner */
	uint32_t n_arenas;
	struct fragmentation_type *type;   /* by what type_of() says */
	uint32_t n_types;
};

/* `b`: sorted, lists all, with its parts. `type_of`: of a row, less than n_types. -ENOMEM. */
int fragmentation_find(const struct heap_blocks *b, const uint32_t *type_of, uint32_t n_types,
		       struct fragmentation *ret);
void fragmentation_fini(struct fragmentation *f);

#endif
