/*
 * Collections by the shape of their words: where a word has the address of a block, the words around it and in that block say
 * what it is. libstdc++'s layouts are those of GCC 5 and later (bits/stl_vector.h, stl_tree.h, stl_list.h, stl_deque.h,
 * hashtable.h, basic_string.h); `at` marks the word that collection_at() is asked about:
 *
 *   vector      at: begin  end  capacity's end                                     in one block
 *   string      at: bytes  length  capacity                                        NUL at length
 *   deque       at: map  size  {cur first last node} of the start, of the finish   chunks of one size
 *   map, set    colour  at: root  leftmost  rightmost  count       node: colour  parent  left  right  value
 *   list        at: next  prev  count                              node: next  prev  value
 *   unordered   at: buckets  number  first node  count  load factor  …             node: next  value
 *   dict        type  at: table  table of a rehash  used  …  of redis 7.0, and that of 4 to 6:  at: table  size  size - 1  used
 *
 * libc++'s vectors, lists and unordered ones look the same (its lists have the previous node first). The others (string, __tree, deque,
 * with the layout that is not "alternate"; LLVM 14 was tried):
 *
 *   string      capacity + 1, odd  length  at: bytes                                NUL at length
 *   map, set    first  at: root  count                             node: left  right  parent  is it black?  value
 *   deque       at: map  begin  end  capacity's end  index of the first  count      chunks of 4 KiB at most
 *
 * HashMap and HashSet of Rust have the address of their control bytes, behind the elements, the last of which comes first:
 *
 *   hashbrown   at: control bytes  buckets - 1  room left  count, and before 1.65 with the second one first    element… control byte…
 *
 * Maps, lists, deques, unordered ones, tables and dicts are believed when all their nodes are blocks that refer to each other as they
 * have to and are as many as the count says. Vectors and strings have nothing to count: blocks of about their capacity.
 *
 * The memory is the process's and may have any bytes: a walk ends after as many steps as there are blocks, and all walks together after
 * as many as `steps` says. For nodes may be in many collections, and a table that is none is looked at for each word that refers to it.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_COLLECTION_H
#define MEMSCOPE_HEAP_SNAPSHOT_COLLECTION_H

#include "heap/snapshot/block_index.h"

#include <stddef.h>

enum collection_kind {
	COLLECTION_MAP,
	COLLECTION_LIST,
	COLLECTION_DEQUE,
	COLLECTION_UNORDERED,
	COLLECTION_DICT,
	COLLECTION_LIBCXX_MAP,
	COLLECTION_LIBCXX_DEQUE,
	COLLECTION_HASHBROWN,
	COLLECTION_STRING, /* from here on: nothing to count */
	COLLECTION_VECTOR,
	COLLECTION_KINDS
};

/* What blocks are to their collection. */
enum collection_part { COLLECTION_NODE, COLLECTION_TABLE, COLLECTION_BUFFER };

struct collection {
	uint8_t kind, reserved[7];
	uint64_t at;       /* of its first word above                                        */
	uint32_t in;       /* the block that this word is in; BLOCK_NONE: a variable or a stack */
	uint32_t table;    /* its first block: the buffer, the buckets, the map of a deque, the root, the first node */
	uint64_t elements; /* of a vector and a deque: words in use, since the size of an element is not known; of a string bytes */
	uint64_t unused, live; /* of the table: bytes [unused, live) are in use; what else it has is left over */
	uint64_t blocks, bytes; /* that it owns                                             */
};

struct collection_memory {
	/* What there is from `addr` on, in one piece. NULL: nothing. */
	const uint8_t *(*bytes)(void *ctx, uint64_t addr, uint64_t *ret_len);
	void *ctx;
	const struct heap_block *blocks;
	uint64_t n_blocks;
	const struct block_index *index;
	uint8_t *visited; /* of each block: it was looked at as a list's node. Zeroed in the beginning */
	uint64_t *steps;  /* that are left; at 0 nothing is found any more. NULL: any number          */
};

/*
 * The collection whose word at `at` has the address of the block `to`, or one in it. `counted`: of the kinds whose nodes are counted, else of
 * the others. A list is found by any word of it, once.
 */
bool collection_at(const struct collection_memory *m, uint64_t at, uint32_t to, bool counted, struct collection *ret_collection);

/* Each block of what collection_at() has found. */
typedef void (*collection_block_fn)(void *ctx, uint32_t block, enum collection_part part);
void collection_each(const struct collection_memory *m, const struct collection *c, collection_block_fn fn, void *ctx);

/* --- between collection.c and collection_nodes.c --- */

enum { COLLECTION_WORDS = 11 };

/* Words from `addr` on; those that are not there are 0. */
void collection_words(const struct collection_memory *m, uint64_t addr, uint64_t *words, uint32_t n);
/* The block that begins at `addr` and has room for `least` bytes; BLOCK_NONE. */
uint32_t collection_block(const struct collection_memory *m, uint64_t addr, uint64_t least);

/* false: there is no step left. */
static inline bool collection_step(const struct collection_memory *m)
{
	if (m->steps && !*m->steps)
		return false;
	if (m->steps)
		--*m->steps;
	return true;
}

static inline uint64_t collection_size(const struct collection_memory *m, uint32_t block)
{
	return 8 * (uint64_t)m->blocks[block].words;
}

/*
 * Could a block of this size have been allocated for so many bytes? Allocators round up: by a quarter at most (jemalloc's
 * classes), small ones to 24 bytes (glibc).
 */
static inline bool collection_fits(uint64_t bytes, uint64_t size)
{
	return bytes <= size && size - bytes <= 24 + size / 4;
}

/*
 * Of one kind: does it begin there? w[1] is the word at `at`, w[0] the one before it, w[10] the last. `walk` goes through its
 * blocks; false: it does not hold together.
 */
struct collection_shape {
	bool (*match)(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS], uint64_t at, uint32_t to,
		      struct collection *c);
	bool (*walk)(const struct collection_memory *m, const struct collection *c, collection_block_fn fn, void *ctx);
};

extern const struct collection_shape collection_map, collection_list, collection_unordered, collection_dict, collection_libcxx_map,
	collection_libcxx_deque, collection_hashbrown;

#endif
