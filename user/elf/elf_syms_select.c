/*
 * Symbols of some names, or around some addresses, out of tables that may be larger than what memory there is for them: the symbols
 * are gone through part by part, and so are the names, once, in the order in which they lie.
 */
#include "elf/elf_syms_parts.h"

#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAMES_PART = 1 << 20,         /* bytes of names that are read at a time … */
	NAME_BYTES = (1 << 16) + 256, /* … and the longest name with its version */
};

/* A symbol whose name is to be looked at. */
struct candidate {
	uint32_t name, index;
};

struct select {
	struct elf_syms *syms;
	const struct symbol_table *t;
	const struct selection *sel;
	uint64_t *
		before; /* by address: where the last symbol begins that begins between the address before and it, + 1; 0: none does */
	struct candidate *list;
	uint32_t n, cap;
	/* The part of the names that is in memory. */
	char *names;
	uint64_t names_at, names_len;
	uint64_t names_cap; /* of the names that are kept */
	struct candidate now;
	const char *name;
};

static int push(struct select *s, const Elf64_Sym *sym, uint64_t index)
{
	if (!GROW(s->list, s->n, s->cap))
		return -ENOMEM;
	s->list[s->n++] = (struct candidate){ sym->st_name, (uint32_t)index };
	return 0;
}

/* The first wanted address that is not below `vaddr`. */
static uint32_t first_at(const struct selection *sel, uint64_t vaddr)
{
	uint32_t lo = 0, hi = sel->n_vaddrs;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (sel->vaddrs[mid] < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int note_before(void *ctx, uint64_t index, const Elf64_Sym *sym)
{
	struct select *s = ctx;
	struct row row;
	uint32_t i;
	bool data;

	if (!elf_syms_to_row(s->t, sym, &row, &data))
		return 0;
	i = first_at(s->sel, row.vaddr);
	if (i < s->sel->n_vaddrs && s->before[i] <= row.vaddr)
		s->before[i] = row.vaddr + 1;
	return 0;
}

/*
 * An address has the name of a symbol that covers it. One without a size ends where the next one begins, so it covers the address only
 * where it is the last before it.
 */
static bool is_near(const struct select *s, const struct row *row)
{
	uint32_t i = first_at(s->sel, row->vaddr);

	if (i == s->sel->n_vaddrs)
		return false;
	return s->before[i] == row->vaddr + 1 ||
	       (!row->unsized && s->sel->vaddrs[i] - row->vaddr < row->size);
}

static int push_near(void *ctx, uint64_t index, const Elf64_Sym *sym)
{
	struct select *s = ctx;
	struct row row;
	bool data;

	return elf_syms_to_row(s->t, sym, &row, &data) && is_near(s, &row) ? push(s, sym, index)
									   : 0;
}

static int push_any(void *ctx, uint64_t index, const Elf64_Sym *sym)
{
	struct select *s = ctx;
	struct row row;
	bool data;

	return elf_syms_to_row(s->t, sym, &row, &data) ? push(s, sym, index) : 0;
}

/* --- names --- */

static int by_name(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

/* s->name, for as long as no other is asked for. 1: it is there, 0: it does not end. */
static int read_name(struct select *s, uint32_t at, struct err *e)
{
	uint64_t all = s->t->names->size, rest = all - at;
	uint64_t need = rest < NAME_BYTES ? rest : NAME_BYTES;
	int r;

	if (at < s->names_at || at + need > s->names_at + s->names_len) {
		uint64_t len = rest < NAMES_PART ? rest : NAMES_PART;

		s->names_len = 0;
		r = elf_file_read(s->t->elf, s->t->names->off + at, s->names, len, e);
		if (r < 0)
			return r;
		s->names_at = at;
		s->names_len = len;
	}
	s->name = s->names + (at - s->names_at);
	return memchr(s->name, 0, s->names_len - (at - s->names_at)) != NULL;
}

/* Its name goes behind those that are kept. */
static int keep_name(struct select *s, uint32_t *ret_name)
{
	struct strings *kept = &s->syms->strings[s->t->table];
	size_t bytes = strnlen(s->name, NAME_BYTES) + 1;

	if (kept->size + bytes > UINT32_MAX)
		return -EFBIG;
	if (kept->size + bytes + 1 > s->names_cap) {
		uint64_t cap = 2 * s->names_cap + bytes + 1;
		char *more = realloc(kept->bytes, cap);

		if (!more)
			return -ENOMEM;
		kept->bytes = more;
		s->names_cap = cap;
	}
	*ret_name = (uint32_t)kept->size;
	memcpy(kept->bytes + kept->size, s->name, bytes);
	kept->size += bytes;
	kept->bytes[kept->size] = 0;
	return 0;
}

static int add_named(void *ctx, uint64_t index, const Elf64_Sym *sym)
{
	struct select *s = ctx;
	struct row row;
	bool data;
	int r;

	/* The file may be another one by now. */
	if (!elf_syms_to_row(s->t, sym, &row, &data) || row.name != s->now.name)
		return 0;
	row.name_len = elf_syms_name(&s->syms->strings[s->t->table], s->name, s->sel);
	if (!row.name_len || (data && !elf_syms_is_info(s->name, row.name_len)))
		return 0;
	r = keep_name(s, &row.name);
	return r < 0 ? r : elf_syms_add(s->syms, &row);
}

/* Its name alone first: of hundreds of thousands a few are wanted. */
static int look_at(struct select *s, const struct candidate *c, struct err *e)
{
	int r = read_name(s, c->name, e);

	if (r <= 0 || (s->sel->wanted && !s->sel->wanted(s->sel->ctx, s->name)))
		return r < 0 ? r : 0;
	s->now = *c;
	return elf_syms_each(s->t, c->index, 1, add_named, s, e);
}

/* --- */

static int run(struct select *s, struct err *e)
{
	int r;

	if (s->sel->vaddrs) {
		r = elf_syms_each(s->t, 0, UINT64_MAX, note_before, s, e);
		if (r == 0)
			r = elf_syms_each(s->t, 0, UINT64_MAX, push_near, s, e);
	} else {
		r = elf_syms_each(s->t, 0, UINT64_MAX, push_any, s, e);
	}
	if (s->n)
		qsort(s->list, s->n, sizeof(*s->list), by_name);
	for (uint32_t i = 0; i < s->n && r == 0; i++)
		r = look_at(s, &s->list[i], e);
	return r;
}

int elf_syms_select(struct elf_syms *syms, const struct symbol_table *t,
		    const struct selection *sel, struct err *e)
{
	struct strings *kept = &syms->strings[t->table];
	struct select s = { .syms = syms, .t = t, .sel = sel, .names_cap = 1 };
	int r = -ENOMEM;

	s.before = calloc(sel->n_vaddrs + 1ul, sizeof(*s.before));
	s.names = malloc(t->names->size < NAMES_PART ? t->names->size + 1 : NAMES_PART);
	kept->bytes = calloc(1, 1); /* there, though it may stay empty: elf_syms_exported_only() */
	if (s.before && s.names && kept->bytes)
		r = run(&s, e);
	free(s.before);
	free(s.names);
	free(s.list);
	return r == -ENOMEM ? err_set(e, r, "%s: out of memory for symbols", elf_file_name(t->elf))
			    : r;
}
