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

static uint32_t words(uint64_t bytes)
{
	return bytes / 8 < UINT32_MAX ? (uint32_t)(bytes / 8) : UINT32_MAX;
}

void heap_blocks_add(struct heap_blocks *b, uint64_t addr, uint64_t bytes, uint64_t resident)
{
	if (!b || b->over)
		return;
	if (b->n == b->room) {
		uint64_t room = b->room ? 2 * b->room : 1024;
		struct heap_block *rows;

		if (room > b->max)
			room = b->max;
		rows = room > b->n ? reallocarray(b->rows, room, sizeof(*rows)) : NULL;
		b->over = !rows;
		if (!rows)
			return;
		b->rows = rows;
		b->room = room;
	}
	b->rows[b->n++] = (struct heap_block){ addr, words(bytes), words(resident) };
}

void heap_blocks_unknown(struct heap_blocks *b, uint64_t from, uint64_t end)
{
	struct heap_range *more;

	if (!b || b->over)
		return;
	more = reallocarray(b->unknown, b->n_unknown + 1, sizeof(*more));
	b->over = !more;
	if (!more)
		return;
	b->unknown = more;
	b->unknown[b->n_unknown++] = (struct heap_range){ from, end };
}

static int by_address(const void *a, const void *b)
{
	const struct heap_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void heap_blocks_sort(struct heap_blocks *b)
{
	uint64_t i = 1;

	while (i < b->n && b->rows[i - 1].addr <= b->rows[i].addr)
		i++;
	if (i < b->n)
		qsort(b->rows, b->n, sizeof(*b->rows), by_address);
}

uint64_t heap_blocks_find(const struct heap_blocks *b, uint64_t addr)
{
	uint64_t low = 0, high = b->n;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (b->rows[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void heap_blocks_free(struct heap_blocks *b)
{
	free(b->rows);
	free(b->unknown);
	b->rows = NULL;
	b->unknown = NULL;
	b->n = b->room = b->n_unknown = 0;
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
