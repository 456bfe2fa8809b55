/*
 * Where tcmalloc has its variables.
 */
#include "heap/tcmalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BSS_MAX = 64 << 20,  /* of one image is read                              */
	READS_MAX = 1 << 18, /* of what words point to                            */
	LOOKS_MAX = 64,      /* entries of a leaf that are read to decide that    */
	HITS = 2,            /* of them belong to a span, at least                 */
	MISSES_MAX = 4,
	PART = 4096, /* words of a leaf that are read together             */
	SIZE_MOST = 256 << 10,
	CENTRAL_CLASSES = 8, /* that are compared                                 */
	CACHE_CLASSES = 8,
};

struct search {
	const struct heap_memory *mem;
	uint64_t reads;
	struct heap_window window;
	uint64_t words[PART];
};

static bool covers(const struct heap_memory *mem, uint64_t addr, uint64_t len)
{
	const struct heap_map *m = heap_map_of(mem, addr);

	return m && len <= m->end - addr;
}

/* Does the span of entry `i` say where the root is, if the word at `place` is its pointer to that leaf? 0: it does not. */
static uint64_t root_by_entry(struct search *s, uint64_t entry, uint64_t i, uint64_t place)
{
	struct tc_span span;
	uint64_t page, root;

	s->reads++;
	if (entry % 8 || !s->mem->read(s->mem->ctx, entry, &span, TC_SPAN) || !span.length ||
	    span.start >= 1ULL << (48 - TC_SHIFT) || span.length >= 1ULL << (48 - TC_SHIFT) ||
	    tc_class(&span) >= TC_CLASSES || tc_location(&span) > 2)
		return 0;
	page = (span.start & ~(uint64_t)(TC_LEAF - 1)) | i;
	if (page < span.start || page - span.start >= span.length ||
	    !heap_map_of(s->mem, span.start << TC_SHIFT))
		return 0;
	root = place - 8 * (page / TC_LEAF);
	return covers(s->mem, root, 8 * (page / TC_LEAF + 1)) ? root : 0;
}

static uint64_t root_by(struct search *s, uint64_t place, uint64_t leaf)
{
	uint32_t looks = 0, hits = 0, misses = 0;
	uint64_t root = 0;

	for (uint64_t i = 0; i < TC_LEAF; i += PART) {
		if (!s->mem->resident(s->mem->ctx, leaf + 8 * i, sizeof(s->words)))
			continue;
		s->reads++;
		if (!s->mem->read(s->mem->ctx, leaf + 8 * i, s->words, sizeof(s->words)))
			return 0;
		for (uint64_t k = heap_words_next(s->words, 0, PART); k < PART && looks < LOOKS_MAX;
		     k = heap_words_next(s->words, k + 1, PART)) {
			uint64_t by = root_by_entry(s, s->words[k], i + k, place);

			looks++;
			hits += by && (!root || by == root);
			misses += !by || (root && by != root);
			root = root ? root : by;
			if (misses > MISSES_MAX && misses > hits)
				return 0;
		}
		if (looks == LOOKS_MAX)
			break;
	}
	return hits >= HITS && hits > misses ? root : 0;
}

/* --- tables --- */

static uint32_t sizes_at(const uint32_t *table, uint32_t n)
{
	if (table[0] || (table[1] != 8 && table[1] != 16))
		return 0;
	for (uint32_t i = 1; i < n; i++) {
		if (table[i] <= table[i - 1] || table[i] % 8 || table[i] > SIZE_MOST)
			return 0;
		if (table[i] == SIZE_MOST)
			return i + 1;
	}
	return 0;
}

/* The table begins with 0, and may do so in the middle of a word. */
static void try_sizes(struct search *s, uint64_t at, uint64_t word, struct tc_found *tc)
{
	uint32_t table[TC_CLASSES], n, low = (uint32_t)word, high = (uint32_t)(word >> 32);
	bool is_first = low == 0 && (high == 8 || high == 16);
	bool is_second = (low == 8 || low == 16) && high == 2 * low;

	if (tc->n_classes || (!is_first && !is_second))
		return;
	s->reads++;
	if (!s->mem->read(s->mem->ctx, is_first ? at : at - 4, table, sizeof(table)))
		return;
	n = sizes_at(table, TC_CLASSES);
	if (!n)
		return;
	memcpy(tc->sizes, table, n * sizeof(*table));
	tc->n_classes = n;
}

static void try_central(struct search *s, uint64_t at, uint64_t word, struct tc_found *tc)
{
	uint64_t class;

	if (word != 1 || tc->central)
		return;
	for (uint64_t i = 1; i < CENTRAL_CLASSES; i++) {
		s->reads++;
		if (!s->mem->read(s->mem->ctx, at + i * TC_CENTRAL, &class, sizeof(class)) ||
		    class != i + 1)
			return;
	}
	tc->central = at;
}

bool tc_is_cache(const struct heap_memory *mem, const struct tc_found *tc, uint64_t at)
{
	for (uint32_t c = 1; c < tc->n_classes && c < CACHE_CLASSES; c++) {
		uint32_t size;

		if (!mem->read(mem->ctx, at + (uint64_t)c * TC_LIST + 24, &size, sizeof(size)) ||
		    size != tc->sizes[c])
			return false;
	}
	return tc->n_classes > 0;
}

/* --- variables --- */

static void look_at(struct search *s, const struct heap_map *m, struct tc_found *tc,
		    void (*try)(struct search *, uint64_t, uint64_t, struct tc_found *))
{
	uint64_t end = m->end - m->start < BSS_MAX ? m->end : m->start + BSS_MAX, word;

	s->window.limit = end;
	heap_window_forget(&s->window);
	for (uint64_t at = m->start; at < end && s->reads < READS_MAX; at += 8) {
		if (at % HEAP_PAGE == 0 && !s->mem->resident(s->mem->ctx, at, 1)) {
			at += HEAP_PAGE - 8;
			continue;
		}
		if (!heap_window_word(&s->window, at, &word))
			return;
		if (word)
			try(s, at, word, tc);
	}
}

static void try_root(struct search *s, uint64_t at, uint64_t word, struct tc_found *tc)
{
	if (!tc->root && word % 16 == 0 && covers(s->mem, word, 8ULL * TC_LEAF))
		tc->root = root_by(s, at, word);
}

static void try_cache(struct search *s, uint64_t at, uint64_t word, struct tc_found *tc)
{
	(void)at;
	if (tc->cache || word % 8 || !covers(s->mem, word, (uint64_t)tc->n_classes * TC_LIST))
		return;
	s->reads++;
	if (tc_is_cache(s->mem, tc, word))
		tc->cache = word;
}

int tc_find(const struct heap_memory *mem, struct tc_found *ret_found)
{
	struct search *s = calloc(1, sizeof(*s));
	struct tc_found tc = { 0 };

	if (!s)
		return -ENOMEM;
	s->mem = s->window.mem = mem;
	for (uint32_t i = 0; i < mem->n_maps && !tc.root; i++) {
		const struct heap_map *m = &mem->maps[i];

		if (m->kind != HEAP_MAP_ZEROED)
			continue;
		/* The table alone needs no other memory to be read: without it nothing else is looked for. */
		tc.n_classes = 0;
		look_at(s, m, &tc, try_sizes);
		if (!tc.n_classes)
			continue;
		look_at(s, m, &tc, try_root);
		if (!tc.root)
			continue;
		look_at(s, m, &tc, try_central);
		look_at(s, m, &tc, try_cache);
	}
	free(s);
	if (!tc.root || !tc.n_classes)
		return -ENOENT;
	*ret_found = tc;
	return 0;
}
