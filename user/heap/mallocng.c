/*
 * musl's mallocng (1.2.1 and later, src/malloc/mallocng/meta.h) on 64-bit machines, walked through its areas of metas.
 *
 *   context:  secret:8 [pagesize:8, where the page size is no constant] init_done:4 mmap_counter:4 free_meta_head avail_meta
 *             avail_meta_count avail_meta_area_count meta_alloc_shift meta_area_head meta_area_tail …
 *   area:     a page: check:8 next:8 nslots:4 pad:4 metas; check is the secret
 *   meta:     prev next mem avail_mask:4 freed_mask:4 last_idx:5|freeable:1|sizeclass:6|maplen:52
 *   group:    at `mem`: meta:8 active_idx:1 pad:7 then last_idx + 1 slots of one stride
 *   slot:     header of 4 bytes before it, which are the last of the slot before: …:1 reserved:3|idx:5 offset:2; reserved 6: a
 *             group lies in it; 7 at its beginning: the block begins `offset` units behind that
 *
 * The context is a variable that is found by its metas: a word that points to a page whose first word is another one of the
 * variable. A meta is believed when its group points back to it. Sizes are the requested ones, which musl keeps.
 */
#include "heap/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	UNIT = 16,
	IB = 4, /* bytes of a slot that are the next one's header */
	CLASSES = 48,
	CLASS_MAPPED = 63,
	META = 40,
	AREA_HEAD = 24,
	METAS = (HEAP_PAGE - AREA_HEAD) / META,
	AREAS_MAX = 1 << 16,
	HEAD_AT = 56,        /* of meta_area_head in the context; 8 more with `pagesize` */
	BSS_MAX = 64 << 20,  /* of one image is read                                     */
	READS_MAX = 1 << 14, /* of pages that words point to                             */
	COUNT_MAX = 1 << 20, /* avail_meta_area_count                                    */
	NESTED = 6,
	MOVED = 7,
	RESERVED_LONG = 5, /* the number of spare bytes stands at the slot's end       */
};

