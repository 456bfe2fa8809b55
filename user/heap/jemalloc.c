/*
 * jemalloc 5.2 and 5.3 on 64-bit machines with 48-bit addresses, walked through its map of pages.
 *
 *   root:   2^18 words in .bss, by bits 47 … 30 of an address: where the leaf is
 *   leaf:   2^18 words, by bits 29 … 12: index of the size class << 48 | address of the extent's
 *           edata (a multiple of 128) | flags; of a slab for each page, of others for the first and the
 *           last one; extents that are not in use have them, too
 *   edata:  bits addr size|esn ps sn link[3] bitmap[8]
 *           bits of 5.3: arena:12 slab:1 committed:1 pai:1 zeroed:1 guarded:1 state:3 class:8 free:10 …
 *           bits of 5.2: arena:12 slab:1 committed:1 dumpable:1 zeroed:1 state:2 class:8 free:10 …
 *           bitmap of a slab: 1 is free
 *
 * Nothing of it needs a symbol: a word of .bss that points to what looks like a leaf, in which some entry's
 * edata says of itself that it is at that entry's address, shows where the root is, as that
 * address says which word of the root it was. Of the two forms of an edata it is the one by which more of
 * these have the size class that their entry has. A slab is believed when its bitmap has as many ones as
 * it says that it has free regions. Two tables of size classes, whose contents are known, lie in .bss, too.
 *
 * Blocks in thread caches cannot be distinguished from those in use: jemalloc's own
 * stats.allocated counts it so, too.
 */
#include "heap/jemalloc.h"
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
	STATE_DIRTY = 1,
	STATE_RETAINED = 3,
	PIECE = 2 << 20,   /* its own memory comes in multiples of this               */
	PIECES_MAX = 4096, /* of those; in a table of twice as many places             */
	LEAVES_MAX = 1024,
	EXTENTS_MAX = 1 << 22,
	READS_MAX = 1 << 18, /* of what words of .bss point to, to find one that points to a leaf */
	BSS_MAX = 64 << 20,  /* of one image is read */
	LOOKS_MAX = 256,     /* entries of one that are read to decide that             */
	MISSES_MAX = 16,     /* … as long as none of so many is one                     */
	PART_MAX = 64 << 10, /* bytes of a leaf that are read at once, to decide that   */
	LOOKUP_MAX = 4096,   /* bytes: the sizes that the table of bytes is for         */
};

#define ADDR_MASK 0xffffffffffffULL

/* Where the fields of an edata's first word are. */
static const struct layout {
	uint8_t state, state_bits, class, nfree;
	uint64_t aligned;
} layouts[] = {
	{ 17, 3, 20, 28, 128 }, /* 5.3 */
	{ 16, 2, 18, 26, 64 },  /* 5.2 */
};
enum { LAYOUTS = sizeof(layouts) / sizeof(*layouts) };

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
	const struct layout *layout;
	uint64_t sizes[CLASSES];
	uint64_t *root, *leaf;
	uint64_t pieces[2 * PIECES_MAX]; /* a hash table; 0: nothing is there */
	uint32_t n_pieces;
	uint64_t extents;
	uint64_t tries;  /* reads that it took to find the root */
	uint64_t behind; /* the last one that was counted: its other pages are not read */
	struct heap_window window;
};

/* 8, 16, 32, 48, 64, then four steps to each next power of two. */
static void make_sizes(uint64_t *sizes)
{
	static const uint64_t first[] = { 8, 16, 32, 48, 64 };
	uint32_t n = 5;

	memcpy(sizes, first, sizeof(first));
	for (uint32_t lg = 6; n < CLASSES; lg++)
		for (uint64_t i = 1; i <= 4 && n < CLASSES; i++)
			sizes[n++] = (1ULL << lg) + (i << (lg - 2));
}

static uint32_t state_of(const struct layout *l, const struct edata *d)
{
	return d->bits >> l->state & ((1u << l->state_bits) - 1);
}

static uint32_t class_of(const struct layout *l, const struct edata *d)
{
	return d->bits >> l->class & 255;
}

static uint32_t nfree_of(const struct layout *l, const struct edata *d)
{
	return d->bits >> l->nfree & 1023;
}

/* The edata that an entry of a leaf points to. */
static uint64_t edata_at(const struct layout *l, uint64_t entry)
{
	return entry & ADDR_MASK & ~(l->aligned - 1);
}

static struct edata edata_of_words(const uint64_t words[16])
{
	struct edata d = { .bits = words[0],
			   .addr = words[1],
			   .size = words[2] & ~(uint64_t)(HEAP_PAGE - 1) };

	memcpy(d.bitmap, words + 8, sizeof(d.bitmap));
	return d;
}

