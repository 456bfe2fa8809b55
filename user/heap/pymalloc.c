/*
 * CPython's allocator of objects (Objects/obmalloc.c; 3.8 and later on 64-bit machines), walked through
 * its arenas: what PyObject_Malloc() and PyMem_Malloc() give out up to 512 bytes. What is larger they
 * take from malloc, whose walker has it.
 *
 *   usedpools  64 words among the interpreter's variables: of each of 32 sizes the first and the last
 *              pool that has free blocks, or twice its own address - 16
 *   arenas     a word there as well: of rows  address:8 pool_address:8 nfreepools:4 ntotalpools:4 …,
 *              48 bytes; `address` 0: not in use
 *   arena      1 MiB (before 3.10: 256 KiB) of pools at multiples of 16 KiB (4 KiB); those from
 *              pool_address on were never used
 *   pool       count:8 freeblock:8 next:8 prev:8 arena:4 szidx:4 nextoffset:4 maxnextoffset:4, then
 *              blocks of (szidx + 1) * 16 bytes, of which those from nextoffset on were never used
 *
 * No symbols are needed: usedpools points to itself and to pools that point back, and `arenas` is the word
 * whose rows have those pools where they say that they are. Every pool must have the number of
 * its row and numbers that fit each other, or it is counted in `unknown`.
 *
 * Blocks are counted by what their pool says. They are listed only where those of interpreters are asked for
 * (blocks.h), by their pool's chain of free blocks, each of which begins with the address of the next one; a pool
 * whose chain does not have as many as it says is read again, and is finally unknown.
 *
 * An interpreter with a lock of its own (3.12 and later) has usedpools and arenas in its state, or (3.13) in what a word of that refers to; they
 * are looked for there, if it is known where the states lie (memory.h). What python built for threads without a lock (mimalloc) has
 * is not found.
 */
#include "heap/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CLASSES = 32,
	ALIGNMENT = 16,
	HEADER = 48,
	ROW_WORDS = 6,
	POOL = 16 << 10,
	POOL_BEFORE_3_10 = 4 << 10,
	POOLS_PER_ARENA = 64,
	MAP_MAX = 16 << 20,     /* of one image's variables are read */
	IMAGES_MAX = 128 << 20, /* … and of all                           */
	LOOKS_MAX = 1 << 20,    /* … closely: at what a variable points to */
	ROWS_MAX = 1 << 22,     /* 4 TiB                                  */
	INTERP_MAX = 1 << 20,   /* of an interpreter's state is looked through */
	MANAGED_MAX = 1 << 10, /* behind usedpools: the variables that go with it, `arenas` first */
	UNUSED_MAX = 4 << 10,  /* rows in sequence, then it is no table any more */
};

struct pool {
	uint64_t count, freeblock, next, prev;
	uint32_t arena, szidx, nextoffset, maxnextoffset;
};

struct arena {
	uint64_t address, pool_address;
	uint32_t n_free, n_total;
};

struct walk {
	const struct heap_memory *mem;
	struct heap_use *use;
	uint64_t pool_size; /* 0: not known yet */
	uint64_t images;    /* bytes read  */
	uint32_t looks;
	uint64_t known[CLASSES]; /* pools that usedpools has */
	uint32_t known_arena[CLASSES];
	uint32_t n_known;
	uint32_t interp;            /* the number of the one whose arenas are walked */
	struct heap_blocks *blocks; /* NULL: they are not listed */
	struct heap_window window, rows;
	uint8_t pool[POOL];
	bool free[POOL / ALIGNMENT]; /* of its blocks */
};

_Static_assert(sizeof(struct pool) == HEADER, "as obmalloc.c has it");

/* --- pools --- */

static bool read_pool(const struct walk *w, uint64_t at, struct pool *ret_pool)
{
	return w->mem->read(w->mem->ctx, at, ret_pool, sizeof(*ret_pool));
}

static uint64_t block_size(const struct pool *p)
{
	return ((uint64_t)p->szidx + 1) * ALIGNMENT;
}

static uint64_t blocks_in(uint64_t pool_size, const struct pool *p)
{
	return (pool_size - HEADER) / block_size(p);
}