static const uint16_t size_classes[CLASSES] = {
	1,   2,   3,   4,    5,    6,    7,    8,    9,    10,   12,   15,   18,   20,   25,   31,
	36,  42,  50,  63,   72,   84,   102,  127,  146,  170,  204,  255,  292,  340,  409,  511,
	584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

struct meta {
	uint64_t prev, next, mem;
	uint32_t avail, freed;
	uint64_t bits;
};

_Static_assert(sizeof(struct meta) == META, "as meta.h has it");

struct walk {
	const struct heap_memory *mem;
	struct heap_use *use;
	struct heap_blocks *blocks;
	uint64_t areas;
	uint64_t secret;
	uint32_t groups;
	struct heap_window window;
	uint8_t area[HEAP_PAGE];
};

/* --- finding it --- */

/* Is `head` the first area of the context whose pointer to it lies at `at`? */
static bool is_context(struct walk *w, uint64_t at, uint64_t head, uint64_t head_at)
{
	uint64_t secret, area[3], last;

	if (!w->mem->read(w->mem->ctx, at - head_at, &secret, sizeof(secret)) || !secret ||
	    !w->mem->read(w->mem->ctx, head, area, sizeof(area)) || area[0] != secret ||
	    (uint32_t)area[2] != METAS || !w->mem->read(w->mem->ctx, at + 8, &last, sizeof(last)) ||
	    last % HEAP_PAGE || !w->mem->read(w->mem->ctx, last, area, sizeof(area)) ||
	    area[0] != secret || area[1])
		return false;
	w->secret = secret;
	return true;
}

static uint64_t find_in(struct walk *w, const struct heap_map *m, uint64_t *reads)
{
	uint64_t end = m->end - m->start < BSS_MAX ? m->end : m->start + BSS_MAX;
	uint64_t word = UINT64_MAX, shift = UINT64_MAX, count;

	w->window.limit = end;
	heap_window_forget(&w->window);
	for (uint64_t at = m->start; at < end && *reads < READS_MAX; at += 8) {
		if (at % HEAP_PAGE == 0 && !w->mem->resident(w->mem->ctx, at, 1)) {
			at += HEAP_PAGE - 8;
			continue;
		}
		count = shift;
		shift = word;
		if (!heap_window_word(&w->window, at, &word))
			break;
		/* Two counts stand before it: an array of pointers is none. */
		if (!word || word % HEAP_PAGE || count > COUNT_MAX || shift > 64 ||
		    !heap_map_of(w->mem, word))
			continue;
		(*reads)++;
		if (is_context(w, at, word, HEAD_AT) || is_context(w, at, word, HEAD_AT + 8))
			return word;
	}
	return 0;
}

static uint64_t find_areas(struct walk *w)
{
	uint64_t reads = 0, head = 0;

	for (uint32_t i = 0; !head && i < w->mem->n_maps; i++)
		if (w->mem->maps[i].kind == HEAP_MAP_ZEROED ||
		    w->mem->maps[i].kind == HEAP_MAP_DATA)
			head = find_in(w, &w->mem->maps[i], &reads);
	return head;
}

/* --- groups --- */

static void add_metadata(struct walk *w, uint64_t addr, uint64_t bytes)
{
	w->use->metadata.bytes += bytes;
	w->use->metadata.resident += w->mem->resident(w->mem->ctx, addr, bytes);
	heap_blocks_metadata(w->blocks, bytes);
}

static void add_unknown(struct walk *w, uint64_t from, uint64_t bytes)
{
	heap_part_add(&w->use->unknown, w->mem, w->blocks, HEAP_PART_UNKNOWN, from, bytes);
	heap_blocks_unknown(w->blocks, from, from + bytes);
	w->use->caveat = "groups of musl do not add up";
}

static uint32_t reserved_of(const uint8_t *header)
{
	return header[1] >> 5;
}

/* Where the block in the slot at `start` begins, and its bytes. false: this is no block. */
static bool block_in(const struct walk *w, uint64_t start, uint64_t stride, uint64_t *ret_at,
		     uint64_t *ret_bytes, bool *ret_is_group)
{
	uint64_t at = start, end = start + stride - IB;
	uint8_t header[4];
	uint32_t spare;

	if (!w->mem->read(w->mem->ctx, at - 4, header, sizeof(header)))
		return false;
	if (reserved_of(header) == MOVED) {
		uint16_t units;

		memcpy(&units, header + 2, sizeof(units));
		at += (uint64_t)units * UNIT;
		if (!units || at >= end ||
		    !w->mem->read(w->mem->ctx, at - 4, header, sizeof(header)))
			return false;
	}
	spare = reserved_of(header);
	*ret_is_group = spare == NESTED;
	if (spare == NESTED)
		spare = 0;
	else if (spare == MOVED)
		return false;
	else if (spare == RESERVED_LONG &&
		 !w->mem->read(w->mem->ctx, end - 4, &spare, sizeof(spare)))
		return false;
	if (spare > end - at)
		return false;
	*ret_at = at;
	*ret_bytes = (end - at - spare + 7) & ~7ULL;
	return true;
}

static void take_slot(struct walk *w, uint64_t start, uint64_t stride, bool is_used,
		      bool own_mapping)
{
	uint64_t at, bytes;
	bool is_group;

	if (!is_used) {
		heap_part_add(&w->use->free, w->mem, w->blocks, HEAP_PART_FREE, start, stride);
		return;
	}
	if (!block_in(w, start, stride, &at, &bytes, &is_group)) {
		add_unknown(w, start, stride);
		return;
	}
	if (is_group) /* it has a meta of its own */
		return;
	heap_blocks_add(w->blocks, at, bytes, heap_amount_add(&w->use->live, w->mem, at, bytes));
	if (own_mapping)
		heap_amount_add(&w->use->mapped, w->mem, at, bytes);
	if (stride > bytes)
		add_metadata(w, at + bytes, stride - bytes);
}

/* false: this is no meta in use. */
static bool take_group(struct walk *w, const struct meta *m, uint64_t meta_at)
{
	uint64_t n = (m->bits & 31) + 1, class = m->bits >> 6 & 63, maplen = m->bits >> 12, back,
		 stride, bytes;
	uint32_t all = (uint32_t)((2ULL << (n - 1)) - 1);
	const struct heap_map *map = m->mem % UNIT ? NULL : heap_map_of(w->mem, m->mem);

	if (!map || !w->mem->read(w->mem->ctx, m->mem, &back, sizeof(back)) || back != meta_at)
		return false;
	if (maplen > (map->end - m->mem) / HEAP_PAGE ||
	    (class >= CLASSES && (class != CLASS_MAPPED || !maplen)) || m->avail & m->freed ||
	    (m->avail | m->freed) & ~all)
		return false;
	stride = n == 1 && maplen ? maplen * HEAP_PAGE - UNIT
				  : UNIT * (uint64_t)size_classes[class % CLASSES];
	bytes = maplen ? maplen * HEAP_PAGE : UNIT + n * stride;
	if (bytes > map->end - m->mem || n * stride > bytes - UNIT)
		return false;
	w->groups++;
	heap_blocks_arena(w->blocks, class == CLASS_MAPPED ? HEAP_NO_ARENA : 0);
	heap_blocks_part(w->blocks, HEAP_PART_RUN, m->mem, bytes);
	add_metadata(w, m->mem, UNIT);
	for (uint64_t i = 0; i < n; i++)
		take_slot(w, m->mem + UNIT + i * stride, stride, !((m->avail | m->freed) >> i & 1),
			  class == CLASS_MAPPED);
	if (bytes > UNIT + n * stride)
		add_metadata(w, m->mem + UNIT + n * stride, bytes - UNIT - n * stride);
	return true;
}

static void take_areas(struct walk *w, uint64_t head)
{
	for (uint64_t at = head, next; at; at = next) {
		if (w->areas++ == AREAS_MAX ||
		    !w->mem->read(w->mem->ctx, at, w->area, sizeof(w->area)) ||
		    memcmp(w->area, &w->secret, sizeof(w->secret)) != 0) {
			w->use->caveat = "not all areas of musl's metas could be read";
			return;
		}
		memcpy(&next, w->area + 8, sizeof(next));
		heap_blocks_arena(w->blocks, 0);
		add_metadata(w, at, HEAP_PAGE);
		for (uint64_t i = 0; i < METAS; i++) {
			struct meta m;

			memcpy(&m, w->area + AREA_HEAD + i * META, sizeof(m));
			if (m.mem && !take_group(w, &m, at + AREA_HEAD + i * META))
				w->use->caveat = "a group of musl's was in the middle of a change";
		}
	}
}

int heap_walk_mallocng(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks)
{
	struct walk *w = calloc(1, sizeof(*w));
	uint64_t head;
	int r;

	if (!w)
		return -ENOMEM;
	w->mem = w->window.mem = mem;
	w->use = use;
	w->blocks = blocks;
	head = find_areas(w);
	if (head)
		take_areas(w, head);
	r = w->groups ? 0 : -ENOENT;
	use->arenas = w->groups ? 1 : 0;
	use->metadata.blocks = 0;
	free(w);
	return r;
}
