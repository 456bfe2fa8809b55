#include "heap/arenas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS_FIRST = 1024,
	GLIBC_EXACT = 1032 /* the largest usable size that tcaches and small bins have apart */
};

/* A hash table of classes; of unused ones the owner is 0. */
struct table {
	struct heap_class *slot;
	uint64_t n, room;
	struct heap_class *last;
};

/* glibc's larger chunks may have any size: four classes for each power of two. Other allocators have classes. */
static uint64_t class_of(const struct heap_owner *owner, uint64_t bytes)
{
	uint64_t step = 16;

	if (!owner->allocator || strcmp(owner->allocator, "glibc") != 0 || bytes <= GLIBC_EXACT ||
	    bytes > UINT64_MAX / 2)
		return bytes;
	while (8 * step < bytes)
		step *= 2;
	return (bytes + step - 1) / step * step;
}

static struct heap_class *slot_of(const struct table *t, uint32_t owner, uint64_t size)
{
	uint64_t at = (size + owner) * 0x9e3779b97f4a7c15ULL >> 20;

	for (;; at++) {
		struct heap_class *c = &t->slot[at & (t->room - 1)];

		if (!c->owner || (c->owner == owner && c->size == size))
			return c;
	}
}

static int grow(struct table *t)
{
	struct table more = { .room = t->room ? 2 * t->room : SLOTS_FIRST, .n = t->n };

	more.slot = calloc(more.room, sizeof(*more.slot));
	if (!more.slot)
		return -ENOMEM;
	for (uint64_t i = 0; i < t->room; i++)
		if (t->slot[i].owner)
			*slot_of(&more, t->slot[i].owner, t->slot[i].size) = t->slot[i];
	free(t->slot);
	*t = more;
	return 0;
}

static struct heap_class *find(struct table *t, uint32_t owner, uint64_t size)
{
	struct heap_class *c = t->last;

	if (c && c->owner == owner && c->size == size)
		return c;
	if (2 * t->n >= t->room && grow(t) < 0)
		return NULL;
	c = slot_of(t, owner, size);
	if (!c->owner) {
		c->owner = owner;
		c->size = size;
		t->n++;
	}
	t->last = c;
	return c;
}

static void add(struct heap_sum *s, uint64_t bytes)
{
	s->blocks++;
	s->bytes += bytes;
}

static int by_arena_and_size(const void *a, const void *b)
{
	const struct heap_class *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return (x->size > y->size) - (x->size < y->size);
}

static int add_blocks(const struct heap_blocks *b, struct heap_arena *arena, struct table *t)
{
	for (uint64_t i = 0; i < b->n; i++) {
		uint64_t bytes = 8 * (uint64_t)b->rows[i].words;
		uint32_t owner = b->rows[i].owner;
		struct heap_class *c = find(t, owner, class_of(&b->owners[owner], bytes));

		if (!c)
			return -ENOMEM;
		add(&c->live, bytes);
		add(&arena[owner].live, bytes);
	}
	return 0;
}

static int add_parts(const struct heap_blocks *b, struct heap_arena *arena, struct table *t)
{
	for (uint64_t i = 0; i < b->n_parts; i++) {
		const struct heap_part *p = &b->parts[i];
		uint64_t bytes = 8 * (uint64_t)p->words, block = bytes;
		const struct heap_owner *owner = &b->owners[p->owner];
		struct heap_class *c;

		add(&arena[p->owner].part[p->kind], bytes);
		if (p->kind > HEAP_PART_FREE)
			continue;
		/* A free chunk has its header among its bytes. */
		if (p->kind == HEAP_PART_FREE && owner->allocator &&
		    strcmp(owner->allocator, "glibc") == 0)
			block -= 8;
		c = find(t, p->owner, class_of(owner, block));
		if (!c)
			return -ENOMEM;
		add(p->kind == HEAP_PART_CACHED ? &c->cached : &c->free, bytes);
	}
	return 0;
}

int heap_arenas_sum(const struct heap_blocks *b, struct heap_arenas *ret)
{
	struct heap_arenas a = { .arena = calloc(b->n_owners + 1, sizeof(*a.arena)),
				 .n = b->n_owners };
	struct table t = { 0 };
	int r = a.arena ? grow(&t) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < a.n; i++)
		a.arena[i].owner = &b->owners[i];
	if (r == 0)
		r = add_blocks(b, a.arena, &t);
	if (r == 0)
		r = add_parts(b, a.arena, &t);
	if (r < 0) {
		free(a.arena);
		free(t.slot);
		return r;
	}
	for (uint64_t i = 0; i < t.room; i++)
		if (t.slot[i].owner)
			t.slot[a.n_classes++] = t.slot[i];
	qsort(t.slot, a.n_classes, sizeof(*t.slot), by_arena_and_size);
	a.class = t.slot;
	*ret = a;
	return 0;
}

void heap_arenas_fini(struct heap_arenas *a)
{
	free(a->arena);
	free(a->class);
	*a = (struct heap_arenas){ 0 };
}

uint64_t heap_arena_active(const struct heap_arena *a)
{
	return a->live.bytes + a->part[HEAP_PART_CACHED].bytes + a->part[HEAP_PART_FAST].bytes +
	       a->part[HEAP_PART_FREE].bytes + a->part[HEAP_PART_UNKNOWN].bytes +
	       a->owner->metadata;
}

uint64_t heap_arena_mapped(const struct heap_arena *a)
{
	return heap_arena_active(a) + a->part[HEAP_PART_DIRTY].bytes +
	       a->part[HEAP_PART_MUZZY].bytes + a->part[HEAP_PART_TOP].bytes;
}