/* Do its numbers fit each other? */
static bool is_pool(const struct pool *p, uint64_t at, uint64_t pool_size)
{
	uint64_t size = block_size(p), off = p->freeblock - at - HEADER, touched;

	if (p->szidx >= CLASSES || p->maxnextoffset != pool_size - size ||
	    p->nextoffset < HEADER + 2 * size || p->nextoffset > pool_size ||
	    (p->nextoffset - HEADER) % size)
		return false;
	touched = (p->nextoffset - HEADER) / size;
	if (!p->freeblock)
		return p->count == blocks_in(pool_size, p);
	/* The one that is next is in reach, and free. */
	return p->count < touched && off % size == 0 && off / size < touched;
}

/* --- what the interpreter's variables say --- */

static bool is_anon(const struct walk *w, uint64_t addr)
{
	const struct heap_map *m = heap_map_of(w->mem, addr);

	return m && (m->kind == HEAP_MAP_ANON || m->kind == HEAP_MAP_ZEROED);
}

/* Takes one that usedpools has in its list of size `szidx`, whose head lies at `head`. */
static void know_pool(struct walk *w, uint64_t at, uint64_t head, uint32_t szidx)
{
	struct pool p;
	uint64_t pool_size;

	if (!read_pool(w, at, &p) || p.szidx != szidx || p.prev != head)
		return;
	pool_size = p.maxnextoffset + block_size(&p);
	if ((pool_size != POOL && pool_size != POOL_BEFORE_3_10) || at % pool_size ||
	    (w->pool_size && pool_size != w->pool_size) || !is_pool(&p, at, pool_size))
		return;
	w->pool_size = pool_size;
	w->known[w->n_known] = at;
	w->known_arena[w->n_known++] = p.arena;
}

/* Is usedpools at `at`, where `first` is? Then pools are known. */
static bool is_usedpools(struct walk *w, uint64_t at, uint64_t first)
{
	uint64_t list[2 * CLASSES];

	if (first != at - 16 && (!first || first % POOL_BEFORE_3_10 || !is_anon(w, first)))
		return false;
	if (w->looks++ > LOOKS_MAX || !w->mem->read(w->mem->ctx, at, list, sizeof(list)))
		return false;
	for (uint32_t i = 0; i < CLASSES; i++) {
		uint64_t self = at + 16 * i - 16, a = list[2 * i], b = list[2 * i + 1];

		if ((a != self || b != self) &&
		    (!a || !b || (a | b) % POOL_BEFORE_3_10 || !is_anon(w, a) || !is_anon(w, b)))
			return false;
	}
	for (uint32_t i = 0; i < CLASSES; i++)
		if (list[2 * i] != at + 16 * i - 16)
			know_pool(w, list[2 * i], at + 16 * i - 16, i);
	return w->n_known > 0;
}

static uint64_t arena_size(const struct walk *w)
{
	return POOLS_PER_ARENA * w->pool_size;
}

static uint64_t first_pool(const struct walk *w, const struct arena *a)
{
	return (a->address + w->pool_size - 1) & ~(w->pool_size - 1);
}

static uint64_t pools_in(const struct walk *w, const struct arena *a)
{
	return POOLS_PER_ARENA - (a->address % w->pool_size != 0);
}

static bool numbers_fit(const struct walk *w, const struct arena *a)
{
	uint64_t first = first_pool(w, a);

	return a->address % HEAP_PAGE == 0 && a->pool_address % w->pool_size == 0 &&
	       a->n_total == pools_in(w, a) && a->n_free <= a->n_total &&
	       a->pool_address >= first && a->pool_address <= first + a->n_total * w->pool_size;
}

static bool is_arena(const struct walk *w, const struct arena *a)
{
	const struct heap_map *m = heap_map_of(w->mem, a->address);

	return is_anon(w, a->address) && m->end - a->address >= arena_size(w) && numbers_fit(w, a);
}

/* Its memory is unmapped, and its row is to say so: the process is at the end of munmap(), which takes long. */
static bool is_unmapped(const struct walk *w, const struct arena *a)
{
	return !heap_map_of(w->mem, a->address) && a->n_free == a->n_total && numbers_fit(w, a);
}

/* Is the table at `table`? It has all known pools in their arenas. */
static bool is_arenas(struct walk *w, uint64_t table)
{
	const struct heap_map *m;

	if (!table || table % ALIGNMENT)
		return false;
	m = heap_map_of(w->mem, table);
	if (!m || m->kind == HEAP_MAP_OTHER || w->looks++ > LOOKS_MAX)
		return false;
	for (uint32_t i = 0; i < w->n_known; i++) {
		uint64_t off = (uint64_t)w->known_arena[i] * ROW_WORDS * 8;
		struct arena a;

		if (m->end - table < sizeof(a) || off > m->end - table - sizeof(a) ||
		    !w->mem->read(w->mem->ctx, table + off, &a, sizeof(a)) || !is_arena(w, &a) ||
		    w->known[i] < a.address || w->known[i] >= a.pool_address)
			return false;
	}
	return true;
}

