/*
 * jemalloc 5.3 on 64-bit machines with 48-bit addresses, walked through its map of pages.
 *
 *   root:   2^18 words in .bss, by bits 47 … 30 of an address: where the leaf is
 *   leaf:   2^18 words, by bits 29 … 12: index of the size class << 48 | address of the extent's
 *           edata (a multiple of 128) | flags; of a slab for each page, of others for the first and the
 *           last one; extents that are not in use have them, too
 *   edata:  bits addr size|esn ps sn link[3] bitmap[8]
 *           bits: arena:12 slab:1 committed:1 pai:1 zeroed:1 guarded:1 state:3 class:8 free:10 …
 *           bitmap of a slab: 1 is free
 *
 * Nothing of it needs a symbol: a word of .bss that points to what looks like a leaf, in which some entry's
 * edata says of itself that it is at that entry's address, shows where the root is, as that
 * address says which word of the root it was. A slab is believed when its bitmap has as many ones as
 * it says that it has free regions.
 *
 * Blocks in thread caches cannot be distinguished from those in use: jemalloc's own
 * stats.allocated counts it so, too.
 */
#include "base/cleanup.h"
#include "heap/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FANOUT = 1 << 18,
	TABLE = FANOUT * 8,
	CLASSES = 232,
	BINS = 36,
	STATE_ACTIVE = 0,
	STATE_RETAINED = 3,
	PIECE = 2 << 20,   /* its own memory comes in multiples of this               */
	PIECES_MAX = 4096, /* of those; in a table of twice as many places             */
	LEAVES_MAX = 1024,
	EXTENTS_MAX = 1 << 22,
	TRIES_MAX = 64,     /* words of .bss that may point to a leaf                   */
	BSS_MAX = 64 << 20, /* of one image is read */
	LOOKS_MAX = 256,    /* entries of one that are read to decide that             */
};

#define ADDR_MASK  0xffffffffffffULL
#define EDATA_MASK (ADDR_MASK & ~127ULL)

static const char in_caches[] =
	"what threads have in jemalloc's caches counts as in use, as in its stats.allocated";

struct edata {
	uint64_t bits, addr, size;
	uint64_t bitmap[8];
};

struct walk {
	const struct heap_memory *mem;
	struct heap_use *use;
	struct heap_blocks *blocks;
	uint64_t sizes[CLASSES];
	uint64_t *root, *leaf;
	uint64_t pieces[2 * PIECES_MAX]; /* a hash table; 0: nothing is there */
	uint32_t n_pieces;
	uint64_t extents;
	uint64_t behind; /* the last one that was counted: its other pages are not read */
	struct heap_window window;
};

/* 8, 16, 32, 48, 64, then four steps to each next power of two. */
static void make_sizes(struct walk *w)
{
	static const uint64_t first[] = { 8, 16, 32, 48, 64 };
	uint32_t n = 5;

	memcpy(w->sizes, first, sizeof(first));
	for (uint32_t lg = 6; n < CLASSES; lg++)
		for (uint64_t i = 1; i <= 4 && n < CLASSES; i++)
			w->sizes[n++] = (1ULL << lg) + (i << (lg - 2));
}

static uint32_t state_of(const struct edata *d)
{
	return d->bits >> 17 & 7;
}

static uint32_t class_of(const struct edata *d)
{
	return d->bits >> 20 & 255;
}

static bool read_edata(const struct walk *w, uint64_t at, struct edata *ret_edata)
{
	uint64_t words[16];

	if (!at || !w->mem->read(w->mem->ctx, at, words, sizeof(words)))
		return false;
	ret_edata->bits = words[0];
	ret_edata->addr = words[1];
	ret_edata->size = words[2] & ~(uint64_t)(HEAP_PAGE - 1);
	memcpy(ret_edata->bitmap, words + 8, sizeof(ret_edata->bitmap));
	return true;
}

static bool covers(const struct heap_memory *mem, uint64_t addr, uint64_t len)
{
	const struct heap_map *m = heap_map_of(mem, addr);

	while (m && len > m->end - addr) {
		len -= m->end - addr;
		addr = m->end;
		m = heap_map_of(mem, addr);
	}
	return m;
}

