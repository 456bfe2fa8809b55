#include "heap/snapshot/exact.h"

#include "base/large.h"
#include "heap/python/python_heap.h"

#include <errno.h>
#include <stdlib.h>

extern const struct exact_runtime exact_ghc;

const struct exact_runtime *const exact_runtimes[] = {
	&exact_ghc,
	&python_runtime,
	NULL,
};

int exact_runtimes_open(struct exact *x, const struct exact_runtime *const *table,
			struct copy *copy, pid_t pid, struct err *e)
{
	*x = (struct exact){ 0 };
	for (; *table && x->n < EXACT_MAX; table++) {
		int r = (*table)->open(copy, pid, &x->state[x->n], e);

		if (r == -ENOENT)
			continue;
		if (r < 0) {
			exact_runtimes_close(x);
			return r;
		}
		x->runtime[x->n++] = *table;
	}
	return 0;
}

void exact_runtimes_close(struct exact *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		x->runtime[i]->close(x->state[i]);
	large_free(x->brought_by);
	*x = (struct exact){ 0 };
}

/* --- objects --- */

struct object {
	uint64_t addr;
	uint32_t type;
	uint8_t by;
};

struct objects {
	struct heap_blocks *blocks;
	struct object *rows;
	uint64_t n, room;
	uint8_t by;
	struct heap_amount live; /* of this runtime */
	bool oom;
};

static void on_object(void *ctx, uint64_t addr, uint64_t bytes, uint32_t type)
{
	struct objects *o = ctx;

	if (o->oom)
		return;
	if (!GROW_LARGE(o->rows, o->n, o->room)) {
		o->oom = true;
		return;
	}
	o->rows[o->n++] = (struct object){ addr, type, o->by };
	heap_blocks_add(o->blocks, addr, bytes, bytes);
	o->live.blocks++;
	o->live.bytes += bytes;
	o->live.resident += bytes;
}

static int by_address(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Which nodes they have become. */
static int number(struct exact *x, struct objects *o, uint32_t **ret_types)
{
	const struct heap_blocks *b = o->blocks;
	uint64_t at = 0;

	*ret_types = large_alloc(b->n + 1, sizeof(**ret_types));
	if (!*ret_types || !o->n)
		return *ret_types ? 0 : -ENOMEM;
	x->brought_by = large_alloc(b->n, 1);
	if (!x->brought_by)
		return -ENOMEM;
	qsort(o->rows, o->n, sizeof(*o->rows), by_address);
	for (uint64_t i = 0; i < b->n && at < o->n; i++)
		if (b->rows[i].addr == o->rows[at].addr) {
			x->brought_by[i] = o->rows[at].by;
			(*ret_types)[i] = o->rows[at++].type;
		}
	return 0;
}

int exact_objects(struct exact *x, struct snapshot *s, uint32_t **ret_types)
{
	struct objects o = { .blocks = &s->blocks };
	int r = 0;

	for (uint32_t i = 0; i < x->n && r == 0; i++) {
		const struct exact_runtime *runtime = x->runtime[i];

		if (!runtime->objects)
			continue;
		o.by = (uint8_t)(i + 1);
		o.live = (struct heap_amount){ 0 };
		heap_blocks_allocator(&s->blocks, runtime->name);
		heap_blocks_arena(&s->blocks, 0);
		r = runtime->objects(x->state[i], &s->types, on_object, &o);
		if (s->census.n < HEAP_ALLOCATORS_MAX) {
			struct heap_use *use = &s->census.use[s->census.n++];

			*use = (struct heap_use){ .allocator = runtime->name, .live = o.live };
			if (runtime->use)
				runtime->use(x->state[i], use);
			heap_blocks_metadata(&s->blocks, use->metadata.bytes);
		}
	}
	if (o.n)
		heap_blocks_sort(&s->blocks);
	if (r == 0)
		r = o.oom || s->blocks.over ? -ENOMEM : number(x, &o, ret_types);
	large_free(o.rows);
	return r;
}

bool exact_brings(const struct exact *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->runtime[i]->objects)
			return true;
	return false;
}

/* --- */

int exact_prepare(struct exact *x, struct snapshot *s)
{
	int r = 0;

	for (uint32_t i = 0; i < x->n && r == 0; i++)
		if (x->runtime[i]->prepare)
			r = x->runtime[i]->prepare(x->state[i], s);
	return r;
}

bool exact_owns(const struct exact *x, const struct heap_map *map)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->runtime[i]->owns && x->runtime[i]->owns(x->state[i], map))
			return true;
	return false;
}

bool exact_edges(const struct exact *x, const struct snapshot *s, uint32_t node, exact_edge_fn fn,
		 void *ctx)
{
	uint32_t by = x->brought_by ? x->brought_by[node] : 0;

	if (by)
		return x->runtime[by - 1]->edges(x->state[by - 1], s, node, fn, ctx);
	/* A block of an allocator: whoever brings no objects may know what is in it. */
	for (uint32_t i = 0; i < x->n; i++)
		if (!x->runtime[i]->objects && x->runtime[i]->edges(x->state[i], s, node, fn, ctx))
			return true;
	return false;
}

void exact_caveats(const struct exact *x, exact_say_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->runtime[i]->caveats)
			x->runtime[i]->caveats(x->state[i], fn, ctx);
}

void exact_roots(const struct exact *x, const struct snapshot *s, exact_root_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->runtime[i]->roots)
			x->runtime[i]->roots(x->state[i], s, fn, ctx);
}