static bool read_edata(const struct heap_memory *mem, uint64_t at, struct edata *ret_edata)
{
	uint64_t words[16];

	if (!at || !mem->read(mem->ctx, at, words, sizeof(words)))
		return false;
	*ret_edata = edata_of_words(words);
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

	if (!read_edata(w->mem, edata_at(w->layout, entry), &d) ||
	    (d.addr & ~(uint64_t)(HEAP_PAGE - 1)) != page || !d.size ||
	    !covers(w->mem, page, d.size) || state_of(w->layout, &d) > STATE_RETAINED ||
	    (class_of(w->layout, &d) != entry >> 48 && entry >> 48 < CLASSES))
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

	if (entry >> 48 >= CLASSES || !read_edata(w->mem, edata_at(w->layout, entry), &d) ||
	    d.addr & ~ADDR_MASK || (d.addr >> 12 & (FANOUT - 1)) != i ||
	    !edata_of(w, entry, d.addr & ~(uint64_t)(HEAP_PAGE - 1), &d))
		return 0;
	root = place - 8 * (d.addr >> 30);
	return covers(w->mem, root, TABLE) ? root : 0;
}

/* What the first entries of a leaf agree on. Most of it was never touched. */
struct look {
	uint64_t root[LAYOUTS];
	uint32_t entries[LAYOUTS];
	uint32_t looks, misses;
};

static bool look_is_over(const struct look *look)
{
	bool any = false;

	for (int l = 0; l < LAYOUTS; l++)
		any |= look->entries[l];
	return look->looks >= LOOKS_MAX || (!any && look->misses >= MISSES_MAX);
}

static void look_at_entry(struct walk *w, uint64_t entry, uint64_t i, uint64_t place,
			  struct look *look)
{
	bool any = false;

	if (!entry || entry >> 48 == CLASSES) /* not in use: it has no class to agree with */
		return;
	look->looks++;
	for (int l = 0; l < LAYOUTS; l++) {
		uint64_t root;

		w->layout = &layouts[l];
		w->tries++;
		root = root_by_entry(w, entry, i, place);
		if (!root || (look->root[l] && look->root[l] != root))
			continue;
		look->root[l] = root;
		look->entries[l]++;
		any = true;
	}
	look->misses += !any;
}

/* The root, and the layout by which most entries agree on it; 0: none do. */
static uint64_t root_by(struct walk *w, uint64_t place, uint64_t leaf)
{
	uint64_t words[PART_MAX / 8];
	struct look look = { 0 };
	int best = 0;

	if (!covers(w->mem, leaf, TABLE))
		return 0;
	/* Ever larger parts: most words point to no leaf, as their first page says. */
	for (uint64_t i = 0, n = HEAP_PAGE / 8; i < FANOUT && !look_is_over(&look); i += n) {
		if (i && n < PART_MAX / 8)
			n *= 2;
		if (n > FANOUT - i)
			n = FANOUT - i;
		if (!w->mem->resident(w->mem->ctx, leaf + 8 * i, 8 * n))
			continue;
		w->tries++;
		if (!w->mem->read(w->mem->ctx, leaf + 8 * i, words, 8 * n))
			break;
		for (uint64_t k = heap_words_next(words, 0, n); k < n && !look_is_over(&look);
		     k = heap_words_next(words, k + 1, n))
			look_at_entry(w, words[k], i + k, place, &look);
	}
	for (int l = 1; l < LAYOUTS; l++)
		if (look.entries[l] > look.entries[best])
			best = l;
	w->layout = &layouts[best];
	return look.root[best];
}

/* Leaves lie apart: of two words side by side that point into the same 2 MiB, none points to one. */
static bool is_beside(uint64_t leaf, uint64_t word)
{
	return word != leaf && word > leaf - TABLE && word < leaf + TABLE;
}

/* The word that led to the root before, if it still does. */
static uint64_t root_as_before(struct walk *w)
{
	uint64_t at = w->mem->found ? w->mem->found->jemalloc : 0, word;

	if (!at || !w->mem->read(w->mem->ctx, at, &word, sizeof(word)))
		return 0;
	return root_by(w, at, word & ADDR_MASK);
}

