/*
 * The layout of glibc's malloc (malloc.c, arena.c; 2.26 to 2.41 on 64-bit machines), as far as a walk
 * needs it, and how its parts are recognised in a libc without symbols.
 *
 *   chunk:    [prev_size:8][size:8 | flags][…]    it owns [chunk + 8, chunk + 8 + size)
 *             flags: 1 the chunk before is in use, 2 has its own mapping, 4 not of the main arena
 *             in use: the next one's flag 1 says so. What lies in a tcache or a fastbin has it, too.
 *   arena:    mutex:4 flags:4 [have_fastchunks:4 pad:4, from 2.27] fastbins[10] top last_remainder
 *             bins[254] binmap:16 next next_free attached_threads system_mem max_system_mem
 *   heap:     at multiples of 64 MiB, of arenas but the main one:
 *             arena prev size mprotect_size [pagesize pad:8, from 2.35]; the first is followed by
 *             its arena
 *   mp_:      … n_mmaps:4 n_mmaps_max:4 max_n_mmaps:4 no_dyn_threshold:4 mmapped_mem
 *             max_mmapped_mem sbrk_base …; from 2.35 on hp_flags:4 is before n_mmaps, and 4 bytes are between its
 *             counters and mmapped_mem
 *   tcache:   counts[64]:2 (:1 before 2.30) entries[64]; an entry points behind the chunk's header, where
 *             the next one is; lists of fastbins and tcaches are XORed with their own address >> 12
 *             from 2.32
 *
 * An arena is recognised by its bins: an empty one points to itself, and the list of arenas leads
 * back to it. mp_ by sbrk_base, which is where [heap] begins, or a little behind. A tcache by the size of its chunk and
 * by what its entries point to.
 */
#ifndef MEMSCOPE_HEAP_GLIBC_H
#define MEMSCOPE_HEAP_GLIBC_H

#include "heap/census.h"

enum {
	GLIBC_FASTBINS = 10,
	GLIBC_BINS = 127,
	GLIBC_HEAP_MAX = 64 << 20,
	GLIBC_ARENAS_MAX = 4096,
	GLIBC_TCACHE_BINS = 64,
	GLIBC_GROWN_MAX = 64 << 20,
};

struct glibc_arena {
	uint64_t addr;
	uint64_t fastbins[GLIBC_FASTBINS];
	uint64_t top, next, system_mem;
};

/* Where things lie in an arena: what differs between versions. */
struct glibc_layout {
	uint32_t bins;       /* offset of bins[] in an arena */
};

/* The main arena in the writable data of some image. -ENOENT, -ENOMEM. */
int glibc_find(const struct heap_memory *mem, struct glibc_layout *ret_layout,
	       struct glibc_arena *ret_main);

/* The mapping that an arena's top is in. [heap] may have grown since mappings were read, by GLIBC_GROWN_MAX at
 * most. */
const struct heap_map *glibc_map_of_top(const struct heap_memory *mem, uint64_t top);

/* -EBADMSG: there is no arena at `addr`. */
int glibc_arena_read(const struct heap_memory *mem, const struct glibc_layout *layout,
		     uint64_t addr, struct glibc_arena *ret_arena);

/* What mp_ says: where the main arena's memory begins, and of blocks with mappings of their own. */
struct glibc_counts {
	uint64_t sbrk_base, mapped_blocks, mapped_bytes;
};

/*
 * Where [heap] is at `heap_start` to `heap_end`. The arena begins there; of a program that is linked statically behind
 * the variables of its first thread, which are at the front of [heap] (csu/libc-tls.c). false: it was not found.
 */
bool glibc_counts(const struct heap_memory *mem, uint64_t main_arena, uint64_t heap_start, uint64_t heap_end,
		  struct glibc_counts *ret_counts);

#endif
