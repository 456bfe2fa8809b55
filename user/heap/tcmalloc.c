/*
 * gperftools' tcmalloc, walked through its map of pages: every span, and what of it is free or in a cache.
 *
 * A span is believed when as many of its objects are free as it says. Where the caches of threads, or between threads, are not
 * found, what they have counts as in use, and that is said.
 */
#include "heap/tcmalloc.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SPANS_MAX = 1 << 22,
	LEAVES_MAX = 1024,
	CACHES_MAX = 1 << 12,
	CACHED_MAX = 1 << 24,
	OBJECTS_MAX = 1 << 16, /* of a span                                    */
	SPAN_MAX = 1 << 20,    /* bytes of one that has several objects          */
	LINKS = 80,            /* words behind a cache's lists, for next and prev */
};

static const char in_caches[] =
	"caches of tcmalloc were not found: what they have counts as in use";
static const char changed[] = "spans of tcmalloc do not add up";

struct walk {
	const struct heap_memory *mem;
	struct heap_use *use;
	struct heap_blocks *blocks;
	struct tc_found tc;
	uint64_t caches[CACHES_MAX];
	uint32_t n_caches;
	uint64_t *cached; /* addresses of objects in caches, sorted once they are all there */
	uint64_t n_cached, room_cached, next_cached;
	bool lost; /* not all of them were found                       */
	uint32_t spans;
	uint64_t *root, *leaf;
	uint8_t span[SPAN_MAX];
	bool is_free[OBJECTS_MAX];
};

/* --- caches --- */

static bool add_cached(struct walk *w, uint64_t addr)
{
	if (w->n_cached == CACHED_MAX || !GROW(w->cached, w->n_cached, w->room_cached))
		return false;
	w->cached[w->n_cached++] = addr;
	return true;
}

/* `n` objects from `at` on, or up to `last`. */
static void take_list(struct walk *w, uint64_t at, uint64_t n, uint64_t last)
{
	for (; n; n--) {
		uint64_t next;

		if (!at || at % 8 || !w->mem->read(w->mem->ctx, at, &next, sizeof(next)) ||
		    !add_cached(w, at)) {
			w->lost = true;
			return;
		}
		if (at == last)
			return;
		at = next;
	}
	w->lost |= last != 0;
}

static void take_transfers(struct walk *w)
{
	w->lost |= !w->tc.central;
	for (uint32_t c = 1; w->tc.central && c < w->tc.n_classes; c++) {
		uint64_t at = w->tc.central + (uint64_t)(c - 1) * TC_CENTRAL, slot[2 * TC_SLOTS],
			 class;
		uint32_t used;

		if (!w->mem->read(w->mem->ctx, at, &class, sizeof(class)) || class != c ||
		    !w->mem->read(w->mem->ctx, at + TC_SLOTS_AT, slot, sizeof(slot)) ||
		    !w->mem->read(w->mem->ctx, at + TC_USED_AT, &used, sizeof(used)) ||
		    used > TC_SLOTS) {
			w->lost = true;
			return;
		}
		for (uint32_t i = 0; i < used; i++)
			take_list(w, slot[2 * i], OBJECTS_MAX, slot[2 * i + 1]);
	}
}

static void add_cache(struct walk *w, uint64_t at)
{
	for (uint32_t i = 0; i < w->n_caches; i++)
		if (w->caches[i] == at)
			return;
	if (at && at % 8 == 0 && heap_map_of(w->mem, at) && tc_is_cache(w->mem, &w->tc, at)) {
		w->lost |= w->n_caches == CACHES_MAX;
		if (w->n_caches < CACHES_MAX)
			w->caches[w->n_caches++] = at;
	}
}

/* The lists of one thread's cache; where its neighbours are. */
static void take_cache(struct walk *w, uint64_t at)
{
	uint64_t links[LINKS], list;
	uint32_t length;
	bool holds = false;

	for (uint32_t c = 1; c < w->tc.n_classes; c++) {
		uint64_t row = at + (uint64_t)c * TC_LIST;

		if (!w->mem->read(w->mem->ctx, row, &list, sizeof(list)) ||
		    !w->mem->read(w->mem->ctx, row + 8, &length, sizeof(length))) {
			w->lost = true;
			return;
		}
		holds |= length > 0;
		take_list(w, list, length, 0);
	}
	w->use->caches += holds;
	/* The array may have room for more classes than there are: the links lie behind that. */
	for (uint32_t c = w->tc.n_classes; c < TC_CLASSES + 8; c += LINKS * 8 / TC_LIST)
		if (w->mem->read(w->mem->ctx, at + (uint64_t)c * TC_LIST, links, sizeof(links)))
			for (int i = 0; i < LINKS; i++)
				add_cache(w, links[i]);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void take_caches(struct walk *w)
{
	w->lost |= !w->tc.cache;
	add_cache(w, w->tc.cache);
	for (uint32_t i = 0; i < w->n_caches; i++)
		take_cache(w, w->caches[i]);
	take_transfers(w);
	if (w->n_cached)
		qsort(w->cached, w->n_cached, sizeof(*w->cached), by_number);
}

/* Objects are asked about by address. */
static bool is_cached(struct walk *w, uint64_t addr)
{
	while (w->next_cached < w->n_cached && w->cached[w->next_cached] < addr)
		w->next_cached++;
	return w->next_cached < w->n_cached && w->cached[w->next_cached] == addr;
}

/* --- spans --- */

static void add_unknown(struct walk *w, uint64_t from, uint64_t bytes)
{
	heap_part_add(&w->use->unknown, w->mem, w->blocks, HEAP_PART_UNKNOWN, from, bytes);
	heap_blocks_unknown(w->blocks, from, from + bytes);
	w->use->caveat = changed;
}

static void add_live(struct walk *w, uint64_t addr, uint64_t size)
{
	heap_blocks_add(w->blocks, addr, size, heap_amount_add(&w->use->live, w->mem, addr, size));
}

/* Marks those of `n` objects that are in the span's list. false: these are not as many as it says. */
static bool mark_free(struct walk *w, const struct tc_span *s, uint64_t from, uint64_t size,
		      uint64_t n)
{
	uint64_t free = 0, refs = s->bits & 0xffff;

	memset(w->is_free, 0, n * sizeof(*w->is_free));
	for (uint64_t at = s->objects; at; free++) {
		uint64_t i = at >= from ? (at - from) / size : n;

		if (i >= n || (at - from) % size || w->is_free[i])
			return false;
		w->is_free[i] = true;
		memcpy(&at, w->span + (at - from), sizeof(at));
	}
	return free + refs == n;
}

static void take_objects(struct walk *w, const struct tc_span *s, uint64_t from, uint64_t bytes)
{
	uint64_t size = tc_class(s) < w->tc.n_classes ? w->tc.sizes[tc_class(s)] : 0;
	uint64_t n = size ? bytes / size : 0;

	if (!n || n > OBJECTS_MAX || bytes > SPAN_MAX ||
	    !w->mem->read(w->mem->ctx, from, w->span, bytes) || !mark_free(w, s, from, size, n)) {
		add_unknown(w, from, bytes);
		return;
	}
	heap_blocks_part(w->blocks, HEAP_PART_RUN, from, bytes);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = from + i * size;

		if (w->is_free[i])
			heap_part_add(&w->use->free, w->mem, w->blocks, HEAP_PART_FREE, at, size);
		else if (is_cached(w, at))
			heap_part_add(&w->use->cached, w->mem, w->blocks, HEAP_PART_CACHED, at,
				      size);
		else
			add_live(w, at, size);
	}
	heap_blocks_metadata(w->blocks, bytes - n * size);
	w->use->metadata.bytes += bytes - n * size;
	w->use->metadata.resident +=
		w->mem->resident(w->mem->ctx, from + n * size, bytes - n * size);
}