/* The edata that says of itself that it begins at `page`. */
static bool edata_of(const struct walk *w, uint64_t entry, uint64_t page, struct edata *ret_edata)
{
	struct edata d;

	if (!read_edata(w, entry & EDATA_MASK, &d) ||
	    (d.addr & ~(uint64_t)(HEAP_PAGE - 1)) != page || !d.size ||
	    !covers(w->mem, page, d.size) || state_of(&d) > STATE_RETAINED ||
	    (class_of(&d) != entry >> 48 && entry >> 48 < CLASSES))
		return false;
	*ret_edata = d;
	return true;
}

/* --- finding it --- */

/* What an entry number `i` of a leaf says of where the root is, if the word at `place` is its pointer to
 * that leaf; 0: nothing. */
static uint64_t root_by_entry(const struct walk *w, uint64_t entry, uint64_t i, uint64_t place)
{
	struct edata d;
	uint64_t root;

	if (!read_edata(w, entry & EDATA_MASK, &d) || d.addr & ~ADDR_MASK ||
	    (d.addr >> 12 & (FANOUT - 1)) != i ||
	    !edata_of(w, entry, d.addr & ~(uint64_t)(HEAP_PAGE - 1), &d))
		return 0;
	root = place - 8 * (d.addr >> 30);
	return covers(w->mem, root, TABLE) ? root : 0;
}

/* The same of the first entries that there are. Most of a leaf was never touched. */
static uint64_t root_by(const struct walk *w, uint64_t place, uint64_t leaf)
{
	uint64_t words[HEAP_PAGE / 8];
	int looks = 0;

	if (!covers(w->mem, leaf, TABLE))
		return 0;
	for (uint64_t i = 0; i < FANOUT; i += HEAP_PAGE / 8) {
		if (!w->mem->resident(w->mem->ctx, leaf + 8 * i, sizeof(words)))
			continue;
		if (!w->mem->read(w->mem->ctx, leaf + 8 * i, words, sizeof(words)))
			return 0;
		for (uint64_t k = 0; k < HEAP_PAGE / 8; k++) {
			uint64_t root = words[k] ? root_by_entry(w, words[k], i + k, place) : 0;

			if (root)
				return root;
			if (words[k] && ++looks == LOOKS_MAX)
				return 0;
		}
	}
	return 0;
}

static uint64_t find_root(struct walk *w)
{
	int tries = 0;

	for (uint32_t i = 0; i < w->mem->n_maps; i++) {
		const struct heap_map *m = &w->mem->maps[i];

		if (m->kind != HEAP_MAP_ZEROED || m->end - m->start < TABLE - 4 * HEAP_PAGE)
			continue;
		w->window.limit = m->end;
		heap_window_forget(&w->window);
		for (uint64_t at = m->start, word, root;
		     at < m->end && at - m->start < BSS_MAX && tries < TRIES_MAX; at += 8) {
			/* Most of the table was never touched. */
			if (at % HEAP_PAGE == 0 && !w->mem->resident(w->mem->ctx, at, 1)) {
				at += HEAP_PAGE - 8;
				continue;
			}
			if (!heap_window_word(&w->window, at, &word))
				break;
			if (!word || word % 64 || word & ~ADDR_MASK ||
			    (heap_map_of(w->mem, word) ?: m)->kind != HEAP_MAP_ANON)
				continue;
			tries++;
			root = root_by(w, at, word);
			if (root)
				return root;
		}
	}
	return 0;
}

/* --- walking --- */

/* Pieces that its structures are in. */
static void add_piece(struct walk *w, uint64_t addr)
{
	uint64_t piece = addr & ~(uint64_t)(PIECE - 1), at = piece / PIECE;

	while (w->pieces[at % (2 * PIECES_MAX)] && w->pieces[at % (2 * PIECES_MAX)] != piece)
		at++;
	if (w->pieces[at % (2 * PIECES_MAX)] || w->n_pieces == PIECES_MAX || !piece ||
	    !covers(w->mem, piece, PIECE))
		return;
	w->pieces[at % (2 * PIECES_MAX)] = piece;
	w->n_pieces++;
	w->use->metadata.bytes += PIECE;
	w->use->metadata.resident += w->mem->resident(w->mem->ctx, piece, PIECE);
}

static void add_unknown(struct walk *w, uint64_t page, uint64_t size)
{
	heap_amount_add(&w->use->unknown, w->mem, page, size);
	heap_blocks_unknown(w->blocks, page, page + size);
	w->use->caveat = "extents of jemalloc do not add up";
}

