/*
 * glibc's malloc, walked: arenas, their heaps, every chunk, then what lies in fastbins and tcaches.
 */
#include "base/cleanup.h"
#include "base/grow.h"
#include "heap/glibc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHUNK_LEAST = 32,
	HEADER = 8, /* of a chunk in use: its prev_size belongs to the one before */
	FLAGS = 7,
	PREV_IN_USE = 1,
	IS_MAPPED = 2,
	NOT_MAIN = 4,
	STEPS_BACK = 8,      /* windows that may be read once more                        */
	TCACHE_2_30 = 0x290, /* size of a tcache's chunk                                  */
	TCACHE_2_26 = 0x250,
	CACHES_MAX = 1 << 16,
	LIST_MAX = 1 << 20,         /* chunks in fastbins and tcaches, all together              */
	MAPPED_PAGES_MAX = 1 << 16, /* pages that are searched for chunks of their own mapping */
	HEAPS_MAX = 1 << 16,
};

/* A stretch of chunks. */
struct region {
	uint64_t from, end;
};

/* A chunk that looks in use, and is not the program's. */
enum idle_kind { IDLE_CACHED, IDLE_FAST, IDLE_OWN };
struct idle {
	uint64_t chunk, size;
	enum idle_kind kind;
};

struct walk {
	const struct heap_memory *mem;
	struct heap_use *use;
	struct heap_blocks *blocks;
	struct glibc_layout layout;
	uint64_t brk_from; /* where the main arena begins in [heap] */
	struct region *regions;
	uint32_t n_regions, room_regions;
	uint64_t *caches; /* chunks that may be a tcache */
	uint32_t n_caches, room_caches;
	struct idle *idle;
	uint32_t n_idle, room_idle;
	bool oom;
	struct heap_window window;
};

/* How far a walk was when a window had been filled. */
struct checkpoint {
	uint64_t at;
	struct heap_use use;
	struct heap_mark blocks;
	uint32_t n_caches;
};

static bool add_region(struct walk *w, uint64_t from, uint64_t end)
{
	if (!GROW(w->regions, w->n_regions, w->room_regions)) {
		w->oom = true;
		return false;
	}
	w->regions[w->n_regions++] = (struct region){ from, end };
	return true;
}

static int by_from(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorted. */
static bool in_regions(const struct walk *w, uint64_t addr)
{
	uint32_t low = 0, high = w->n_regions;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (addr < w->regions[mid].from)
			high = mid;
		else if (addr >= w->regions[mid].end)
			low = mid + 1;
		else
			return true;
	}
	return false;
}

/* Not sorted: has a walk begun there? */
static bool was_walked(const struct walk *w, uint64_t from)
{
	for (uint32_t i = 0; i < w->n_regions; i++)
		if (w->regions[i].from == from)
			return true;
	return false;
}

static void add_metadata(struct walk *w, uint64_t addr, uint64_t bytes)
{
	w->use->metadata.bytes += bytes;
	w->use->metadata.resident += w->mem->resident(w->mem->ctx, addr, bytes);
	heap_blocks_metadata(w->blocks, bytes);
}

static void add_unknown(struct walk *w, uint64_t from, uint64_t end, const char *why)
{
	if (end <= from)
		return;
	w->use->unknown.bytes += end - from;
	w->use->unknown.resident += w->mem->resident(w->mem->ctx, from, end - from);
	w->use->caveat = why;
	heap_blocks_unknown(w->blocks, from, end);
	heap_blocks_part(w->blocks, HEAP_PART_UNKNOWN, from, end - from);
}

/* A block that may be the tcache of a thread. */
static void add_cache(struct walk *w, uint64_t chunk)
{
	if (w->n_caches >= CACHES_MAX || !GROW(w->caches, w->n_caches, w->room_caches)) {
		w->use->caveat = "not all thread caches were read";
		return;
	}
	w->caches[w->n_caches++] = chunk;
}