static uint64_t find_root(struct walk *w)
{
	uint64_t failed = 0, root = root_as_before(w);

	for (uint32_t i = 0; !root && i < w->mem->n_maps; i++) {
		const struct heap_map *m = &w->mem->maps[i];

		if (m->kind != HEAP_MAP_ZEROED || m->end - m->start < TABLE - 4 * HEAP_PAGE)
			continue;
		w->window.limit = m->end;
		heap_window_forget(&w->window);
		for (uint64_t at = m->start, word = 0, before, behind;
		     at < m->end && at - m->start < BSS_MAX && w->tries < READS_MAX; at += 8) {
			/* Most of the table was never touched. */
			if (at % HEAP_PAGE == 0 && !w->mem->resident(w->mem->ctx, at, 1)) {
				at += HEAP_PAGE - 8;
				continue;
			}
			before = word;
			if (!heap_window_word(&w->window, at, &word))
				break;
			if (!word || word % 64 || word & ~ADDR_MASK ||
			    (heap_map_of(w->mem, word) ?: m)->kind != HEAP_MAP_ANON ||
			    word == failed || is_beside(word, before) ||
			    (heap_window_word(&w->window, at + 8, &behind) &&
			     is_beside(word, behind)))
				continue;
			root = root_by(w, at, word);
			if (root && w->mem->found)
				w->mem->found->jemalloc = at;
			if (root)
				break;
			failed = word;
		}
	}
	return root;
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
	heap_part_add(&w->use->unknown, w->mem, w->blocks, HEAP_PART_UNKNOWN, page, size);
	heap_blocks_unknown(w->blocks, page, page + size);
	w->use->caveat = "extents of jemalloc do not add up";
}

static void take_slab(struct walk *w, const struct edata *d)
{
	uint64_t size = class_of(w->layout, d) < BINS ? w->sizes[class_of(w->layout, d)] : 0,
		 n = size ? d->size / size : 0;
	uint64_t nfree = nfree_of(w->layout, d), ones = 0;

	for (uint64_t i = 0; i < n && i < 512; i++)
		ones += d->bitmap[i / 64] >> i % 64 & 1;
	if (!n || n > 512 || ones != nfree || d->addr % HEAP_PAGE) {
		add_unknown(w, d->addr & ~(uint64_t)(HEAP_PAGE - 1), d->size);
		return;
	}
	heap_blocks_part(w->blocks, HEAP_PART_RUN, d->addr, d->size);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t addr = d->addr + i * size;

		if (d->bitmap[i / 64] >> i % 64 & 1)
			heap_part_add(&w->use->free, w->mem, w->blocks, HEAP_PART_FREE, addr, size);
		else
			heap_blocks_add(w->blocks, addr, size,
					heap_amount_add(&w->use->live, w->mem, addr, size));
	}
	heap_blocks_metadata(w->blocks, d->size - n * size);
	if (d->size > n * size) { /* no region fits there */
		w->use->metadata.bytes += d->size - n * size;
		w->use->metadata.resident +=
			w->mem->resident(w->mem->ctx, d->addr + n * size, d->size - n * size);
	}
}

static void take_large(struct walk *w, const struct edata *d)
{
	uint64_t size = class_of(w->layout, d) < CLASSES ? w->sizes[class_of(w->layout, d)] : 0;
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
	heap_blocks_metadata(w->blocks, d->size - size);
	w->use->metadata.bytes += d->size - size;
	w->use->metadata.resident += all > used ? all - used : 0;
}

static void take_extent(struct walk *w, const struct edata *d)
{
	uint64_t arena = d->bits & 4095;

	if (arena < 4095 && arena + 1 > w->use->arenas)
		w->use->arenas = (uint32_t)arena + 1;
	heap_blocks_arena(w->blocks, arena < 4095 ? (uint32_t)arena : HEAP_NO_ARENA);
	if (state_of(w->layout, d) == STATE_RETAINED)
		heap_part_add(&w->use->top, w->mem, w->blocks, HEAP_PART_RETAINED, d->addr,
			      d->size);
	else if (state_of(w->layout, d) != STATE_ACTIVE)
		heap_part_add(&w->use->free, w->mem, w->blocks,
			      state_of(w->layout, d) == STATE_DIRTY ? HEAP_PART_DIRTY
								    : HEAP_PART_MUZZY,
			      d->addr, d->size);
	else if (d->bits >> 12 & 1)
		take_slab(w, d);
	else
		take_large(w, d);
}

static void walk_leaf(struct walk *w, uint64_t first)
{
	for (uint64_t i = heap_words_next(w->leaf, 0, FANOUT); i < FANOUT;
	     i = heap_words_next(w->leaf, i + 1, FANOUT)) {
		uint64_t page = first + i * HEAP_PAGE;
		struct edata d;

		if (page < w->behind || !edata_of(w, w->leaf[i], page, &d))
			continue;
		if (w->extents++ == EXTENTS_MAX) {
			w->use->caveat = "jemalloc has more extents than are counted";
			return;
		}
		add_piece(w, edata_at(w->layout, w->leaf[i]));
		take_extent(w, &d);
		w->behind = page + d.size;
	}
}

