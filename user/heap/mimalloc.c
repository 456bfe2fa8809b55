/*
 * mimalloc 2.0.9 on 64-bit machines without encoded lists, walked through its segments.
 *
 *   segment:  at a multiple of 32 MiB: … used:208 cookie:216 slices:224 info_slices:232 kind:240
 *             entries:248 thread:256 pages[entries]:264; the cookie is the segment's address XORed
 *             with a number of the process
 *   page:     80 bytes, for one or more slices of 64 KiB: slices:4 offset:4 flags:2 capacity:2
 *             reserved:2 flags:2 free:8 used:4 block_size:4 local_free:8 thread_free:8|2 bits …
 *
 * A segment is recognised by its numbers and its cookie, which all have in common. A page is believed
 * when as many blocks fit its slices as it says (other versions begin elsewhere in them), and what its
 * lists of free blocks hold and what it says to be used are all there are.
 *
 * Of the blocks of a page that another thread gave back the first one goes to a list of the thread whose
 * page it is, which is not followed: it counts as in use.
 */
#include "heap/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEGMENT = 32 << 20,
	SLICE = 64 << 10,
	ENTRIES = SEGMENT / SLICE,
	PAGES_AT = 264,
	PAGE = 80,
	PLACES_MAX = 1 << 12, /* where a segment may begin: 128 GiB */
	SPAN_MAX = 512 << 10, /* what more than one block shares                     */
	HUGE_SLICES_MAX = 1 << 20,
	TRIES_MAX = 3, /* times that a page is read again */
	THREADS_MAX = 1024,
};

static const char in_lists[] =
	"of each of mimalloc's pages one block that another thread gave back may count as in use";

struct page {
	uint32_t slices, used, block_size;
	uint16_t capacity, reserved;
	uint64_t free, local_free, thread_free;
};

struct walk {
	const struct heap_memory *mem;
	struct heap_use *use;
	struct heap_blocks *blocks;
	uint64_t key; /* of cookies */
	uint32_t places, segments, believed;
	uint64_t threads[THREADS_MAX];
	uint32_t n_threads;
	uint8_t head[PAGES_AT + ENTRIES * PAGE];
	uint8_t state[1 << 16]; /* of the blocks of a page: enum below */
	uint8_t span[SPAN_MAX];
};

enum { BLOCK_LIVE, BLOCK_FREE, BLOCK_CACHED };

