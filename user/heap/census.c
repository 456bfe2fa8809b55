#include "heap/census.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX  (1ULL << 50)
#define MISSED_MAX 6 /* searches in vain, after which one walk of 2^6 makes one */

static const struct walker {
	const char *allocator;
	heap_walk_fn walk;
	bool searches; /* all variables of all images, where it is not at a known place */
} walkers[] = {
	{ "glibc", heap_walk_glibc, false },
	{ "jemalloc", heap_walk_jemalloc, true },
	{ "mimalloc", heap_walk_mimalloc, true },
	{ "tcmalloc", heap_walk_tcmalloc, true },
	{ "musl", heap_walk_mallocng, true },
	{ "pymalloc", heap_walk_pymalloc, true },
	{ 0 },
};
_Static_assert(sizeof(walkers) / sizeof(*walkers) <= HEAP_WALKERS_MAX, "room in heap_found");

uint64_t heap_amount_add(struct heap_amount *a, const struct heap_memory *mem, uint64_t addr,
			 uint64_t bytes)
{
	uint64_t resident = mem->resident(mem->ctx, addr, bytes);

	a->blocks++;
	/* More than there are addresses: what others wrote does not add up, and must not overflow. */
	if (a->bytes < BYTES_MAX && bytes < BYTES_MAX) {
		a->bytes += bytes;
		a->resident += resident;
	}
	return resident;
}

void heap_part_add(struct heap_amount *a, const struct heap_memory *mem, struct heap_blocks *blocks,
		   enum heap_kind kind, uint64_t addr, uint64_t bytes)
{
	heap_amount_add(a, mem, addr, bytes);
	heap_blocks_part(blocks, kind, addr, bytes);
}

void heap_amount_take(struct heap_amount *a, const struct heap_memory *mem, uint64_t addr,
		      uint64_t bytes)
{
	uint64_t resident = mem->resident(mem->ctx, addr, bytes);

	a->blocks -= a->blocks ? 1 : 0;
	a->bytes -= bytes < a->bytes ? bytes : a->bytes;
	a->resident -= resident < a->resident ? resident : a->resident;
}

uint64_t heap_use_resident(const struct heap_use *u)
{
	return u->live.resident + u->cached.resident + u->fast.resident + u->free.resident +
	       u->top.resident + u->metadata.resident + u->unknown.resident;
}

/* Where images have their .bss, as a number: an image that is loaded or unloaded changes it. */
static uint64_t images_of(const struct heap_memory *mem)
{
	uint64_t h = 1;

	for (uint32_t i = 0; i < mem->n_maps; i++)
		if (mem->maps[i].kind == HEAP_MAP_ZEROED)
			h = (h ^ mem->maps[i].start) * 0x9e3779b97f4a7c15ULL;
	return h;
}

/*
 * A search reads all that lies behind a .bss, which may be the heap of another allocator. The more often it was in
 * vain with the same images, the less often it is made.
 */
static int walk(const struct walker *w, const struct heap_memory *mem, struct heap_use *use,
		struct heap_blocks *blocks)
{
	uint32_t i = (uint32_t)(w - walkers);
	struct heap_found *f = w->searches ? mem->found : NULL;
	int r;

	if (f && f->searched[i].wait) {
		f->searched[i].wait--;
		return -ENOENT;
	}
	r = w->walk(mem, use, blocks);
	if (f)
		f->searched[i].there |= r == 0;
	if (f && !f->searched[i].there) {
		if (f->searched[i].missed < MISSED_MAX)
			f->searched[i].missed++;
		f->searched[i].wait = (1u << f->searched[i].missed) - 1;
	}
	return r;
}

int heap_census_take(const struct heap_memory *mem, struct heap_census *c)
{
	uint64_t images = mem->found ? images_of(mem) : 0;

	if (mem->found && mem->found->images != images) {
		memset(mem->found->searched, 0, sizeof(mem->found->searched));
		mem->found->images = images;
	}
	for (const struct walker *w = walkers; w->allocator && c->n < HEAP_ALLOCATORS_MAX; w++) {
		struct heap_use use = { .allocator = w->allocator };
		int r;

		heap_blocks_allocator(c->blocks, w->allocator);
		r = walk(w, mem, &use, c->blocks);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		/* It is there, and was never asked for anything. */
		if (use.live.blocks || use.metadata.bytes || use.unknown.bytes || use.top.bytes)
			c->use[c->n++] = use;
	}
	if (c->blocks)
		heap_blocks_sort(c->blocks);
	return 0;
}
