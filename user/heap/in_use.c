#include "heap/in_use.h"

#include "heap/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LARGE = 128 << 10, SAMPLES_MAX = 3 /* attempts */ };

/* All that there is, once. */
static int take(const struct heap_memory *mem, struct heap_in_use *u, struct heap_census *c)
{
	*c = (struct heap_census){ .blocks = &u->blocks };
	heap_blocks_clear(&u->blocks);
	return heap_census_take(mem, c);
}

int heap_in_use_of(const struct heap_memory *mem, const struct heap_wanted *wanted,
		   struct heap_in_use *ret_in_use)
{
	struct heap_in_use u = {
		.blocks = { .max = wanted->max,
			    .sought = wanted->addrs,
			    .n_sought = wanted->n_addrs,
			    .objects = wanted->objects,
			    .class_of = wanted->class_of },
		.one_in = 1,
	};
	struct heap_census c;
	size_t len = 0;
	int r = take(mem, &u, &c);

	for (int tries = 0; r == 0 && wanted->sample && u.blocks.over && tries < SAMPLES_MAX;
	     tries++) {
		/* A quarter of the room is for chance, and for what is allocated meanwhile. */
		u.blocks.one_in = (u.blocks.all.blocks / 3 * 4 / wanted->max + 1) << tries;
		u.one_in = (double)u.blocks.one_in;
		r = take(mem, &u, &c);
	}
	if (r < 0) {
		heap_blocks_free(&u.blocks);
		return r;
	}
	u.incomplete = u.blocks.over;
	u.glibc = c.n == 1;
	for (uint32_t i = 0; i < c.n; i++) {
		if (c.use[i].objects && !wanted->objects) {
			u.objects_bytes += c.use[i].live.bytes;
			continue;
		}
		u.unknown_bytes += c.use[i].unknown.bytes;
		u.glibc &= strcmp(c.use[i].allocator, "glibc") == 0;
		u.cached |= strcmp(c.use[i].allocator, "glibc") != 0;
		len += (size_t)snprintf(u.allocators + len, sizeof(u.allocators) - len, "%s%s",
					len ? ", " : "", c.use[i].allocator);
	}
	u.live_bytes = 8 * u.blocks.all.words;
	/* Where the unknown part lies, only some walkers say. */
	if (u.unknown_bytes && !u.blocks.n_unknown)
		heap_blocks_unknown(&u.blocks, 0, UINT64_MAX);
	*ret_in_use = u;
	return 0;
}

/* What is resident is not asked here, and costs more than the walk. */
static uint64_t all_resident(void *ctx, uint64_t addr, uint64_t len)
{
	(void)ctx;
	(void)addr;
	return len;
}

int heap_in_use_take(pid_t pid, int64_t budget_ns, const struct heap_wanted *wanted,
		     struct heap_in_use *ret_in_use, struct err *e)
{
	_cleanup_(heap_process_closep) struct heap_process *p = NULL;
	int r = heap_process_open(pid, budget_ns, &p, e);
	struct heap_memory mem;

	if (r < 0)
		return r;
	mem = *heap_process_memory(p);
	mem.resident = all_resident;
	mem.found = wanted->found;
	if (!mem.n_maps)
		return err_set(e, -ESRCH, "process %d has ended", (int)pid);
	r = heap_in_use_of(&mem, wanted, ret_in_use);
	return r < 0 ? err_set(e, r, "out of memory for the heap of process %d", (int)pid) : 0;
}

void heap_in_use_fini(struct heap_in_use *u)
{
	heap_blocks_free(&u->blocks);
}

enum heap_answer heap_in_use_at(const struct heap_in_use *u, uint64_t addr, uint64_t *ret_bytes)
{
	uint64_t at = heap_blocks_find(&u->blocks, addr), end;
	const struct heap_block *b = u->blocks.rows;

	if (at < u->blocks.n && b[at].addr == addr) {
		*ret_bytes = 8 * (uint64_t)b[at].words;
		return HEAP_IN_USE;
	}
	end = at ? b[at - 1].addr + 8 * (uint64_t)b[at - 1].words : 0;
	if (addr < end && 8 * (uint64_t)b[at - 1].words >= LARGE) {
		*ret_bytes = end - addr;
		return HEAP_IN_USE;
	}
	for (uint32_t i = 0; i < u->blocks.n_unknown; i++)
		if (addr >= u->blocks.unknown[i].from && addr < u->blocks.unknown[i].end)
			return HEAP_CANNOT_SAY;
	return u->incomplete ? HEAP_CANNOT_SAY : HEAP_FREE;
}

/* glibc: a chunk's size is a multiple of 16, 32 at least, of which 8 are its header. */
uint64_t heap_in_use_room(const struct heap_in_use *u, uint64_t size)
{
	uint64_t chunk = (size + 8 + 15) & ~15ULL, step = 16;

	if (u->glibc)
		return size > UINT64_MAX / 2 ? size : (chunk < 32 ? 32 : chunk) - 8;
	/* jemalloc, mimalloc: four classes for a doubling, or eight. */
	while (size > 8 * step && step < UINT64_MAX / 16)
		step *= 2;
	return size > UINT64_MAX / 2 ? size : (size + step - 1) / step * step;
}