static uint64_t word(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static struct page page_at(const uint8_t *at)
{
	struct page p;

	memcpy(&p.slices, at, 4);
	memcpy(&p.capacity, at + 10, 2);
	memcpy(&p.reserved, at + 12, 2);
	p.free = word(at + 16);
	memcpy(&p.used, at + 24, 4);
	memcpy(&p.block_size, at + 28, 4);
	p.local_free = word(at + 32);
	p.thread_free = word(at + 40) & ~3ULL;
	return p;
}

static bool is_segment(const struct walk *w, uint64_t at)
{
	const uint8_t *h = w->head;
	uint64_t info = word(h + 232), entries = word(h + 248), slices = word(h + 224);
	struct page first = page_at(h + PAGES_AT);

	return info && info < 64 && entries > info && entries <= ENTRIES && slices >= entries &&
	       slices <= HUGE_SLICES_MAX && word(h + 240) <= 1 && word(h + 208) <= entries &&
	       first.slices == info && (!w->segments || (word(h + 216) ^ at) == w->key);
}

/* Marks the blocks of a list; how many there are, -1: this is no list of this page. */
static int64_t mark(struct walk *w, const struct page *p, uint64_t list, uint64_t start, uint8_t as)
{
	int64_t n = 0;

	for (uint64_t at = list; at; n++) {
		uint64_t number = at >= start ? (at - start) / p->block_size : UINT64_MAX;

		if (number >= p->capacity || (at - start) % p->block_size ||
		    w->state[number] != BLOCK_LIVE || at - start > sizeof(w->span) - 8)
			return -1;
		w->state[number] = as;
		at = word(w->span + (at - start));
	}
	return n;
}

/* Blocks that other threads gave back count as used. */
static bool mark_all(struct walk *w, const struct page *p, uint64_t start)
{
	int64_t n_free = mark(w, p, p->free, start, BLOCK_FREE);
	int64_t n_local = mark(w, p, p->local_free, start, BLOCK_CACHED);

	return n_free >= 0 && n_local >= 0 && n_free + n_local == p->capacity - (int64_t)p->used &&
	       mark(w, p, p->thread_free, start, BLOCK_CACHED) >= 0;
}

static void add_to(struct heap_amount *a, const struct walk *w, enum heap_kind kind, uint64_t from,
		   uint64_t bytes)
{
	if (bytes)
		heap_part_add(a, w->mem, w->blocks, kind, from, bytes);
}

static void add_metadata(struct walk *w, uint64_t from, uint64_t bytes)
{
	if (bytes)
		heap_amount_add(&w->use->metadata, w->mem, from, bytes);
	heap_blocks_metadata(w->blocks, bytes);
}

static void take_blocks(struct walk *w, const struct page *p, uint64_t start, uint64_t size)
{
	for (uint64_t i = 0; i < p->capacity; i++) {
		uint64_t at = start + i * size;

		if (w->state[i] == BLOCK_LIVE)
			heap_blocks_add(w->blocks, at, size,
					heap_amount_add(&w->use->live, w->mem, at, size));
		else if (w->state[i] == BLOCK_FREE)
			add_to(&w->use->free, w, HEAP_PART_FREE, at, size);
		else
			add_to(&w->use->cached, w, HEAP_PART_CACHED, at, size);
	}
}

/* A page whose slices begin at `from`. false: it does not add up. */
static bool take_page(struct walk *w, const struct page *p, uint64_t from)
{
	uint64_t bytes = (uint64_t)p->slices * SLICE, size = p->block_size;
	/* Small blocks do not begin with the slice, so that their first words are not in one set of the
	 * cache. */
	uint64_t offset = size <= 1024 ? 384 : 0, used;

	if (p->capacity > p->reserved || !p->capacity || size < 8)
		return false;
	if (size > bytes && p->reserved == 1) /* the size of a huge one is that of its slices */
		size = bytes;
	if (p->reserved != (bytes - offset) / size)
		return false;
	used = p->capacity * size;
	memset(w->state, BLOCK_LIVE, p->capacity);
	if (p->capacity == 1 && size > SPAN_MAX) {
		if (p->free || p->local_free || p->thread_free)
			w->state[0] = BLOCK_CACHED;
	} else if (used > SPAN_MAX || p->used > p->capacity ||
		   !w->mem->read(w->mem->ctx, from + offset, w->span, used) ||
		   !mark_all(w, p, from + offset)) {
		return false;
	}
	heap_blocks_part(w->blocks, HEAP_PART_RUN, from, bytes);
	take_blocks(w, p, from + offset, size);
	add_metadata(w, from, offset);
	add_to(&w->use->top, w, HEAP_PART_TOP, from + offset + used, bytes - offset - used);
	w->believed++;
	return true;
}

/* Entry `i` of the segment at `at`, as it is now. */
static bool read_page(struct walk *w, uint64_t at, uint64_t i)
{
	uint64_t off = PAGES_AT + i * PAGE;

	return w->mem->read(w->mem->ctx, at + off, w->head + off, PAGE);
}

/* Segments belong to threads: each one's are an arena. 0: of a thread that ended. */
static void set_arena(struct walk *w, uint64_t thread)
{
	uint32_t i = 0;

	while (i < w->n_threads && w->threads[i] != thread)
		i++;
	if (i == w->n_threads && i < THREADS_MAX)
		w->threads[w->n_threads++] = thread;
	w->use->arenas = w->n_threads;
	heap_blocks_arena(w->blocks, i < THREADS_MAX ? i : HEAP_NO_ARENA);
}

static void take_segment(struct walk *w, uint64_t at, uint64_t end)
{
	int tries = 0;
	uint64_t info = word(w->head + 232), entries = word(w->head + 248);

	w->key = word(w->head + 216) ^ at;
	w->segments++;
	set_arena(w, word(w->head + 256));
	add_metadata(w, at, info * SLICE);
	for (uint64_t i = info; i < entries;) {
		struct page p = page_at(w->head + PAGES_AT + i * PAGE);
		uint64_t from = at + i * SLICE, bytes = (uint64_t)p.slices * SLICE;

		if (!p.slices || bytes > end - from) {
			p.slices = (uint32_t)(entries - i);
			bytes = p.slices * (uint64_t)SLICE;
			if (bytes > end - from)
				return;
		} else if (p.block_size == 0) {
			add_to(&w->use->top, w, HEAP_PART_TOP, from, bytes);
			i += p.slices;
			tries = 0;
			continue;
		} else if (take_page(w, &p, from)) {
			i += p.slices;
			tries = 0;
			continue;
		}
		/* Its thread went on: it is read once more, with what the segment says of it. */
		if (tries++ < TRIES_MAX && read_page(w, at, i))
			continue;
		add_to(&w->use->unknown, w, HEAP_PART_UNKNOWN, from, bytes);
		heap_blocks_unknown(w->blocks, from, from + bytes);
		w->use->caveat = "pages of mimalloc do not add up";
		i += p.slices;
		tries = 0;
	}
}

static void walk_map(struct walk *w, const struct heap_map *m)
{
	for (uint64_t at = (m->start + SEGMENT - 1) & ~(uint64_t)(SEGMENT - 1);
	     at < m->end && m->end - at >= SLICE && w->places < PLACES_MAX;
	     at += SEGMENT, w->places++)
		if (w->mem->resident(w->mem->ctx, at, 1) &&
		    w->mem->read(w->mem->ctx, at, w->head, sizeof(w->head)) && is_segment(w, at))
			take_segment(w, at, m->end);
}

int heap_walk_mimalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct heap_use before = *use;
	struct heap_mark mark;
	int r;

	if (!w)
		return -ENOMEM;
	w->mem = mem;
	w->use = use;
	w->blocks = blocks;
	heap_blocks_mark(blocks, &mark);
	for (uint32_t i = 0; i < mem->n_maps; i++)
		if (mem->maps[i].kind == HEAP_MAP_ANON)
			walk_map(w, &mem->maps[i]);
	r = w->believed ? 0 : -ENOENT;
	if (r < 0) { /* what looked like one was none */
		*use = before;
		heap_blocks_rewind(blocks, &mark);
	}
	use->metadata.blocks = 0;
	if (r == 0 && !use->caveat)
		use->caveat = in_lists;
	free(w);
	return r;
}