static void add_live(struct walk *w, uint64_t chunk, uint64_t size)
{
	add_metadata(w, chunk + HEADER, HEADER);
	heap_blocks_add(w->blocks, chunk + 2 * HEADER, size - HEADER,
			heap_amount_add(&w->use->live, w->mem, chunk + 2 * HEADER, size - HEADER));
	if (size == TCACHE_2_30 || size == TCACHE_2_26)
		add_cache(w, chunk);
}

/* A row of chunks, as it is walked. */
struct stretch {
	uint64_t from, end;
	uint64_t top;      /* 0: it ends without one                        */
	uint64_t top_at;   /* where the arena says it                       */
	uint64_t not_main; /* NOT_MAIN or 0                                 */
	uint64_t end_most; /* where `end` may be by now                      */
};

/* The process went on: where its top is now. The main arena's ends with it. */
static void read_top(struct walk *w, struct stretch *s)
{
	uint64_t top, size;

	if (!w->mem->read(w->mem->ctx, s->top_at, &top, sizeof(top)) || top % 16 || top < s->from ||
	    !w->mem->read(w->mem->ctx, top + HEADER, &size, sizeof(size)))
		return;
	/* A top whose size is not written yet: take_chunk() says so. */
	if (!s->not_main && top < s->end_most && size & PREV_IN_USE)
		s->end = (size & ~(uint64_t)FLAGS) < s->end_most - top
				 ? top + (size & ~(uint64_t)FLAGS)
				 : s->end_most;
	if (top >= s->end)
		return;
	s->top = top;
	w->window.limit = s->end;
}

/*
 * One chunk of [*at, end). 0: it was counted and *at moved on; 1: the stretch ended here; -EBADMSG: this is
 * no chunk; -EFAULT: it cannot be read.
 */
static int take_chunk(struct walk *w, const struct stretch *s, uint64_t *at)
{
	uint64_t p = *at, end = s->end, head, size, next;

	if (end - p < CHUNK_LEAST) { /* what two fenceposts leave */
		add_metadata(w, p + HEADER, end - p - HEADER);
		*at = end;
		return 1;
	}
	if (!heap_window_word(&w->window, p + HEADER, &head))
		return -EFAULT;
	size = head & ~(uint64_t)FLAGS;
	if (p == s->top) {
		if (size < 2 * HEADER || size > end - p || !(head & PREV_IN_USE))
			return -EBADMSG;
		heap_part_add(&w->use->top, w->mem, w->blocks, HEAP_PART_TOP, p + HEADER,
			      size - HEADER);
		*at = p + size;
		return 1;
	}
	/* A fencepost: where the main arena's memory was interrupted, or a heap was full. */
	if (size == 2 * HEADER && head & PREV_IN_USE) {
		add_metadata(w, p + HEADER, size);
		*at = p + size;
		return 0;
	}
	if (size < CHUNK_LEAST || size % 16 || head & IS_MAPPED ||
	    (head & NOT_MAIN & ~s->not_main) || size > end - p || end - p - size < 2 * HEADER ||
	    (p < s->top && size > s->top - p))
		return -EBADMSG;
	if (!heap_window_word(&w->window, p + size + HEADER, &next))
		return -EFAULT;
	/* Free ones of other arenas do not have the flag. */
	if (next & PREV_IN_USE && (head & NOT_MAIN) != s->not_main)
		return -EBADMSG;
	if (next & PREV_IN_USE)
		add_live(w, p, size);
	else
		heap_part_add(&w->use->free, w->mem, w->blocks, HEAP_PART_FREE, p + HEADER, size);
	*at = p + size;
	return 0;
}

/*
 * Every chunk from `from` on. What the process changed meanwhile makes the row end in something
 * that is no chunk: then the walk goes back by one window, by two, … and reads them once more.
 */
