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
};

struct lost {
	uint64_t objects, bytes;
};

struct row {
	const struct type *type;
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

	return p != q ? (p < q ? 1 : -1) : (x->type > y->type) - (x->type < y->type);
}

static void put_sums(const struct heap_view *v, const struct lost *direct,
		     const struct lost *indirect)
{
	answer_say(
		v->out,
		"lost, for nothing refers to them: %s objects, %s, and %s, %s, that only those refer to",
		unit_count((int64_t)direct->objects).s, unit_bytes((int64_t)direct->bytes).s,
		unit_count((int64_t)indirect->objects).s, unit_bytes((int64_t)indirect->bytes).s);
	answer_say(
		v->out, "%s",
		"what grows and is still referred to is not lost: dominators, caches and diff show it");
	answer_figure(v->out, "lost_objects", direct->objects);
	answer_figure(v->out, "lost_bytes", direct->bytes);
	answer_figure(v->out, "indirect_objects", indirect->objects);
	answer_figure(v->out, "indirect_bytes", indirect->bytes);
}

static void put_rows(const struct heap_view *v, struct row *rows)
{
	uint32_t n = v->s->types.n;

	qsort(rows, n, sizeof(*rows), by_bytes);
	answer_table(v->out, "types", columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++) {
		if (!(rows[i].direct.bytes + rows[i].indirect.bytes))
			break;
		answer_cell(v->out, rows[i].direct.bytes);
		answer_cell(v->out, rows[i].direct.objects);
		answer_cell(v->out, rows[i].indirect.bytes);
		answer_cell(v->out, rows[i].indirect.objects);
		answer_text(v->out, rows[i].type->name);
	}
}

int heap_leaks(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(freep) uint8_t *reached = graph_reached(s->graph, s->graph_roots, s->n_roots);
	_cleanup_(freep) uint8_t *found = reached ? graph_leaks(s->graph, reached) : NULL;
	_cleanup_(freep) struct row *rows = calloc(s->types.n + 1ul, sizeof(*rows));
	struct lost direct = { 0 }, indirect = { 0 };

	(void)what;
	if (!found || !rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->types.n; i++)
		rows[i].type = &s->types.type[i];
	for (uint32_t i = 0; i < s->blocks.n; i++) {
		bool is_direct = found[i] == GRAPH_LEAK_DIRECT;
		struct row *row = &rows[s->types.of[i]];

		if (!is_direct && found[i] != GRAPH_LEAK_INDIRECT)
			continue;
		lose(is_direct ? &row->direct : &row->indirect, snapshot_bytes(s, i));
		lose(is_direct ? &direct : &indirect, snapshot_bytes(s, i));
	}
	put_sums(v, &direct, &indirect);
	if (direct.objects)
		put_rows(v, rows);
	return 0;
}