/* The first of the variables of mapping `i` for which `is` holds; 0: none does. */
static uint64_t find_in(struct walk *w, uint32_t i, bool (*is)(struct walk *, uint64_t, uint64_t),
			uint64_t *ret_value)
{
	const struct heap_map *m = &w->mem->maps[i];
	uint64_t end = m->end - m->start < MAP_MAX ? m->end : m->start + MAP_MAX, word;

	if (m->kind != HEAP_MAP_DATA && m->kind != HEAP_MAP_ZEROED)
		return 0;
	w->images += end - m->start;
	if (w->images > IMAGES_MAX)
		return 0;
	w->window.limit = end;
	for (uint64_t at = m->start; at < end; at += 8) {
		if (!heap_window_word(&w->window, at, &word))
			return 0;
		if (!is(w, at, word))
			continue;
		*ret_value = word;
		return at;
	}
	return 0;
}

/* Is it at the place where an earlier walk found it? */
static bool is_as_before(struct walk *w, uint64_t at, bool (*is)(struct walk *, uint64_t, uint64_t),
			 uint64_t *ret_value)
{
	uint64_t word;

	if (!at || !w->mem->read(w->mem->ctx, at, &word, sizeof(word)) || !is(w, at, word))
		return false;
	*ret_value = word;
	return true;
}

/* The same of all, from mapping *first on, which is then the one where it was: what belongs together is not
 * far apart, and other images have thousands of variables that point somewhere. */
static uint64_t find_variable(struct walk *w, bool (*is)(struct walk *, uint64_t, uint64_t),
			      uint32_t *first, uint64_t *found, uint64_t *ret_value)
{
	w->images = 0;
	w->looks = 0;
	if (is_as_before(w, *found, is, ret_value))
		return *found;
	heap_window_forget(&w->window);
	for (uint32_t i = 0; i < w->mem->n_maps; i++) {
		uint32_t map = (*first + i) % w->mem->n_maps;
		uint64_t at = find_in(w, map, is, ret_value);

		if (!at)
			continue;
		*first = map;
		*found = at;
		return at;
	}
	return 0;
}

static bool is_arenas_variable(struct walk *w, uint64_t at, uint64_t word)
{
	(void)at;
	return is_arenas(w, word);
}

/* --- arenas --- */

/* Bytes of which `resident` are; those that lie in whole or in part in what is not, nobody knows. */
static uint64_t add_part(struct heap_amount *a, uint64_t bytes, uint64_t resident)
{
	uint64_t here = bytes < resident ? bytes : resident;

	a->bytes += bytes;
	a->resident += here;
	return resident - here;
}

static void take_pool(struct walk *w, const struct pool *p, uint64_t at)
{
	struct heap_use *use = w->use;
	uint64_t size = block_size(p), n = blocks_in(w->pool_size, p);
	uint64_t resident = w->mem->resident(w->mem->ctx, at, w->pool_size);

	if (!p->count) { /* not of a size any more */
		heap_part_add(&use->free, w->mem, w->blocks, HEAP_PART_FREE, at, w->pool_size);
		return;
	}
	resident = add_part(&use->metadata, HEADER, resident);
	resident = add_part(&use->live, p->count * size, resident);
	resident = add_part(&use->cached, (n - p->count) * size, resident);
	add_part(&use->metadata, w->pool_size - HEADER - n * size, resident);
	use->live.blocks += p->count;
	use->cached.blocks += n - p->count;
}

/* One that is another by now is read again. */
static bool read_sound(const struct walk *w, uint64_t at, uint32_t arena, struct pool *ret_pool)
{
	for (int tries = 0; tries < 3; tries++)
		if (read_pool(w, at, ret_pool) && ret_pool->arena == arena &&
		    is_pool(ret_pool, at, w->pool_size))
			return true;
	return false;
}

