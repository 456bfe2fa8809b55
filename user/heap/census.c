#include "heap/census.h"

#include <errno.h>
#include <stdlib.h>

#define BYTES_MAX (1ULL << 50)

static const struct walker {
	const char *allocator;
	heap_walk_fn walk;
} walkers[] = {
	{ "glibc", heap_walk_glibc },
	{ "jemalloc", heap_walk_jemalloc },
	{ "mimalloc", heap_walk_mimalloc },
	{ "pymalloc", heap_walk_pymalloc },
	{ 0 },
};

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

int heap_census_take(const struct heap_memory *mem, struct heap_census *c)
{
	for (const struct walker *w = walkers; w->allocator && c->n < HEAP_ALLOCATORS_MAX; w++) {
		struct heap_use use = { .allocator = w->allocator };
		int r = w->walk(mem, &use, c->blocks);

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
