/* memscope heap fragmentation: what is free between blocks in use, and what pins it. */
#include "heap/fragmentation.h"
#include "base/large.h"
#include "cmd/heap/view.h"

#include <errno.h>

static const struct answer_column arena_columns[] = {
	{ "in_use", "in use", ANSWER_BYTES, 10 },       { "free", "free", ANSWER_BYTES, 10 },
	{ "between", "between", ANSWER_BYTES, 10 },     { "empty", "in empty", ANSWER_BYTES, 10 },
	{ "shared", "in used", ANSWER_BYTES, 10 },      { "units", "units", ANSWER_COUNT, 10 },
	{ "sparse", "sparse", ANSWER_COUNT, 10 },       { "pinned", "pinned", ANSWER_BYTES, 10 },
	{ "last", "last block", ANSWER_ADDRESS, 18 },   { "arena", "arena", ANSWER_NAME, 22 },
	{ "type", "type of the last", ANSWER_NAME, 0 }, { 0 },
};

static const struct answer_column type_columns[] = {
	{ "pinned", "pinned", ANSWER_BYTES, 10 }, { "units", "units", ANSWER_COUNT, 10 },
	{ "blocks", "blocks", ANSWER_COUNT, 10 }, { "in_use", "in use", ANSWER_BYTES, 10 },
	{ "type", "type", ANSWER_NAME, 0 },       { 0 },
}, site_columns[] = {
	{ "pinned", "pinned", ANSWER_BYTES, 10 },    { "units", "units", ANSWER_COUNT, 10 },
	{ "blocks", "blocks", ANSWER_COUNT, 10 },    { "in_use", "in use", ANSWER_BYTES, 10 },
	{ "site", "allocated at", ANSWER_NAME, 0 },  { 0 },
};

static int by_free(const void *a, const void *b)
{
	const struct fragmentation_arena *x = *(const struct fragmentation_arena *const *)a;
	const struct fragmentation_arena *y = *(const struct fragmentation_arena *const *)b;

	return x->free != y->free ? (x->free < y->free ? 1 : -1) : (x > y) - (x < y);
}

static int by_pinned(const void *a, const void *b)
{
	const struct fragmentation_type *x = *(const struct fragmentation_type *const *)a;
	const struct fragmentation_type *y = *(const struct fragmentation_type *const *)b;

	if (x->pinned != y->pinned)
		return x->pinned < y->pinned ? 1 : -1;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : (x > y) - (x < y);
}

static int put_arenas(const struct heap_view *v, const struct fragmentation *f, struct err *e)
{
	_cleanup_(freep) const struct fragmentation_arena **rows =
		calloc(f->n_arenas + 1ul, sizeof(*rows));
	uint32_t n = 0;

	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < f->n_arenas; i++)
		if (f->arena[i].free || f->arena[i].live)
			rows[n++] = &f->arena[i];
	qsort(rows, n, sizeof(*rows), by_free);
	answer_table(v->out, "arenas", arena_columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++) {
		const struct fragmentation_arena *a = rows[i];
		bool has = a->last < v->s->blocks.n;

		answer_cell(v->out, a->live);
		answer_cell(v->out, a->free);
		answer_cell(v->out, a->between);
		answer_cell(v->out, a->empty);
		answer_cell(v->out, a->shared);
		answer_cell(v->out, a->used);
		answer_cell(v->out, a->sparse);
		answer_cell(v->out, a->pinned);
		answer_cell(v->out, has ? v->s->blocks.rows[a->last].addr : 0);
		heap_put_arena(v, heap_blocks_owner(&v->s->blocks, (uint32_t)(a - f->arena)));
		answer_text(v->out, has ? heap_type_name(v, (uint32_t)a->last) : "");
	}
	return 0;
}

/* By types; or `by_site`, of what was found by them. */
static int put_pinned(const struct heap_view *v, const struct fragmentation *f, bool by_site,
		      struct err *e)
{
	char name[SITE_NAME_MAX] = "";
	_cleanup_(freep) const struct fragmentation_type **rows =
		calloc(f->n_types + 1ul, sizeof(*rows));
	uint32_t n = 0;

	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < f->n_types; i++)
		if (f->type[i].blocks)
			rows[n++] = &f->type[i];
	qsort(rows, n, sizeof(*rows), by_pinned);
	answer_say(v->out, "%s", "");
	if (!by_site)
		answer_say(
			v->out, "%s",
			n ? "sparse units, an eighth or less of which is in use, by the type of most of that"
			  : "no unit is sparse: of each more than an eighth is in use");
	answer_table(v->out, by_site ? "pinned_by_site" : "pinned_by",
		     by_site ? site_columns : type_columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++) {
		answer_cell(v->out, rows[i]->pinned);
		answer_cell(v->out, rows[i]->units);
		answer_cell(v->out, rows[i]->blocks);
		answer_cell(v->out, rows[i]->bytes);
		if (by_site)
			sites_name(v->s->sites, (uint32_t)(rows[i] - f->type), name);
		answer_text(v->out, !by_site ? v->s->types.type[rows[i] - f->type].name
				    : *name  ? name
					     : "(not known)");
	}
	return 0;
}

static int put_sites(const struct heap_view *v, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(fragmentation_fini) struct fragmentation f = { 0 };
	_cleanup_(large_freep) uint32_t *of = large_alloc(s->blocks.n + 1, sizeof(*of));

	for (uint32_t i = 0; of && i < s->blocks.n; i++)
		of[i] = sites_of(s->sites, i);
	if (!of || fragmentation_find(&s->blocks, of, s->sites->n_sites, &f) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return put_pinned(v, &f, true, e);
}

int heap_fragmentation(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(fragmentation_fini) struct fragmentation f = { 0 };
	int r;

	(void)what;
	if (fragmentation_find(&s->blocks, s->types.of, s->types.n, &f) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	answer_say(
		v->out, "%s",
		"a unit is what can be released as a whole: a slab, page or span of the allocator, of glibc a page of 4 KiB");
	r = put_arenas(v, &f, e);
	if (r == 0)
		r = put_pinned(v, &f, false, e);
	return r == 0 && s->sites ? put_sites(v, e) : r;
}
