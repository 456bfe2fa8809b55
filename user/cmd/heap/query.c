/* memscope heap query: objects that meet a condition, largest first. */
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/select.h"

#include <errno.h>
#include <string.h>

static const struct answer_column columns[] = {
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "address", "address", ANSWER_ADDRESS, 0 },
	{ "references", "references", ANSWER_COUNT, 0 },
	{ "referrers", "referrers", ANSWER_COUNT, 0 },
	{ "type", "type", ANSWER_NAME, 24 },
	{ "use", "use", ANSWER_NAME, 0 },
	{ 0 },
}, with_sites[] = {
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "address", "address", ANSWER_ADDRESS, 0 },
	{ "references", "references", ANSWER_COUNT, 0 },
	{ "referrers", "referrers", ANSWER_COUNT, 0 },
	{ "type", "type", ANSWER_NAME, 24 },
	{ "use", "use", ANSWER_NAME, 20 },
	{ "age_ns", "age", ANSWER_NS, 0 },
	{ "site", "allocated at", ANSWER_NAME, 0 },
	{ 0 },
}, with_values[] = {
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "address", "address", ANSWER_ADDRESS, 0 },
	{ "type", "type", ANSWER_NAME, 24 },
	{ "use", "use", ANSWER_NAME, 28 },
	{ "value", "value", ANSWER_NAME, 0 },
	{ 0 },
};

struct row {
	uint64_t bytes;
	uint32_t node;
};

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1)
				    : (x->node > y->node) - (x->node < y->node);
}

static void put_site(const struct heap_view *v, uint32_t node)
{
	uint32_t ms = v->s->sites->age_ms[node];

	answer_cell(v->out, ms == SITES_OLDER ? ANSWER_NONE : 1000000ull * ms);
	heap_put_site(v, node);
}

static void put_rows(const struct heap_view *v, const struct row *rows, uint64_t n)
{
	const struct snapshot *s = v->s;

	answer_table(v->out, "rows",
		     v->args->contents ? with_values
		     : v->s->sites     ? with_sites
				       : columns);
	for (uint64_t i = 0; i < n && i < v->args->top; i++) {
		uint32_t node = rows[i].node;

		answer_cell(v->out, rows[i].bytes);
		answer_cell(v->out, s->blocks.rows[node].addr);
		if (!v->args->contents) {
			answer_cell(v->out, s->graph->first[node + 1] - s->graph->first[node]);
			answer_cell(v->out, s->reverse->first[node + 1] - s->reverse->first[node]);
		}
		answer_text(v->out, heap_type_name(v, node));
		heap_put_use(v, node);
		if (v->args->contents)
			heap_put_value(v, node);
		else if (s->sites)
			put_site(v, node);
	}
	if (n > v->args->top)
		answer_say(v->out, "%s more", unit_count((int64_t)(n - v->args->top)).s);
}

int heap_query(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(freep) uint32_t *objects = NULL;
	_cleanup_(freep) struct row *rows = NULL;
	uint64_t n, bytes = 0;
	int r = select_objects(v->s, what, &objects, &n, e);

	if (r < 0)
		return r;
	rows = calloc(n + 1, sizeof(*rows));
	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint64_t i = 0; i < n; i++) {
		rows[i] = (struct row){ snapshot_bytes(v->s, objects[i]), objects[i] };
		bytes += rows[i].bytes;
	}
	qsort(rows, n, sizeof(*rows), by_bytes);
	answer_say(v->out, "%s %s, %s", unit_count((int64_t)n).s, n == 1 ? "object" : "objects",
		   unit_bytes((int64_t)bytes).s);
	answer_figure(v->out, "objects", n);
	answer_figure(v->out, "bytes", bytes);
	put_rows(v, rows, n);
	return 0;
}

int heap_search(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	if (strpbrk(what, ":=<>~()") || strncmp(what, "0x", 2) == 0 || strcmp(what, "lost") == 0)
		return heap_query(v, what, e);
	strbuf_printf(&text, "text:\"%s\"", what);
	return text.s ? heap_query(v, text.s, e) : err_set(e, -ENOMEM, "out of memory");
}