/* Marks the blocks that are free, which are as many as the pool says. */
static bool mark_free(struct walk *w, const struct pool *p, uint64_t at, uint64_t touched)
{
	uint64_t n = 0, block = p->freeblock, size = block_size(p);

	memset(w->free, 0, sizeof(w->free));
	for (; block && n <= touched; n++) {
		uint64_t off = block - at - HEADER, i = off / size;

		if (block < at + HEADER || off % size || i >= touched || w->free[i])
			return false;
		w->free[i] = true;
		memcpy(&block, w->pool + HEADER + off, sizeof(block));
	}
	return n == touched - p->count;
}

static bool list_once(struct walk *w, uint64_t at, uint32_t arena)
{
	uint64_t touched, size;
	struct pool p;

	if (!w->mem->read(w->mem->ctx, at, w->pool, w->pool_size))
		return false;
	memcpy(&p, w->pool, sizeof(p));
	if (p.arena != arena || !is_pool(&p, at, w->pool_size))
		return false;
	size = block_size(&p);
	touched = (p.nextoffset - HEADER) / size;
	if (touched > blocks_in(w->pool_size, &p))
		touched = blocks_in(w->pool_size, &p);
	if (!p.count)
		return true;
	if (!mark_free(w, &p, at, touched))
		return false;
	for (uint64_t i = 0; i < touched; i++) {
		uint64_t block = at + HEADER + i * size;

		if (w->free[i])
			heap_blocks_part(w->blocks, HEAP_PART_FREE, block, size);
		else
			heap_blocks_add(w->blocks, block, size,
					w->mem->resident(w->mem->ctx, block, size));
	}
	heap_blocks_part(w->blocks, HEAP_PART_TOP, at + HEADER + touched * size,
			 (blocks_in(w->pool_size, &p) - touched) * size);
	heap_blocks_metadata(w->blocks, w->pool_size - blocks_in(w->pool_size, &p) * size);
	return true;
}

static void list_pool(struct walk *w, uint64_t at, uint32_t arena)
{
	for (int tries = 0; tries < 3; tries++)
		if (list_once(w, at, arena))
			return;
	heap_blocks_unknown(w->blocks, at, at + w->pool_size);
	heap_blocks_part(w->blocks, HEAP_PART_UNKNOWN, at, w->pool_size);
}

static void take_arena(struct walk *w, const struct arena *a, uint32_t number)
{
	struct heap_use *use = w->use;
	uint64_t first = first_pool(w, a), end = first + a->n_total * w->pool_size;
	uint64_t behind = a->address + arena_size(w);

	heap_blocks_part(w->blocks, HEAP_PART_RUN, a->address, arena_size(w));
	for (uint64_t at = first; at < a->pool_address; at += w->pool_size) {
		struct pool p;

		if (read_sound(w, at, number, &p)) {
			take_pool(w, &p, at);
			if (w->blocks)
				list_pool(w, at, number);
			continue;
		}
		heap_blocks_unknown(w->blocks, at, at + w->pool_size);
		heap_part_add(&use->unknown, w->mem, w->blocks, HEAP_PART_UNKNOWN, at,
			      w->pool_size);
		use->caveat = "pools of CPython's objects do not add up";
	}
	if (a->pool_address < end)
		heap_part_add(&use->top, w->mem, w->blocks, HEAP_PART_TOP, a->pool_address,
			      end - a->pool_address);
	heap_blocks_metadata(w->blocks, first - a->address + behind - end);
	if (a->address < first)
		heap_amount_add(&use->metadata, w->mem, a->address, first - a->address);
	if (end < behind)
		heap_amount_add(&use->metadata, w->mem, end, behind - end);
	use->arenas++;
}

/* No more than there is room for. */
static uint64_t arenas_max(const struct walk *w)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < w->mem->n_maps; i++)
		if (is_anon(w, w->mem->maps[i].start))
			bytes += w->mem->maps[i].end - w->mem->maps[i].start;
	return bytes / arena_size(w);
}

/*
 * Behind the table there may be another, that was its place before it grew: its numbers are not ours. A pool that is given out
 * at this moment has its number before all else, or was never written: that arena is ours, and its pool is unknown.
 */
static bool is_numbered(const struct walk *w, const struct arena *a, uint32_t number)
{
	static const struct pool unwritten;
	struct pool p;

	if (a->pool_address == first_pool(w, a))
		return true;
	return read_pool(w, first_pool(w, a), &p) &&
	       (p.arena == number || memcmp(&p, &unwritten, sizeof(p)) == 0);
}

