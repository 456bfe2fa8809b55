/*
 * Where jemalloc has its structures in a process, found by what they contain and not by symbols; and the block
 * that one address lies in.
 */
#ifndef MEMSCOPE_HEAP_JEMALLOC_H
#define MEMSCOPE_HEAP_JEMALLOC_H

#include "heap/census.h"

/* Addresses in the process. */
struct heap_jemalloc {
	uint64_t root;    /* of the map of pages                                      */
	uint64_t sizes;   /* sz_index2size_tab: 232 words, the size of each class      */
	uint64_t classes; /* sz_size2index_tab: 513 bytes, the class of each 8 bytes   */
	uint32_t layout;  /* of an extent's edata: 0 is that of 5.3, 1 that of 5.2     */
};

/* -ENOENT: it is not there, or not all of it; -ENOMEM. */
int heap_jemalloc_find(const struct heap_memory *mem, struct heap_jemalloc *ret_found);

/*
 * The block that `addr` lies in, by the entry that the map of pages has for it and by the 16 words of the edata
 * that the entry points to; NULL: they could not be read. An enum heap_answer: HEAP_IN_USE: it is handed out, or in
 * a thread's cache; HEAP_FREE: it is not; HEAP_CANNOT_SAY: it is being changed, or is not known. -ENOENT: this is no
 * memory of jemalloc's. *ret_start and *ret_size are set where HEAP_IN_USE.
 */
int heap_jemalloc_block(const struct heap_jemalloc *je, uint64_t addr, uint64_t entry,
			const uint64_t *edata, uint64_t *ret_start, uint64_t *ret_size);
/* The bits of an entry that are the address of its edata. */
uint64_t heap_jemalloc_edata_bits(const struct heap_jemalloc *je);

/* The size of the blocks that a request for `size` bytes gets; 0: it cannot be had. */
uint64_t heap_jemalloc_room(uint64_t size);

#endif