static void walk_stretch(struct walk *w, struct stretch *s)
{
	struct checkpoint checkpoints[STEPS_BACK], *c;
	uint64_t p = s->from, loads = UINT64_MAX, n = 0, kept = 0, again = 0, back;
	int r = 0;

	if (!s->not_main) /* where its first chunk would have the size of the one before */
		heap_blocks_metadata(w->blocks, HEADER);
	w->window.limit = s->end;
	heap_window_forget(&w->window);
	while (p < s->end && r != 1) {
		if (w->window.loads != loads) {
			loads = w->window.loads;
			c = &checkpoints[n++ % STEPS_BACK];
			c->at = p;
			c->use = *w->use;
			c->n_caches = w->n_caches;
			heap_blocks_mark(w->blocks, &c->blocks);
			kept += kept < STEPS_BACK;
		}
		if (s->top && p >= s->top)
			read_top(w, s);
		r = s->top && p > s->top ? -EBADMSG : take_chunk(w, s, &p);
		if (r != -EBADMSG || again == STEPS_BACK) {
			if (r < 0)
				break;
			continue;
		}
		again++;
		back = again < kept ? again : kept;
		n -= back;
		kept -= back;
		c = &checkpoints[n % STEPS_BACK];
		p = c->at;
		*w->use = c->use;
		w->n_caches = c->n_caches;
		heap_blocks_rewind(w->blocks, &c->blocks);
		heap_window_forget(&w->window);
		if (s->top)
			read_top(w, s);
	}
	if (r < 0)
		add_unknown(w, p, s->end,
			    r == -EFAULT ? "part of a heap could not be read, or not in time"
					 : "the chunks of a heap do not add up");
	add_region(w, s->from, s->end);
}

/* The main arena's memory: [heap], and where that could not grow, mappings. */
static void walk_main(struct walk *w, const struct glibc_arena *a, const struct heap_map *brk)
{
	const struct heap_map *of_top = glibc_map_of_top(w->mem, a->top);
	struct stretch s = { .top_at = a->addr + w->layout.bins - 16 };
	uint64_t walked = 0;

	if (!a->system_mem)
		return;
	if (brk && of_top == brk) {
		s.from = w->brk_from;
		s.end = brk->end;
		s.end_most = brk->end + GLIBC_GROWN_MAX;
		s.top = a->top;
		read_top(w, &s);
		walk_stretch(w, &s);
		walked = s.end - s.from;
	} else {
		if (brk) {
			s.from = w->brk_from;
			s.end = brk->end;
			walk_stretch(w, &s);
			walked = s.end - s.from;
		}
		if (of_top && of_top->kind == HEAP_MAP_ANON) {
			s.from = of_top->start;
			s.end = s.end_most = of_top->end;
			s.top = a->top;
			read_top(w, &s);
			walk_stretch(w, &s);
			walked += s.end - s.from;
		}
	}
	if (walked < a->system_mem) {
		w->use->unknown.bytes += a->system_mem - walked;
		w->use->caveat = "the main arena is not contiguous";
	}
}

/* The heaps of another arena, the last one first. */
static void walk_heaps(struct walk *w, const struct glibc_arena *a)
{
	uint64_t heap = a->top & ~(uint64_t)(GLIBC_HEAP_MAX - 1), walked = 0;
	uint64_t of_arena = a->addr & ~(uint64_t)(GLIBC_HEAP_MAX - 1);
	uint64_t info = a->addr - of_arena; /* size of struct heap_info */

	for (int n = 0; n < HEAPS_MAX && walked < a->system_mem; n++) {
		struct stretch s = { .not_main = NOT_MAIN };
		uint64_t head[3], first = heap + info;

		if (!w->mem->read(w->mem->ctx, heap, head, sizeof(head)) || head[0] != a->addr ||
		    head[2] % HEAP_PAGE || head[2] > GLIBC_HEAP_MAX || head[2] < HEAP_PAGE)
			break;
		if (heap == of_arena) /* the arena itself; what chunks hold is aligned to 16 */
			first = (a->addr + w->layout.bins + 2 * 8 * GLIBC_BINS + 16 + 5 * 8 + 15) &
				~15ULL;
		s.from = first;
		s.end = heap + head[2];
		if (was_walked(w, first) || first >= s.end)
			break;
		if (a->top >= s.from && a->top < s.end) {
			s.top = a->top;
			s.top_at = a->addr + w->layout.bins - 16;
		}
		add_metadata(w, heap, first - heap + HEADER);
		walk_stretch(w, &s);
		walked += head[2];
		if (heap == of_arena)
			break;
		heap = head[1];
		if (heap % GLIBC_HEAP_MAX)
			break;
	}
	if (walked < a->system_mem) {
		w->use->unknown.bytes += a->system_mem - walked;
		w->use->caveat = "heaps of an arena were not found";
	}
}