static void take_slab(struct walk *w, const struct edata *d)
{
	uint64_t size = class_of(d) < BINS ? w->sizes[class_of(d)] : 0,
		 n = size ? d->size / size : 0;
	uint64_t nfree = d->bits >> 28 & 1023, ones = 0;

	for (uint64_t i = 0; i < n && i < 512; i++)
		ones += d->bitmap[i / 64] >> i % 64 & 1;
	if (!n || n > 512 || ones != nfree || d->addr % HEAP_PAGE) {
		add_unknown(w, d->addr & ~(uint64_t)(HEAP_PAGE - 1), d->size);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t addr = d->addr + i * size;

		if (d->bitmap[i / 64] >> i % 64 & 1)
			heap_amount_add(&w->use->free, w->mem, addr, size);
		else
			heap_blocks_add(w->blocks, addr, size,
					heap_amount_add(&w->use->live, w->mem, addr, size));
	}
	if (d->size > n * size) { /* no region fits there */
		w->use->metadata.bytes += d->size - n * size;
		w->use->metadata.resident +=
			w->mem->resident(w->mem->ctx, d->addr + n * size, d->size - n * size);
	}
}

static void take_large(struct walk *w, const struct edata *d)
{
	uint64_t size = class_of(d) < CLASSES ? w->sizes[class_of(d)] : 0;
	uint64_t page = d->addr & ~(uint64_t)(HEAP_PAGE - 1), all, used;

	if (!size || size > d->size - (d->addr - page)) {
		add_unknown(w, page, d->size);
		return;
	}
	/* A page of padding lets it begin anywhere in the first one. */
	all = w->mem->resident(w->mem->ctx, page, d->size);
	used = heap_amount_add(&w->use->live, w->mem, d->addr, size);
	heap_blocks_add(w->blocks, d->addr, size, used);
	heap_amount_add(&w->use->mapped, w->mem, d->addr, size);
	w->use->metadata.bytes += d->size - size;
	w->use->metadata.resident += all > used ? all - used : 0;
}

static void take_extent(struct walk *w, const struct edata *d)
{
	uint64_t arena = d->bits & 4095;

	if (arena < 4095 && arena + 1 > w->use->arenas)
		w->use->arenas = (uint32_t)arena + 1;
	if (state_of(d) == STATE_RETAINED)
		heap_amount_add(&w->use->top, w->mem, d->addr, d->size);
	else if (state_of(d) != STATE_ACTIVE)
		heap_amount_add(&w->use->free, w->mem, d->addr, d->size);
	else if (d->bits >> 12 & 1)
		take_slab(w, d);
	else
		take_large(w, d);
}

static void walk_leaf(struct walk *w, uint64_t first)
{
	for (uint64_t i = 0; i < FANOUT; i++) {
		uint64_t page = first + i * HEAP_PAGE;
		struct edata d;

		if (!w->leaf[i] || page < w->behind || !edata_of(w, w->leaf[i], page, &d))
			continue;
		if (w->extents++ == EXTENTS_MAX) {
			w->use->caveat = "jemalloc has more extents than are counted";
			return;
		}
		add_piece(w, w->leaf[i] & EDATA_MASK);
		take_extent(w, &d);
		w->behind = page + d.size;
	}
}

static void walk_root(struct walk *w)
{
	uint32_t leaves = 0;

	for (uint64_t i = 0; i < FANOUT && leaves < LEAVES_MAX; i++) {
		uint64_t leaf = w->root[i];

		if (!leaf || !covers(w->mem, leaf, TABLE))
			continue;
		if (!w->mem->read(w->mem->ctx, leaf, w->leaf, TABLE)) {
			w->use->caveat = "part of jemalloc's map could not be read, or not in time";
			return;
		}
		leaves++;
		add_piece(w, leaf);
		add_piece(w, leaf + TABLE - 1);
		walk_leaf(w, i << 30);
	}
}

int heap_walk_jemalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks)
{
	struct walk *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;
	uint64_t root;

	if (w)
		w->leaf = malloc(TABLE);
	if (w && w->leaf) {
		w->mem = w->window.mem = mem;
		w->use = use;
		w->blocks = blocks;
		make_sizes(w);
		root = find_root(w);
		r = root ? 0 : -ENOENT;
		if (root)
			w->root = malloc(TABLE);
		if (root && !w->root)
			r = -ENOMEM;
	}
	if (r == 0 && !mem->read(mem->ctx, root, w->root, TABLE))
		r = -ENOENT;
	if (r == 0) {
		use->caveat = in_caches;
		walk_root(w);
	}
	if (w) {
		free(w->leaf);
		free(w->root);
	}
	free(w);
	return r;
}