static void take_arenas(struct walk *w, uint64_t table)
{
	uint64_t max = arenas_max(w);
	uint32_t unused = 0;

	w->rows.limit = heap_map_of(w->mem, table)->end;
	for (uint32_t i = 0; i < ROWS_MAX && unused < UNUSED_MAX; i++) {
		uint64_t at = table + (uint64_t)i * ROW_WORDS * 8, word[3];
		struct arena a;

		for (int k = 0; k < 3; k++)
			if (!heap_window_word(&w->rows, at + 8 * (uint64_t)k, &word[k]))
				return;
		memcpy(&a, word, sizeof(a));
		unused = a.address ? 0 : unused + 1;
		if (!a.address || is_unmapped(w, &a))
			continue;
		if (w->use->arenas == max || !is_arena(w, &a) || !is_numbered(w, &a, i))
			return;
		take_arena(w, &a, i);
	}
}

/* --- interpreters with a lock of their own --- */

/* The arenas whose pools usedpools, at `pools`, has: they are the word behind it. false: it is not usedpools. */
static bool take_managed(struct walk *w, uint64_t pools)
{
	uint64_t first, table;

	w->n_known = 0;
	if (!w->mem->read(w->mem->ctx, pools, &first, sizeof(first)) ||
	    !is_usedpools(w, pools, first))
		return false;
	for (uint64_t at = pools + 16ULL * CLASSES; at < pools + 16ULL * CLASSES + MANAGED_MAX;
	     at += 8)
		if (w->mem->read(w->mem->ctx, at, &table, sizeof(table)) && is_arenas(w, table)) {
			heap_window_forget(&w->rows);
			heap_blocks_arena(w->blocks, ++w->interp);
			take_arenas(w, table);
			return true;
		}
	return false;
}

static bool is_heap(const struct walk *w, uint64_t addr)
{
	const struct heap_map *m = heap_map_of(w->mem, addr);

	return m && (m->kind == HEAP_MAP_ANON || m->kind == HEAP_MAP_BRK);
}

/* In the state itself, or where a word of it leads: the address of a place that has its own. */
static void take_interpreter(struct walk *w, uint64_t interp, uint64_t main_pools)
{
	const struct heap_map *m = heap_map_of(w->mem, interp);
	uint64_t end = m ? m->end : 0, word;

	if (!m || m->kind == HEAP_MAP_OTHER || interp % 8)
		return;
	end = end - interp > INTERP_MAX ? interp + INTERP_MAX : end;
	heap_window_forget(&w->window);
	w->window.limit = end;
	w->looks = 0;
	for (uint64_t at = interp; at < end && heap_window_word(&w->window, at, &word); at += 8) {
		bool is_pool =
			word == at - 16 || (word % POOL_BEFORE_3_10 == 0 && is_anon(w, word));

		if (is_pool && at != main_pools && take_managed(w, at))
			return;
		if (word % ALIGNMENT == 0 && word != main_pools && is_heap(w, word) &&
		    take_managed(w, word))
			return;
	}
}

static void take_interpreters(struct walk *w, const struct heap_found *found)
{
	for (uint32_t i = 0; i < found->n_py_interp; i++) {
		const struct heap_map *m = heap_map_of(w->mem, found->py_interp[i]);

		/* The first one is a variable of the image from 3.12 on, and has its pools there. */
		if (m && m->kind != HEAP_MAP_DATA && m->kind != HEAP_MAP_ZEROED)
			take_interpreter(w, found->py_interp[i], found->py_pools);
	}
}

int heap_walk_pymalloc(const struct heap_memory *mem, struct heap_use *use,
		       struct heap_blocks *blocks)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct heap_found none = { 0 }, *found = mem->found ? mem->found : &none;
	uint64_t table, first;
	uint32_t map = 0;

	if (!w)
		return -ENOMEM;
	w->mem = w->window.mem = w->rows.mem = mem;
	w->use = use;
	w->blocks = blocks && blocks->objects ? blocks : NULL;
	heap_blocks_arena(w->blocks, 0);
	if (find_variable(w, is_usedpools, &map, &found->py_pools, &first) &&
	    find_variable(w, is_arenas_variable, &map, &found->py_arenas, &table))
		take_arenas(w, table);
	if (use->arenas && w->blocks)
		take_interpreters(w, found);
	use->metadata.blocks = 0;
	use->objects = true;
	free(w);
	return use->arenas ? 0 : -ENOENT;
}
