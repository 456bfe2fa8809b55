#include "heap/fragmentation.h"

#include "heap/memory.h"

#include <errno.h>
#include <stdlib.h>

enum { KINDS = 16 /* types of one unit that are kept apart; further ones count as its last */ };

/* The unit that is looked at. */
struct unit {
	uint64_t from, end; /* end 0: there is none */
	uint32_t owner;
	uint64_t live, free;
	struct {
		uint32_t type;
		uint64_t bytes, blocks;
	} kind[KINDS];
	uint32_t n_kinds;
};

struct work {
	struct fragmentation *f;
	const struct heap_blocks *b;
	struct unit unit;
	uint64_t run;      /* the next part that may be one */
	uint64_t *pending; /* by owner: free bytes behind its last block in use so far */
};

static void flush(struct work *w)
{
	struct unit *u = &w->unit;
	struct fragmentation_arena *a = &w->f->arena[u->owner];
	uint32_t most = 0;

	if (!u->end)
		return;
	if (!u->live) {
		a->empty += u->free;
	} else {
		a->used++;
		a->shared += u->free;
	}
	if (u->live && u->live <= (u->end - u->from) / FRAGMENTATION_SPARSE) {
		a->sparse++;
		a->pinned += u->free;
		for (uint32_t i = 0; i < u->n_kinds; i++) {
			struct fragmentation_type *t = &w->f->type[u->kind[i].type];

			t->blocks += u->kind[i].blocks;
			t->bytes += u->kind[i].bytes;
			if (u->kind[i].bytes > u->kind[most].bytes)
				most = i;
		}
		w->f->type[u->kind[most].type].pinned += u->free;
		w->f->type[u->kind[most].type].units++;
	}
	*u = (struct unit){ 0 };
}

/* The unit that `addr` is in; those before it are done. */
static void enter(struct work *w, uint64_t addr, uint32_t owner)
{
	const struct heap_part *p;

	if (w->unit.end && addr >= w->unit.from && addr < w->unit.end)
		return;
	flush(w);
	for (; w->run < w->b->n_parts; w->run++) {
		p = &w->b->parts[w->run];
		if (p->kind == HEAP_PART_RUN && p->addr + 8 * (uint64_t)p->words > addr)
			break;
	}
	p = w->run < w->b->n_parts ? &w->b->parts[w->run] : NULL;
	w->unit.owner = owner;
	w->unit.from = addr & ~(uint64_t)(HEAP_PAGE - 1);
	w->unit.end = w->unit.from + HEAP_PAGE;
	if (p && p->addr <= addr) {
		w->unit.from = p->addr;
		w->unit.end = p->addr + 8 * (uint64_t)p->words;
	} else if (p && p->addr < w->unit.end) {
		w->unit.end = p->addr;
	}
}

static void add_type(struct unit *u, uint32_t type, uint64_t bytes)
{
	uint32_t i = 0;

	while (i < u->n_kinds && i < KINDS - 1 && u->kind[i].type != type)
		i++;
	if (i == u->n_kinds) {
		u->kind[i].type = type;
		u->n_kinds++;
	}
	u->kind[i].bytes += bytes;
	u->kind[i].blocks++;
}

/* [addr, addr + bytes), in whatever units that is. `type`: NULL: it is free. */
static void add(struct work *w, uint64_t addr, uint64_t bytes, uint32_t owner, const uint32_t *type)
{
	struct fragmentation_arena *a = &w->f->arena[owner];

	if (type)
		a->live += bytes;
	else
		a->free += bytes;
	while (bytes) {
		uint64_t part;

		enter(w, addr, owner);
		part = w->unit.end - addr < bytes ? w->unit.end - addr : bytes;
		if (type) {
			w->unit.live += part;
			add_type(&w->unit, *type, part);
		} else {
			w->unit.free += part;
		}
		addr += part;
		bytes -= part;
		/* Whole pages of one thing need not be looked at one by one. */
		if (bytes >= 2 * HEAP_PAGE && addr % HEAP_PAGE == 0 && w->unit.end == addr &&
		    w->unit.end - w->unit.from == HEAP_PAGE &&
		    (w->run == w->b->n_parts || w->b->parts[w->run].addr > addr + bytes)) {
			uint64_t whole = (bytes - 1) & ~(uint64_t)(HEAP_PAGE - 1);

			flush(w);
			if (type)
				a->used += whole / HEAP_PAGE;
			else
				a->empty += whole;
			addr += whole;
			bytes -= whole;
		}
	}
}

static void add_block(struct work *w, uint64_t row, const uint32_t *type_of)
{
	const struct heap_block *r = &w->b->rows[row];
	struct fragmentation_arena *a = &w->f->arena[r->owner];

	a->between += w->pending[r->owner];
	w->pending[r->owner] = 0;
	a->last = row;
	add(w, r->addr, 8 * (uint64_t)r->words, r->owner, &type_of[row]);
}

static void add_part(struct work *w, const struct heap_part *p)
{
	uint64_t bytes = 8 * (uint64_t)p->words;

	if (p->kind == HEAP_PART_RUN || p->kind == HEAP_PART_RETAINED ||
	    p->kind == HEAP_PART_UNKNOWN)
		return;
	w->pending[p->owner] += bytes;
	add(w, p->addr, bytes, p->owner, NULL);
}

int fragmentation_find(const struct heap_blocks *b, const uint32_t *type_of, uint32_t n_types,
		       struct fragmentation *ret)
{
	struct fragmentation f = { .n_arenas = b->n_owners, .n_types = n_types };
	struct work w = { .f = &f, .b = b };
	uint64_t part = 0;

	f.arena = calloc(b->n_owners + 1, sizeof(*f.arena));
	f.type = calloc(n_types + 1, sizeof(*f.type));
	w.pending = calloc(b->n_owners + 1, sizeof(*w.pending));
	if (!f.arena || !f.type || !w.pending) {
		fragmentation_fini(&f);
		free(w.pending);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < b->n_owners; i++)
		f.arena[i].last = UINT64_MAX;
	for (uint64_t row = 0; row < b->n || part < b->n_parts;) {
		if (part < b->n_parts && (row == b->n || b->parts[part].addr < b->rows[row].addr))
			add_part(&w, &b->parts[part++]);
		else
			add_block(&w, row++, type_of);
	}
	flush(&w);
	free(w.pending);
	*ret = f;
	return 0;
}

void fragmentation_fini(struct fragmentation *f)
{
	free(f->arena);
	free(f->type);
	*f = (struct fragmentation){ 0 };
}
