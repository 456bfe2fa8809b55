/*
 * Blocks in use, as walkers find them: all of them listed, or only those that are asked for, so that a heap of any
 * number of blocks can be walked in little memory. Whatever is listed, all are counted, by classes of sizes as
 * well.
 *
 * What is in a list is in the order in which walkers add it, until heap_blocks_sort(). A walker that starts
 * again from an earlier point takes back what it has added since: heap_blocks_mark(), heap_blocks_rewind().
 */
#ifndef MEMSCOPE_HEAP_BLOCKS_H
#define MEMSCOPE_HEAP_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

enum { HEAP_CLASSES_MAX = 512 };

/* A block in use. Sizes in words of 8 bytes; beyond 32 GiB they stay there. Programs have addresses of 47 bits on x86-64 and
 * 48 on arm64, unless they ask for more (Documentation/arch/x86/x86_64/5level-paging.rst). */
struct heap_block {
	uint64_t addr : 48, owner : 16; /* owner: index into owners[]; 0: not known */
	uint32_t words, resident_words;
};

#define HEAP_ADDR_MASK 0xffffffffffffULL
#if defined(__x86_64__)
#define HEAP_ADDR_BITS 47
#else
#define HEAP_ADDR_BITS 48
#endif

/* Whose blocks are: one arena of an allocator, by its number there. */
enum { HEAP_OWNERS_MAX = 1 << 16 };
#define HEAP_NO_ARENA UINT32_MAX /* blocks that have mappings of their own */

struct heap_owner {
	const char *allocator;   /* "glibc"; NULL: owners[0]                                     */
	uint32_t arena;
	uint64_t metadata;       /* bytes: headers of blocks, what no block fits into              */
	uint64_t held;           /* bytes that the arena says it has of the system; 0: it does not */
};

/* What an allocator holds besides blocks in use. */
enum heap_kind {
	HEAP_PART_CACHED,    /* freed, in a thread's cache                                */
	HEAP_PART_FAST,      /* freed, not joined with its neighbours yet                 */
	HEAP_PART_FREE,      /* in lists, or regions of a slab                            */
	HEAP_PART_DIRTY,     /* whole pages, unused, resident                             */
	HEAP_PART_MUZZY,     /* … that the kernel may take                                */
	HEAP_PART_RETAINED,  /* … addresses alone                                         */
	HEAP_PART_TOP,       /* ends of arenas that were never handed out                 */
	HEAP_PART_UNKNOWN,   /* not walked                                                */
	HEAP_PART_RUN,       /* a slab, page or span: released when no block of it is used; overlaps the others */
	HEAP_PART_KINDS
};

struct heap_part {
	uint64_t addr : 48, owner : 16;
	uint32_t words, kind;
};

struct heap_range {
	uint64_t from, end;
};

/* How many there were, listed or not. */
struct heap_counts {
	uint64_t blocks, words;
	uint64_t class_words[HEAP_CLASSES_MAX];
};

struct heap_blocks {
	/* What is asked for: `max` is how many are listed at most. */
	uint64_t max;
	const uint64_t *sought;       /* sorted: only blocks that one of these addresses is in; NULL: all */
	uint64_t n_sought;
	uint64_t one_in;              /* a sample of about one in so many, by their addresses; 0: all     */
	bool objects;                 /* those of interpreters as well                                    */
	bool wants_parts;             /* what is not in use, too                                          */
	uint32_t (*class_of)(uint64_t words); /* < HEAP_CLASSES_MAX; NULL: classes are not counted       */

	struct heap_range *unknown;   /* parts of heaps that were not walked */
	uint32_t n_unknown;
	struct heap_block *rows;      /* by address once the walk is over */
	uint64_t n, room;
	struct heap_part *parts;      /* … as well */
	uint64_t n_parts, room_parts;
	struct heap_owner *owners;
	uint32_t n_owners, first_owner; /* first_owner: arena 0 of the allocator that is walked */
	uint16_t owner;               /* of what is added now */
	bool over;                    /* there were more, or no memory for them */
	struct heap_counts all;
	uint64_t at;                  /* of `sought`: where the last block was */
};

/* A point to return to, while nothing is sorted or removed. */
struct heap_mark {
	uint64_t n, n_parts, metadata;
	bool over;
	struct heap_counts all;
};

/* `b` may be NULL in all of these. */
void heap_blocks_add(struct heap_blocks *b, uint64_t addr, uint64_t bytes, uint64_t resident);
/* What is added from here on is this allocator's, and of this arena of it; its arenas are numbered from 0. */
void heap_blocks_allocator(struct heap_blocks *b, const char *allocator);
void heap_blocks_arena(struct heap_blocks *b, uint32_t arena);
/* The arena's figure of what it has of the system; bytes of it that are neither a block nor a part. */
void heap_blocks_held(struct heap_blocks *b, uint64_t bytes);
void heap_blocks_metadata(struct heap_blocks *b, uint64_t bytes);
void heap_blocks_part(struct heap_blocks *b, enum heap_kind kind, uint64_t addr, uint64_t bytes);
/* One that was added is not in use: it is not counted any more. Removing it from the list is the caller's. */
void heap_blocks_uncount(struct heap_blocks *b, uint64_t bytes);
/* What lies there was not walked. */
void heap_blocks_unknown(struct heap_blocks *b, uint64_t from, uint64_t end);
void heap_blocks_mark(const struct heap_blocks *b, struct heap_mark *ret_mark);
void heap_blocks_rewind(struct heap_blocks *b, const struct heap_mark *mark);
/* Nothing is found yet; what is asked for stays. */
void heap_blocks_clear(struct heap_blocks *b);

/* "glibc arena 3"; "glibc, own mappings"; "mappings of no allocator" of those that heap/snapshot/ adds; "unknown". */
enum { HEAP_OWNER_NAME_MAX = 64 };
void heap_owner_name(const struct heap_owner *owner, char name[HEAP_OWNER_NAME_MAX]);
#define HEAP_NO_ALLOCATOR "none"

/* Of a row; never NULL. Until heap_blocks_free(). */
const struct heap_owner *heap_blocks_owner(const struct heap_blocks *b, uint32_t owner);

/* Are all listed, so that what is not in the list is not in use? */
bool heap_blocks_lists_all(const struct heap_blocks *b);
void heap_blocks_sort(struct heap_blocks *b);
/* The first row at or behind `addr`; b->n when there is none. Sorted. */
uint64_t heap_blocks_find(const struct heap_blocks *b, uint64_t addr);
void heap_blocks_free(struct heap_blocks *b);

#endif
