/*
 * A process's memory made of bytes, for what walks the heaps of allocators: tests and the fuzzers fill it.
 */
#ifndef MEMSCOPE_TESTS_FAKE_MEMORY_H
#define MEMSCOPE_TESTS_FAKE_MEMORY_H

#include "heap/census.h"

#include <stdlib.h>
#include <string.h>

enum { FAKE_MAPS = 4 };

struct fake_memory {
	struct heap_memory mem;
	struct heap_map maps[FAKE_MAPS];
	uint8_t *bytes[FAKE_MAPS];
	bool *touched[FAKE_MAPS]; /* its pages */
	size_t len[FAKE_MAPS];    /* of them; the rest of a mapping cannot be read */
	uint64_t reads;
};

static inline uint8_t *fake_at(struct fake_memory *f, uint64_t addr, size_t len)
{
	for (uint32_t i = 0; i < f->mem.n_maps; i++)
		if (addr >= f->maps[i].start && addr - f->maps[i].start <= f->len[i] &&
		    len <= f->len[i] - (addr - f->maps[i].start))
			return f->bytes[i] + (addr - f->maps[i].start);
	return NULL;
}

static inline bool fake_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct fake_memory *f = ctx;
	uint8_t *from = fake_at(f, addr, len);

	f->reads++;
	if (from)
		memcpy(buf, from, len);
	return from;
}

/* Pages that something was put into. */
static inline uint64_t fake_resident(void *ctx, uint64_t addr, uint64_t len)
{
	struct fake_memory *f = ctx;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->mem.n_maps; i++) {
		uint64_t start = f->maps[i].start, end = start + f->len[i];
		uint64_t to;

		if (addr < start || addr >= end)
			continue;
		to = len < end - addr ? addr + len : end;
		for (uint64_t at = addr, next; at < to; at = next) {
			next = (at | (HEAP_PAGE - 1)) + 1 < to ? (at | (HEAP_PAGE - 1)) + 1 : to;
			if (f->touched[i][(at - start) / HEAP_PAGE])
				sum += next - at;
		}
	}
	return sum;
}

/* Nothing is at a place that is not there. */
static inline void fake_put(struct fake_memory *f, uint64_t addr, uint64_t value, size_t len)
{
	uint8_t *to = fake_at(f, addr, len);

	if (!to)
		return;
	memcpy(to, &value, len);
	for (uint32_t i = 0; i < f->mem.n_maps; i++)
		if (to >= f->bytes[i] && to < f->bytes[i] + f->len[i]) {
			f->touched[i][(to - f->bytes[i]) / HEAP_PAGE] = true;
			f->touched[i][(to + len - 1 - f->bytes[i]) / HEAP_PAGE] = true;
		}
}

static inline void fake_word(struct fake_memory *f, uint64_t addr, uint64_t word)
{
	fake_put(f, addr, word, sizeof(word));
}

static inline uint64_t fake_word_at(struct fake_memory *f, uint64_t addr)
{
	uint64_t word = 0;

	fake_read(f, addr, &word, sizeof(word));
	return word;
}

static inline void fake_init(struct fake_memory *f)
{
	memset(f, 0, sizeof(*f));
	f->mem = (struct heap_memory){ f->maps, 0, fake_read, fake_resident, f, NULL };
}

/*
 * The memory of a mapping, which its next one of that length takes over: a fuzzer makes mappings of MiB for each input, and to clear what
 * was put into them takes less than other pages.
 */
struct fake_room {
	uint8_t *bytes;
	bool *touched; /* its pages */
	size_t len;
};

static inline struct fake_room *fake_room_of(uint32_t i)
{
	static struct fake_room left[FAKE_MAPS];

	return &left[i];
}

static inline void fake_room_free(struct fake_room *room)
{
	free(room->bytes);
	free(room->touched);
}

static inline struct fake_room fake_room_take(uint32_t i, size_t len)
{
	struct fake_room room = *fake_room_of(i);

	*fake_room_of(i) = (struct fake_room){ 0 };
	if (room.bytes && room.len == len)
		return room;
	fake_room_free(&room);
	room.bytes = calloc(1, len);
	room.touched = calloc(len / HEAP_PAGE + 1, sizeof(bool));
	room.len = len;
	if (!room.bytes || !room.touched)
		abort();
	return room;
}

static inline void fake_room_leave(uint32_t i, struct fake_room room)
{
	for (size_t at = 0; at < room.len; at += HEAP_PAGE) {
		if (room.touched[at / HEAP_PAGE])
			memset(room.bytes + at, 0, room.len - at < HEAP_PAGE ? room.len - at : HEAP_PAGE);
		room.touched[at / HEAP_PAGE] = false;
	}
	fake_room_free(fake_room_of(i));
	*fake_room_of(i) = room;
}

/* Behind those that there are. Its first `len` bytes are zeros. */
static inline void fake_map(struct fake_memory *f, uint64_t start, uint64_t size, size_t len,
			    enum heap_map_kind kind)
{
	uint32_t i = f->mem.n_maps;
	struct fake_room room;

	if (i == FAKE_MAPS)
		abort();
	f->maps[i] = (struct heap_map){ start, start + size, size, kind };
	f->len[i] = len;
	room = fake_room_take(i, len);
	f->bytes[i] = room.bytes;
	f->touched[i] = room.touched;
	f->mem.n_maps++;
}

static inline void fake_fini(struct fake_memory *f)
{
	for (uint32_t i = 0; i < f->mem.n_maps; i++)
		fake_room_leave(i, (struct fake_room){ f->bytes[i], f->touched[i], f->len[i] });
}

typedef int heap_walk(const struct heap_memory *mem, struct heap_use *use,
		      struct heap_blocks *blocks);

/* Walks it anew; blocks are those of `allocator`, and sorted. */
static inline int fake_walk(const struct fake_memory *f, heap_walk *walk, const char *allocator,
			    struct heap_use *use, struct heap_blocks *blocks)
{
	int r;

	*use = (struct heap_use){ 0 };
	heap_blocks_clear(blocks);
	heap_blocks_allocator(blocks, allocator);
	r = walk(&f->mem, use, blocks);
	heap_blocks_sort(blocks);
	return r;
}

/* Those in use, sorted: does each lie in one mapping, `before` bytes of it before it, and none in
 * another? */
static inline bool fake_blocks_lie_apart(const struct fake_memory *f,
					 const struct heap_blocks *blocks, uint64_t before)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < blocks->n; i++) {
		uint64_t addr = blocks->rows[i].addr, bytes = 8 * (uint64_t)blocks->rows[i].words;
		const struct heap_map *m = heap_map_of(&f->mem, addr - before);

		if (addr < last || !m || bytes > m->end - addr)
			return false;
		last = addr + bytes;
	}
	return true;
}

#endif
