/*
 * Where glibc's malloc has its variables.
 */
#include "heap/glibc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BINS_BYTES = 2 * 8 * GLIBC_BINS,
	AFTER_BINS = 16 + 5 * 8,  /* binmap, next … max_system_mem        */
	DATA_MAX = 16 << 20,      /* of one image's variables is read */
	EMPTY_LEAST = 16,         /* bins of a main arena that are empty   */
	FIND_MAX = 4096,          /* places that look like an empty bin    */
	STATIC_TLS_MAX = 1 << 20, /* at the front of [heap]                */
};

static const uint32_t bins_offsets[] = { 112, 104 }; /* from 2.27; before */

static uint64_t word_at(const uint8_t *bytes, size_t off)
{
	uint64_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

/* How many of 127 bins, whose pairs of words begin at `off` of bytes from `addr`, are empty; -1: these
 * are no bins. */
static int empty_bins(const uint8_t *bytes, size_t off, uint64_t addr)
{
	int empty = 0;

	for (int i = 0; i < GLIBC_BINS; i++) {
		size_t at = off + 16 * (size_t)i;
		uint64_t front = word_at(bytes, at), back = word_at(bytes, at + 8);

		if (front == addr + at - 16 && back == front)
			empty++;
		else if (!front || !back || front % 16 || back % 16)
			return -1;
	}
	return empty;
}

int glibc_arena_read(const struct heap_memory *mem, const struct glibc_layout *layout,
		     uint64_t addr, struct glibc_arena *ret_arena)
{
	uint8_t bytes[112 + BINS_BYTES + AFTER_BINS];
	size_t len = layout->bins + BINS_BYTES + AFTER_BINS;
	struct glibc_arena a = { .addr = addr };
	const size_t after = layout->bins + BINS_BYTES;

	if (addr % 8 || layout->bins > 112 || !mem->read(mem->ctx, addr, bytes, len) ||
	    empty_bins(bytes, layout->bins, addr) < 0)
		return -EBADMSG;
	for (int i = 0; i < GLIBC_FASTBINS; i++)
		a.fastbins[i] = word_at(bytes, layout->bins - 96 + 8 * (size_t)i);
	a.top = word_at(bytes, layout->bins - 16);
	a.next = word_at(bytes, after + 16);
	a.system_mem = word_at(bytes, after + 40);
	if (a.system_mem % 8)
		return -EBADMSG;
	*ret_arena = a;
	return 0;
}

/* The list of arenas leads back to where it began. */
static bool list_closes(const struct heap_memory *mem, const struct glibc_layout *layout,
			const struct glibc_arena *main)
{
	struct glibc_arena a = *main;

	for (int i = 0; i < GLIBC_ARENAS_MAX; i++) {
		if (a.next == main->addr)
			return true;
		if (!a.next || glibc_arena_read(mem, layout, a.next, &a) < 0)
			return false;
	}
	return false;
}

const struct heap_map *glibc_map_of_top(const struct heap_memory *mem, uint64_t top)
{
	const struct heap_map *m = heap_map_of(mem, top);

	for (uint32_t i = 0; !m && i < mem->n_maps; i++)
		if (mem->maps[i].kind == HEAP_MAP_BRK && top >= mem->maps[i].end &&
		    top - mem->maps[i].end < GLIBC_GROWN_MAX)
			m = &mem->maps[i];
	return m;
}

/*
 * In [heap] its size may be anything: malloc() writes it after the arena's word, and between both lies a page fault where the top's
 * first page was never touched.
 */
static bool top_is_sound(const struct heap_memory *mem, const struct glibc_layout *layout,
			 const struct glibc_arena *a)
{
	const struct heap_map *m;
	uint64_t size;

	if (a->top == a->addr + layout->bins - 16) /* nothing was ever allocated from it */
		return a->system_mem == 0;
	m = a->top % 16 == 0 ? glibc_map_of_top(mem, a->top) : NULL;
	if (m && m->kind == HEAP_MAP_BRK && a->system_mem)
		return true;
	return m && mem->read(mem->ctx, a->top + 8, &size, sizeof(size)) && size & 1 &&
	       (size & ~7ULL) <= a->system_mem;
}

/* bytes + off may be the empty bin number `bin` of an arena. */
static bool arena_around(const struct heap_memory *mem, const uint8_t *bytes, size_t len,
			 size_t off, uint64_t addr, int bin, struct glibc_layout *ret_layout,
			 struct glibc_arena *ret_arena)
{
	size_t first = off - 16 * (size_t)bin;

	if (off < 16 * (size_t)bin || first + BINS_BYTES > len ||
	    empty_bins(bytes, first, addr) < EMPTY_LEAST)
		return false;
	for (size_t i = 0; i < sizeof(bins_offsets) / sizeof(*bins_offsets); i++) {
		struct glibc_layout layout = { bins_offsets[i] };

		if (first < layout.bins ||
		    glibc_arena_read(mem, &layout, addr + first - layout.bins, ret_arena) < 0 ||
		    !list_closes(mem, &layout, ret_arena) || !top_is_sound(mem, &layout, ret_arena))
			continue;
		*ret_layout = layout;
		return true;
	}
	return false;
}

static bool find_in(const struct heap_memory *mem, const uint8_t *bytes, size_t len, uint64_t addr,
		    struct glibc_layout *ret_layout, struct glibc_arena *ret_main)
{
	int tries = 0;

	for (size_t off = 0; off + 16 <= len && tries < FIND_MAX; off += 8) {
		if (word_at(bytes, off) != addr + off - 16 ||
		    word_at(bytes, off + 8) != addr + off - 16)
			continue;
		tries++;
		for (int bin = 0; bin < GLIBC_BINS; bin++)
			if (arena_around(mem, bytes, len, off, addr, bin, ret_layout, ret_main))
				return true;
	}
	return false;
}

int glibc_find(const struct heap_memory *mem, struct glibc_layout *ret_layout,
	       struct glibc_arena *ret_main)
{
	struct glibc_layout layout;
	struct glibc_arena arena;
	for (uint32_t i = 0; i < mem->n_maps; i++) {
		const struct heap_map *m = &mem->maps[i];
		size_t len = m->end - m->start < DATA_MAX ? (size_t)(m->end - m->start) : DATA_MAX;
		_cleanup_(freep) uint8_t *bytes = NULL;

		/* A program linked statically has it behind its other variables. */
		if (m->kind != HEAP_MAP_DATA)
			continue;
		bytes = malloc(len);
		if (!bytes)
			return -ENOMEM;
		if (!mem->read(mem->ctx, m->start, bytes, len) ||
		    !find_in(mem, bytes, len, m->start, &layout, &arena))
			continue;
		*ret_layout = layout;
		*ret_main = arena;
		return 0;
	}
	return -ENOENT;
}

/* mp_, whose sbrk_base is at `off`; its counters begin `earlier` bytes before where they fill whole words. */
static bool read_mapped(const uint8_t *bytes, size_t off, size_t earlier, uint64_t *ret_blocks,
			uint64_t *ret_bytes)
{
	uint64_t now = word_at(bytes, off - 16), most = word_at(bytes, off - 8);
	uint32_t n[3]; /* n_mmaps, n_mmaps_max, max_n_mmaps */

	memcpy(n, bytes + off - 32 - earlier, sizeof(n));
	if (n[0] > n[2] || n[0] > n[1] || now > most || now % HEAP_PAGE ||
	    (n[0] == 0) != (now == 0))
		return false;
	*ret_blocks = n[0];
	*ret_bytes = now;
	return true;
}

static uint64_t first_chunk(uint64_t sbrk_base)
{
	return (sbrk_base + 15) & ~15ULL;
}

/* Could the main arena begin there? */
static bool begins_arena(const struct heap_memory *mem, uint64_t sbrk_base, uint64_t heap_end)
{
	uint64_t chunk = first_chunk(sbrk_base), size;

	if (!mem->read(mem->ctx, chunk + 8, &size, sizeof(size)) || !(size & 1))
		return false;
	size &= ~15ULL;
	return size >= 32 && size <= heap_end - chunk;
}

static bool find_counts(const struct heap_memory *mem, const uint8_t *bytes, size_t len,
			uint64_t from, uint64_t to, uint64_t heap_end, struct glibc_counts *ret)
{
	for (size_t off = 40; off + 8 <= len; off += 8) {
		uint64_t base = word_at(bytes, off);

		if (base < from || base >= to ||
		    (!read_mapped(bytes, off, 0, &ret->mapped_blocks, &ret->mapped_bytes) &&
		     !read_mapped(bytes, off, 4, &ret->mapped_blocks, &ret->mapped_bytes)))
			continue;
		if (to - from > 1 && !begins_arena(mem, base, heap_end))
			continue;
		ret->sbrk_base = first_chunk(base);
		return true;
	}
	return false;
}

bool glibc_counts(const struct heap_memory *mem, uint64_t main_arena, uint64_t heap_start,
		  uint64_t heap_end, struct glibc_counts *ret_counts)
{
	const struct heap_map *m = heap_map_of(mem, main_arena);
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint64_t len = m ? m->end - m->start : 0;
	uint64_t most =
		heap_end - heap_start < STATIC_TLS_MAX ? heap_end - heap_start : STATIC_TLS_MAX;

	if (len < 64)
		return false;
	len = len < DATA_MAX ? len : DATA_MAX;
	bytes = malloc(len);
	if (!bytes || !mem->read(mem->ctx, m->start, bytes, len))
		return false;
	return find_counts(mem, bytes, len, heap_start, heap_start + 1, heap_end, ret_counts) ||
	       find_counts(mem, bytes, len, heap_start, heap_start + most, heap_end, ret_counts);
}