/* --- blocks with mappings of their own --- */

/* The size of the mapping that begins with a chunk at `p`, 0: there is none. */
static uint64_t mapped_chunk(const struct walk *w, uint64_t p, uint64_t end)
{
	uint64_t head[2];

	if (!w->mem->resident(w->mem->ctx, p, sizeof(head)) ||
	    !w->mem->read(w->mem->ctx, p, head, sizeof(head)) || (head[1] & FLAGS) != IS_MAPPED)
		return 0;
	head[1] &= ~(uint64_t)FLAGS;
	if (!head[1] || head[1] % HEAP_PAGE || head[1] > end - p || head[0] % 16 ||
	    head[0] >= head[1])
		return 0;
	return head[1];
}

/* What is mapped right behind an image's variables is one mapping with them. */
static bool may_have_mapped(const struct heap_map *m, bool everywhere)
{
	return m->kind == HEAP_MAP_ANON || (everywhere && m->kind == HEAP_MAP_ZEROED);
}

/*
 * A mapping may begin with one, and one lies behind the other; with `everywhere` any page may begin one:
 * what others have mapped right below shares the mapping.
 */
static uint64_t scan_mapped(struct walk *w, bool everywhere, uint64_t blocks)
{
	uint64_t pages = 0, bytes = 0;

	for (uint32_t i = 0; i < w->mem->n_maps; i++) {
		const struct heap_map *m = &w->mem->maps[i];

		if (!may_have_mapped(m, everywhere) || in_regions(w, m->start + HEAP_PAGE / 2))
			continue;
		for (uint64_t p = m->start, size;
		     p < m->end && pages < MAPPED_PAGES_MAX && w->use->mapped.blocks < blocks;
		     p += size, pages++) {
			size = mapped_chunk(w, p, m->end);
			if (!size && !everywhere)
				break;
			if (!size) {
				size = HEAP_PAGE;
				continue;
			}
			heap_amount_add(&w->use->live, w->mem, p + 16, size - 16);
			heap_blocks_add(
				w->blocks, p + 16, size - 16,
				heap_amount_add(&w->use->mapped, w->mem, p + 16, size - 16));
			add_metadata(w, p, 16);
			bytes += size;
		}
	}
	return bytes;
}

/* mp_ says how many there are; where, only they do. Where it was not found there may be any number. */
static void walk_mapped(struct walk *w, bool counted, uint64_t blocks, uint64_t bytes)
{
	struct heap_use before = *w->use;
	struct heap_mark mark;
	uint64_t found;

	heap_blocks_arena(w->blocks, HEAP_NO_ARENA);
	heap_blocks_mark(w->blocks, &mark);
	found = scan_mapped(w, false, counted ? blocks : UINT64_MAX);
	if (!counted || (w->use->mapped.blocks == blocks && found == bytes))
		return;
	*w->use = before;
	heap_blocks_rewind(w->blocks, &mark);
	found = scan_mapped(w, true, blocks);
	if (w->use->mapped.blocks == blocks && found == bytes)
		return;
	if (found < bytes)
		w->use->unknown.bytes += bytes - found;
	w->use->caveat = "not all large blocks with mappings of their own were found";
}

/* --- freed blocks that look in use --- */

static void add_idle(struct walk *w, uint64_t chunk, uint64_t size, enum idle_kind kind)
{
	if (!GROW(w->idle, w->n_idle, w->room_idle)) {
		w->oom = true;
		return;
	}
	if (w->n_idle < LIST_MAX)
		w->idle[w->n_idle++] = (struct idle){ chunk, size, kind };
}

/* The size of the chunk of `addr`, 0: there is none of ours. */
static uint64_t chunk_size(const struct walk *w, uint64_t chunk)
{
	uint64_t head;

	if (chunk % 16 || !in_regions(w, chunk) ||
	    !w->mem->read(w->mem->ctx, chunk + HEADER, &head, sizeof(head)) || head & IS_MAPPED)
		return 0;
	return head & ~(uint64_t)FLAGS;
}