static void take_span(struct walk *w, const struct tc_span *s)
{
	uint64_t from = s->start << TC_SHIFT, bytes = s->length << TC_SHIFT;

	w->spans++;
	if (tc_location(s) == 1)
		heap_part_add(&w->use->free, w->mem, w->blocks, HEAP_PART_DIRTY, from, bytes);
	else if (tc_location(s) == 2)
		heap_part_add(&w->use->top, w->mem, w->blocks, HEAP_PART_RETAINED, from, bytes);
	else if (tc_class(s))
		take_objects(w, s, from, bytes);
	else
		add_live(w, from, bytes);
}

/* The span that begins at `page`, by the leaf's entry for that. */
static bool read_span(const struct walk *w, uint64_t entry, uint64_t page, struct tc_span *ret)
{
	const struct heap_map *m = heap_map_of(w->mem, page << TC_SHIFT);

	return m && entry % 8 == 0 && w->mem->read(w->mem->ctx, entry, ret, TC_SPAN) &&
	       ret->start == page && ret->length &&
	       ret->length <= (m->end - (page << TC_SHIFT)) >> TC_SHIFT && tc_location(ret) <= 2;
}

static void walk_leaf(struct walk *w, uint64_t first, uint64_t *behind)
{
	for (uint64_t i = heap_words_next(w->leaf, 0, TC_LEAF); i < TC_LEAF && w->spans < SPANS_MAX;
	     i = heap_words_next(w->leaf, i + 1, TC_LEAF)) {
		struct tc_span s;

		if (first + i < *behind || !read_span(w, w->leaf[i], first + i, &s))
			continue;
		take_span(w, &s);
		*behind = first + i + s.length;
	}
}

static void walk_root(struct walk *w)
{
	uint64_t behind = 0, len = 8ULL * TC_ROOT;
	const struct heap_map *m = heap_map_of(w->mem, w->tc.root);
	uint32_t leaves = 0;

	len = m && m->end - w->tc.root < len ? m->end - w->tc.root : len;
	if (!m || !w->mem->read(w->mem->ctx, w->tc.root, w->root, len))
		return;
	for (uint64_t i = heap_words_next(w->root, 0, len / 8); i < len / 8 && leaves < LEAVES_MAX;
	     i = heap_words_next(w->root, i + 1, len / 8)) {
		m = heap_map_of(w->mem, w->root[i]);
		if (!m || 8ULL * TC_LEAF > m->end - w->root[i] ||
		    !w->mem->read(w->mem->ctx, w->root[i], w->leaf, 8ULL * TC_LEAF))
			continue;
		leaves++;
		w->use->metadata.resident +=
			w->mem->resident(w->mem->ctx, w->root[i], 8ULL * TC_LEAF);
		w->use->metadata.bytes += 8ULL * TC_LEAF;
		walk_leaf(w, i * TC_LEAF, &behind);
	}
}

int heap_walk_tcmalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks)
{
	struct walk *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (!w)
		return r;
	w->mem = mem;
	w->use = use;
	w->blocks = blocks;
	w->root = calloc(TC_ROOT, sizeof(*w->root));
	w->leaf = malloc(sizeof(*w->leaf) * TC_LEAF);
	if (w->root && w->leaf)
		r = tc_find(mem, &w->tc);
	if (r == 0) {
		heap_blocks_arena(blocks, 0);
		take_caches(w);
		walk_root(w);
		r = w->spans ? 0 : -ENOENT;
		use->arenas = 1;
		use->metadata.blocks = 0;
		if (w->lost && !use->caveat)
			use->caveat = in_caches;
	}
	free(w->cached);
	free(w->root);
	free(w->leaf);
	free(w);
	return r;
}
