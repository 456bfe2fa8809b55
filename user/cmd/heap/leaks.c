/* memscope heap leaks: blocks that nothing refers to any more. */
#include "heap/graph/leaks.h"
#include "base/units.h"
#include "cmd/heap/view.h"

#include <errno.h>

static const struct answer_column columns[] = {
	{ "bytes", "lost bytes", ANSWER_BYTES, 0 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "indirect_bytes", "indirectly", ANSWER_BYTES, 0 },
	{ "indirect_objects", "objects", ANSWER_COUNT, 0 },
	{ "type", "type", ANSWER_NAME, 0 },
	{ 0 },
}, site_columns[] = {
	{ "bytes", "lost bytes", ANSWER_BYTES, 0 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "indirect_bytes", "indirectly", ANSWER_BYTES, 0 },
	{ "indirect_objects", "objects", ANSWER_COUNT, 0 },
	{ "site", "allocated at", ANSWER_NAME, 0 },
	{ 0 },
};

struct lost {
	uint64_t objects, bytes;
};

struct row {
	uint32_t group; /* a type, or a site */
	struct lost direct, indirect;
};

static void lose(struct lost *to, uint64_t bytes)
{
	to->objects++;
	to->bytes += bytes;
}

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	uint64_t p = x->direct.bytes + x->indirect.bytes, q = y->direct.bytes + y->indirect.bytes;

	return p != q ? (p < q ? 1 : -1) : (x->group > y->group) - (x->group < y->group);
}

static void put_sums(const struct heap_view *v, const struct lost *direct,
		     const struct lost *indirect)
{
	if (direct->objects)
		answer_say(
			v->out,
			"lost: %s objects, %s, that nothing refers to, and %s more, %s, that only those refer to",
			unit_count((int64_t)direct->objects).s,
			unit_bytes((int64_t)direct->bytes).s,
			unit_count((int64_t)indirect->objects).s,
			unit_bytes((int64_t)indirect->bytes).s);
	else
		answer_say(v->out, "%s", "nothing is lost: references lead to every block in use");
	answer_say(
		v->out, "%s",
		"what grows and is still referred to is not lost: dominators, caches and diff show it");
	answer_figure(v->out, "lost_objects", direct->objects);
	answer_figure(v->out, "lost_bytes", direct->bytes);
	answer_figure(v->out, "indirect_objects", indirect->objects);
	answer_figure(v->out, "indirect_bytes", indirect->bytes);
}

static void put_group(const struct heap_view *v, bool by_site, uint32_t group)
{
	char name[SITE_NAME_MAX] = "";

	if (by_site)
		sites_name(v->s->sites, group, name);
	answer_text(v->out, !by_site ? v->s->types.type[group].name : *name ? name : "(not known)");
}

static void put_rows(const struct heap_view *v, bool by_site, struct row *rows, uint32_t n)
{
	qsort(rows, n, sizeof(*rows), by_bytes);
	answer_table(v->out, by_site ? "sites" : "types", by_site ? site_columns : columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++) {
		if (!(rows[i].direct.bytes + rows[i].indirect.bytes))
			break;
		answer_cell(v->out, rows[i].direct.bytes);
		answer_cell(v->out, rows[i].direct.objects);
		answer_cell(v->out, rows[i].indirect.bytes);
		answer_cell(v->out, rows[i].indirect.objects);
		put_group(v, by_site, rows[i].group);
	}
}

/* Of each type, or of each site. The caller's; NULL: out of memory. */
static struct row *sum_up(const struct snapshot *s, const uint8_t *found, bool by_site)
{
	uint32_t n = by_site ? s->sites->n_sites : s->types.n;
	struct row *rows = calloc(n + 1ul, sizeof(*rows));

	for (uint32_t i = 0; rows && i < n; i++)
		rows[i].group = i;
	for (uint32_t i = 0; rows && i < s->blocks.n; i++) {
		struct row *row = &rows[by_site ? sites_of(s->sites, i) : s->types.of[i]];

		if (found[i] == GRAPH_LEAK_DIRECT)
			lose(&row->direct, snapshot_bytes(s, i));
		else if (found[i] == GRAPH_LEAK_INDIRECT)
			lose(&row->indirect, snapshot_bytes(s, i));
	}
	return rows;
}

int heap_leaks(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(freep) uint8_t *reached = graph_reached(s->graph, s->graph_roots, s->n_roots);
	_cleanup_(freep) uint8_t *found = reached ? graph_leaks(s->graph, reached) : NULL;
	_cleanup_(freep) struct row *types = found ? sum_up(s, found, false) : NULL;
	_cleanup_(freep) struct row *sites = found && s->sites ? sum_up(s, found, true) : NULL;
	struct lost direct = { 0 }, indirect = { 0 };

	(void)what;
	if (!types || (s->sites && !sites))
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->types.n; i++) {
		direct.objects += types[i].direct.objects;
		direct.bytes += types[i].direct.bytes;
		indirect.objects += types[i].indirect.objects;
		indirect.bytes += types[i].indirect.bytes;
	}
	put_sums(v, &direct, &indirect);
	if (!direct.objects)
		return 0;
	put_rows(v, false, types, s->types.n);
	if (sites) {
		answer_say(v->out, "%s", "");
		put_rows(v, true, sites, s->sites->n_sites);
	}
	return 0;
}
