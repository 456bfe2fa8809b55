#include "heap/snapshot/mappings.h"

#include <errno.h>
#include <string.h>

static bool has_block(const struct heap_blocks *b, uint64_t n, const struct heap_map *m)
{
	struct heap_blocks sorted = *b;
	uint64_t i;

	sorted.n = n;
	i = heap_blocks_find(&sorted, m->start);
	return (i < n && b->rows[i].addr < m->end) ||
	       (i && b->rows[i - 1].addr + 8 * (uint64_t)b->rows[i - 1].words > m->start);
}

/* A thread's stack that was not recognised, or its thread-local variables. */
static bool has_thread(const struct snapshot *s, const struct heap_map *m)
{
	uint32_t n;
	const struct stopped_thread *t = copy_threads(s->copy, &n);

	for (uint32_t i = 0; i < n; i++)
		if ((t[i].tp >= m->start && t[i].tp < m->end) ||
		    (t[i].sp >= m->start && t[i].sp < m->end))
			return true;
	return false;
}

int mappings_add(struct snapshot *s, const bool *owned)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	struct heap_use use = { .allocator = HEAP_NO_ALLOCATOR };
	uint64_t n = s->blocks.n;

	heap_blocks_allocator(&s->blocks, HEAP_NO_ALLOCATOR);
	for (uint32_t i = 0; i < mem->n_maps; i++) {
		const struct heap_map *m = &mem->maps[i];

		if (m->kind == HEAP_MAP_ANON && !owned[i] && m->end - m->start >= MAPPINGS_LEAST &&
		    mem->resident(mem->ctx, m->start, m->end - m->start) &&
		    !has_block(&s->blocks, n, m) && !has_thread(s, m))
			heap_blocks_add(
				&s->blocks, m->start, m->end - m->start,
				heap_amount_add(&use.live, mem, m->start, m->end - m->start));
	}
	if (s->blocks.over)
		return -ENOMEM;
	heap_blocks_sort(&s->blocks);
	if (use.live.blocks && s->census.n < HEAP_ALLOCATORS_MAX)
		s->census.use[s->census.n++] = use;
	return 0;
}

bool mappings_has(const struct heap_blocks *b, uint64_t row)
{
	const char *name = heap_blocks_owner(b, b->rows[row].owner)->allocator;

	return name && strcmp(name, HEAP_NO_ALLOCATOR) == 0;
}
