/* memscope heap allocator: what each arena of each allocator holds, by what it is and by classes of sizes. */
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/arenas.h"

#include <errno.h>

static const struct answer_column arena_columns[] = {
	{ "allocated", "allocated", ANSWER_BYTES, 10 },
	{ "blocks", "blocks", ANSWER_COUNT, 10 },
	{ "cached", "cached", ANSWER_BYTES, 10 },
	{ "fast", "fast", ANSWER_BYTES, 10 },
	{ "free", "free", ANSWER_BYTES, 10 },
	{ "metadata", "metadata", ANSWER_BYTES, 10 },
	{ "active", "active", ANSWER_BYTES, 10 },
	{ "dirty", "dirty", ANSWER_BYTES, 10 },
	{ "muzzy", "muzzy", ANSWER_BYTES, 10 },
	{ "top", "unused", ANSWER_BYTES, 10 },
	{ "mapped", "mapped", ANSWER_BYTES, 10 },
	{ "retained", "retained", ANSWER_BYTES, 10 },
	{ "arena", "arena", ANSWER_NAME, 0 },
	{ 0 },
};

static const struct answer_column class_columns[] = {
	{ "allocated", "allocated", ANSWER_BYTES, 10 },
	{ "blocks", "blocks", ANSWER_COUNT, 10 },
	{ "cached_blocks", "cached", ANSWER_COUNT, 10 },
	{ "cached", "bytes", ANSWER_BYTES, 10 },
	{ "free_blocks", "free", ANSWER_COUNT, 10 },
	{ "free", "bytes", ANSWER_BYTES, 10 },
	{ "size", "up to", ANSWER_COUNT, 10 },
	{ "arena", "arena", ANSWER_NAME, 0 },
	{ 0 },
};

static const struct answer_column allocator_columns[] = {
	{ "allocated", "allocated", ANSWER_BYTES, 10 },
	{ "resident", "resident", ANSWER_BYTES, 10 },
	{ "metadata", "metadata", ANSWER_BYTES, 10 },
	{ "unknown", "not walked", ANSWER_BYTES, 10 },
	{ "arenas", "arenas", ANSWER_COUNT, 10 },
	{ "caches", "caches", ANSWER_COUNT, 10 },
	{ "allocator", "allocator", ANSWER_NAME, 0 },
	{ 0 },
};

static int by_mapped(const void *a, const void *b)
{
	const struct heap_arena *x = *(const struct heap_arena *const *)a;
	const struct heap_arena *y = *(const struct heap_arena *const *)b;
	uint64_t p = heap_arena_mapped(x), q = heap_arena_mapped(y);

	return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static int by_bytes(const void *a, const void *b)
{
	const struct heap_class *x = *(const struct heap_class *const *)a;
	const struct heap_class *y = *(const struct heap_class *const *)b;
	uint64_t p = x->live.bytes + x->cached.bytes + x->free.bytes;
	uint64_t q = y->live.bytes + y->cached.bytes + y->free.bytes;

	return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static void put_allocators(const struct heap_view *v)
{
	answer_table(v->out, "allocators", allocator_columns);
	for (uint32_t i = 0; i < v->s->census.n; i++) {
		const struct heap_use *u = &v->s->census.use[i];

		answer_cell(v->out, u->live.bytes);
		answer_cell(v->out, heap_use_resident(u));
		answer_cell(v->out, u->metadata.bytes);
		answer_cell(v->out, u->unknown.bytes);
		answer_cell(v->out, u->arenas);
		answer_cell(v->out, u->caches);
		answer_text(v->out, u->allocator);
	}
	for (uint32_t i = 0; i < v->s->census.n; i++)
		if (v->s->census.use[i].caveat)
			answer_say(v->out, "%s: %s", v->s->census.use[i].allocator,
				   v->s->census.use[i].caveat);
	answer_say(v->out, "%s", "");
}

static int put_arenas(const struct heap_view *v, const struct heap_arenas *a, struct err *e)
{
	_cleanup_(freep) const struct heap_arena **rows = calloc(a->n + 1ul, sizeof(*rows));
	uint32_t n = 0;

	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < a->n; i++)
		if (heap_arena_mapped(&a->arena[i]) || a->arena[i].part[HEAP_PART_RETAINED].bytes)
			rows[n++] = &a->arena[i];
	qsort(rows, n, sizeof(*rows), by_mapped);
	answer_table(v->out, "arenas", arena_columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++) {
		const struct heap_sum *part = rows[i]->part;

		answer_cell(v->out, rows[i]->live.bytes);
		answer_cell(v->out, rows[i]->live.blocks);
		answer_cell(v->out, part[HEAP_PART_CACHED].bytes);
		answer_cell(v->out, part[HEAP_PART_FAST].bytes);
		answer_cell(v->out, part[HEAP_PART_FREE].bytes);
		answer_cell(v->out, rows[i]->owner->metadata);
		answer_cell(v->out, heap_arena_active(rows[i]));
		answer_cell(v->out, part[HEAP_PART_DIRTY].bytes);
		answer_cell(v->out, part[HEAP_PART_MUZZY].bytes);
		answer_cell(v->out, part[HEAP_PART_TOP].bytes);
		answer_cell(v->out, heap_arena_mapped(rows[i]));
		answer_cell(v->out, part[HEAP_PART_RETAINED].bytes);
		heap_put_arena(v, rows[i]->owner);
	}
	if (n > v->args->top)
		answer_say(v->out, "%s more arenas", unit_count(n - v->args->top).s);
	answer_say(v->out, "%s", "");
	return 0;
}

static int put_classes(const struct heap_view *v, const struct heap_arenas *a, struct err *e)
{
	_cleanup_(freep) const struct heap_class **rows = calloc(a->n_classes + 1, sizeof(*rows));

	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint64_t i = 0; i < a->n_classes; i++)
		rows[i] = &a->class[i];
	qsort(rows, a->n_classes, sizeof(*rows), by_bytes);
	answer_table(v->out, "classes", class_columns);
	for (uint64_t i = 0; i < a->n_classes && i < v->args->top; i++) {
		answer_cell(v->out, rows[i]->live.bytes);
		answer_cell(v->out, rows[i]->live.blocks);
		answer_cell(v->out, rows[i]->cached.blocks);
		answer_cell(v->out, rows[i]->cached.bytes);
		answer_cell(v->out, rows[i]->free.blocks);
		answer_cell(v->out, rows[i]->free.bytes);
		answer_cell(v->out, rows[i]->size);
		heap_put_arena(v, a->arena[rows[i]->owner].owner);
	}
	if (a->n_classes > v->args->top)
		answer_say(v->out, "%s more classes",
			   unit_count((int64_t)(a->n_classes - v->args->top)).s);
	return 0;
}

int heap_allocator(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(heap_arenas_fini) struct heap_arenas a = { 0 };
	int r;

	(void)what;
	if (heap_arenas_sum(&v->s->blocks, &a) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	put_allocators(v);
	r = put_arenas(v, &a, e);
	return r < 0 ? r : put_classes(v, &a, e);
}

void heap_put_arena(const struct heap_view *v, const struct heap_owner *owner)
{
	char name[HEAP_OWNER_NAME_MAX];

	heap_owner_name(owner, name);
	answer_text(v->out, name);
}