static void walk_root(struct walk *w)
{
	uint32_t leaves = 0;

	for (uint64_t i = heap_words_next(w->root, 0, FANOUT); i < FANOUT && leaves < LEAVES_MAX;
	     i = heap_words_next(w->root, i + 1, FANOUT)) {
		uint64_t leaf = w->root[i];

		if (!covers(w->mem, leaf, TABLE))
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
		make_sizes(w->sizes);
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

/* --- one block, and where things are --- */

static bool is_table_of_bytes(const uint8_t *bytes, const uint64_t *sizes)
{
	uint32_t class = 0;

	for (uint32_t i = 0; i <= LOOKUP_MAX / 8; i++) {
		while (sizes[class] < 8ull * i)
			class ++;
		if (bytes[i] != class)
			return false;
	}
	return true;
}

/* Is one of the tables at `at`? */
static void try_tables(const struct walk *w, uint64_t at, uint64_t word,
		       struct heap_jemalloc *ret_found)
{
	uint64_t sizes[CLASSES];
	uint8_t bytes[LOOKUP_MAX / 8 + 1];

	/* 8, and 16 behind it; classes of 0, 8, 16, … bytes. */
	if (word == 8 && w->mem->read(w->mem->ctx, at, sizes, sizeof(sizes)) &&
	    memcmp(sizes, w->sizes, sizeof(sizes)) == 0)
		ret_found->sizes = at;
	else if (word == 0x0403030202010000ULL &&
		 w->mem->read(w->mem->ctx, at, bytes, sizeof(bytes)) &&
		 is_table_of_bytes(bytes, w->sizes))
		ret_found->classes = at;
}

static void find_tables(struct walk *w, struct heap_jemalloc *ret_found)
{
	for (uint32_t i = 0; i < w->mem->n_maps; i++) {
		const struct heap_map *m = &w->mem->maps[i];
		uint64_t word;

		if (m->kind != HEAP_MAP_ZEROED && m->kind != HEAP_MAP_DATA)
			continue;
		w->window.limit = m->end;
		heap_window_forget(&w->window);
		for (uint64_t at = m->start; at < m->end && at - m->start < BSS_MAX; at += 8) {
			if (at % HEAP_PAGE == 0 && !w->mem->resident(w->mem->ctx, at, 1)) {
				at += HEAP_PAGE - 8;
				continue;
			}
			if (!heap_window_word(&w->window, at, &word))
				break;
			if (word)
				try_tables(w, at, word, ret_found);
		}
	}
}

int heap_jemalloc_find(const struct heap_memory *mem, struct heap_jemalloc *ret_found)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct heap_jemalloc found = { 0 };

	if (!w)
		return -ENOMEM;
	w->mem = w->window.mem = mem;
	make_sizes(w->sizes);
	found.root = find_root(w);
	if (found.root)
		find_tables(w, &found);
	found.layout = w->layout ? (uint32_t)(w->layout - layouts) : 0;
	free(w);
	if (!found.root || !found.sizes || !found.classes)
		return -ENOENT;
	*ret_found = found;
	return 0;
}

uint64_t heap_jemalloc_room(uint64_t size)
{
	uint64_t sizes[CLASSES];
	uint32_t low = 0, high = CLASSES;

	make_sizes(sizes);
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (sizes[mid] < size)
			low = mid + 1;
		else
			high = mid;
	}
	return low < CLASSES ? sizes[low] : 0;
}

/* What the extent around `addr` says of it. */
static enum heap_answer block_in(const struct layout *l, const struct edata *d, uint64_t addr,
				 uint64_t *ret_start, uint64_t *ret_size)
{
	uint64_t sizes[CLASSES], size, i;

	make_sizes(sizes);
	size = class_of(l, d) < CLASSES ? sizes[class_of(l, d)] : 0;
	if (state_of(l, d) != STATE_ACTIVE || !size)
		return HEAP_FREE;
	if (!(d->bits >> 12 & 1)) {
		*ret_start = d->addr;
		*ret_size = size;
		return HEAP_IN_USE;
	}
	i = (addr - d->addr) / size;
	if (class_of(l, d) >= BINS || i >= d->size / size || i >= 512)
		return HEAP_CANNOT_SAY;
	*ret_start = d->addr + i * size;
	*ret_size = size;
	return d->bitmap[i / 64] >> i % 64 & 1 ? HEAP_FREE : HEAP_IN_USE;
}

uint64_t heap_jemalloc_edata_bits(const struct heap_jemalloc *je)
{
	return ADDR_MASK & ~(layouts[je->layout % LAYOUTS].aligned - 1);
}

int heap_jemalloc_block(const struct heap_jemalloc *je, uint64_t addr, uint64_t entry,
			const uint64_t *edata, uint64_t *ret_start, uint64_t *ret_size)
{
	struct edata d;

	if (!entry || addr & ~ADDR_MASK)
		return -ENOENT;
	if (!edata)
		return HEAP_CANNOT_SAY;
	d = edata_of_words(edata);
	if (addr < d.addr || addr - d.addr >= d.size)
		return HEAP_CANNOT_SAY;
	return block_in(&layouts[je->layout % LAYOUTS], &d, addr, ret_start, ret_size);
}