/*
 * Follows a list of chunks of one size, `first` and the links being addresses `off` behind a chunk. Links
 * may be XORed with their own place >> 12. Ends at what is no such chunk.
 */
static uint32_t take_list(struct walk *w, uint64_t first, uint64_t off, uint64_t size,
			  uint64_t most, enum idle_kind kind)
{
	uint32_t n = 0;

	for (uint64_t at = first; at && n < most && w->n_idle < LIST_MAX; n++) {
		uint64_t chunk = at - off, place = chunk + 16, link;

		if (!w->mem->read(w->mem->ctx, place, &link, sizeof(link))) {
			w->use->caveat =
				"some free memory could not be distinguished from memory in use";
			break;
		}
		if (chunk_size(w, chunk) != size)
			break;
		add_idle(w, chunk, size, kind);
		at = link ^ place >> 12;
		if (at && !in_regions(w, at))
			at = in_regions(w, link) ? link : 0;
	}
	return n;
}

static void take_fastbins(struct walk *w, const struct glibc_arena *a)
{
	for (uint64_t i = 0; i < GLIBC_FASTBINS; i++)
		take_list(w, a->fastbins[i], 0, CHUNK_LEAST + 16 * i, LIST_MAX, IDLE_FAST);
}

/* A block that may be a thread's tcache. true: lists of it were found. */
static bool take_cache(struct walk *w, uint64_t chunk)
{
	uint64_t size = chunk_size(w, chunk), entries[GLIBC_TCACHE_BINS], counts_len, n = 0;
	uint16_t counts[GLIBC_TCACHE_BINS];
	uint8_t bytes[2 * GLIBC_TCACHE_BINS];

	if (size != TCACHE_2_30 && size != TCACHE_2_26)
		return false;
	counts_len = size == TCACHE_2_30 ? 2 * GLIBC_TCACHE_BINS : GLIBC_TCACHE_BINS;
	if (!w->mem->read(w->mem->ctx, chunk + 16, bytes, counts_len) ||
	    !w->mem->read(w->mem->ctx, chunk + 16 + counts_len, entries, sizeof(entries)))
		return false;
	for (int i = 0; i < GLIBC_TCACHE_BINS; i++) {
		counts[i] = bytes[i];
		if (size == TCACHE_2_30)
			memcpy(&counts[i], bytes + 2 * i, sizeof(counts[i]));
		if ((counts[i] && !entries[i]) || entries[i] % 16 ||
		    (entries[i] &&
		     chunk_size(w, entries[i] - 16) != CHUNK_LEAST + 16 * (uint64_t)i))
			return false;
	}
	for (int i = 0; i < GLIBC_TCACHE_BINS; i++)
		n += take_list(w, entries[i], 16, CHUNK_LEAST + 16 * (uint64_t)i, counts[i],
			       IDLE_CACHED);
	return n > 0;
}

static int by_chunk(const void *a, const void *b)
{
	const struct idle *x = a, *y = b;

	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

/* What becomes of a row that was a block in use. */
static void take_part(struct heap_blocks *b, const struct heap_block *row, enum idle_kind kind)
{
	b->owner = row->owner;
	if (kind == IDLE_OWN)
		heap_blocks_metadata(b, 8 * (uint64_t)row->words);
	else
		heap_blocks_part(b, kind == IDLE_CACHED ? HEAP_PART_CACHED : HEAP_PART_FAST,
				 row->addr, 8 * (uint64_t)row->words);
}

/* They leave what is in use; where all blocks are listed, only those that are among them. */
static void move_idle(struct walk *w, uint64_t first_block)
{
	struct heap_blocks *b = w->blocks;
	struct heap_amount *to_amount[] = { [IDLE_CACHED] = &w->use->cached,
					    [IDLE_FAST] = &w->use->fast,
					    [IDLE_OWN] = &w->use->metadata };
	uint64_t from = first_block, to = first_block;

	if (!w->n_idle)
		return;
	qsort(w->idle, w->n_idle, sizeof(*w->idle), by_chunk);
	for (uint32_t i = 0; i < w->n_idle; i++) {
		const struct idle *d = &w->idle[i];
		bool listed;

		if (i && d->chunk == w->idle[i - 1].chunk)
			continue;
		while (b && from < b->n && b->rows[from].addr < d->chunk + 16)
			b->rows[to++] = b->rows[from++];
		listed = b && from < b->n && b->rows[from].addr == d->chunk + 16;
		if (b && !listed && heap_blocks_lists_all(b))
			continue;
		if (listed)
			take_part(b, &b->rows[from], d->kind);
		from += listed;
		heap_blocks_uncount(b, d->size - HEADER);
		heap_amount_take(&w->use->live, w->mem, d->chunk + 16, d->size - HEADER);
		heap_amount_add(to_amount[d->kind], w->mem, d->chunk + 16, d->size - HEADER);
	}
	while (b && from < b->n)
		b->rows[to++] = b->rows[from++];
	if (b)
		b->n = to;
}

static void sort_behind(struct heap_blocks *b, uint64_t first)
{
	struct heap_blocks part = { .n = b ? b->n - first : 0 };

	if (!part.n)
		return;
	part.rows = b->rows + first;
	heap_blocks_sort(&part);
}

static const struct heap_map *brk_map(const struct heap_memory *mem)
{
	for (uint32_t i = 0; i < mem->n_maps; i++)
		if (mem->maps[i].kind == HEAP_MAP_BRK)
			return &mem->maps[i];
	return NULL;
}

static void walk_arenas(struct walk *w, const struct glibc_arena *main, const struct heap_map *brk)
{
	struct glibc_arena a = *main;

	for (int i = 0; i < GLIBC_ARENAS_MAX; i++) {
		w->use->arenas++;
		heap_blocks_arena(w->blocks, (uint32_t)i);
		heap_blocks_held(w->blocks, a.system_mem);
		if (i == 0)
			walk_main(w, &a, brk);
		else
			walk_heaps(w, &a);
		if (a.next == main->addr)
			return;
		if (glibc_arena_read(w->mem, &w->layout, a.next, &a) < 0)
			break;
	}
	w->use->caveat = "the list of arenas could not be read to its end";
}

static void take_lists(struct walk *w, const struct glibc_arena *main)
{
	struct glibc_arena a = *main;

	for (int i = 0; i < GLIBC_ARENAS_MAX; i++) {
		take_fastbins(w, &a);
		if (a.next == main->addr || glibc_arena_read(w->mem, &w->layout, a.next, &a) < 0)
			break;
	}
	for (uint32_t i = 0; i < w->n_caches; i++) {
		if (!take_cache(w, w->caches[i]))
			continue;
		w->use->caches++;
		add_idle(w, w->caches[i], chunk_size(w, w->caches[i]), IDLE_OWN);
	}
}

int heap_walk_glibc(const struct heap_memory *mem, struct heap_use *use, struct heap_blocks *blocks)
{
	const struct heap_map *brk = brk_map(mem);
	uint64_t first_block = blocks ? blocks->n : 0;
	struct glibc_counts counts = { 0 };
	struct glibc_arena main;
	bool counted, oom;
	struct walk *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->mem = w->window.mem = mem;
	w->use = use;
	w->blocks = blocks;
	r = glibc_find(mem, &w->layout, &main);
	if (r == 0) {
		counted = brk && glibc_counts(mem, main.addr, brk->start, brk->end, &counts);
		w->brk_from = counted ? counts.sbrk_base : brk ? brk->start : 0;
		walk_arenas(w, &main, brk);
		if (w->n_regions)
			qsort(w->regions, w->n_regions, sizeof(*w->regions), by_from);
		walk_mapped(w, counted, counts.mapped_blocks, counts.mapped_bytes);
		sort_behind(blocks, first_block);
		take_lists(w, &main);
		move_idle(w, first_block);
		use->metadata.blocks = 0;
	}
	oom = w->oom;
	free(w->regions);
	free(w->caches);
	free(w->idle);
	free(w);
	return oom ? -ENOMEM : r;
}
