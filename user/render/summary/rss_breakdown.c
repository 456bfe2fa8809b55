/*
 * What RSS consists of: analyse/ledger.h.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <string.h>

enum { TITLE = 21, BYTES = 12, SHARE = 8, CONTAINERS = 10 };

static void put_row(struct sink *out, const char *title, int64_t bytes, int64_t rss)
{
	struct unit_text t = unit_bytes(bytes < 0 ? -bytes : bytes);

	if (bytes < 0) {
		memmove(t.s + 1, t.s, sizeof(t.s) - 1);
		t.s[0] = '-';
		t.s[sizeof(t.s) - 1] = '\0';
	}
	sink_puts(out, "  ");
	cells_left(out, title, TITLE);
	cells_right(out, t.s, BYTES);
	cells_right(out, bytes < 0 ? "" : unit_percent(bytes, rss).s, SHARE);
	sink_puts(out, "  ");
}

static bool is_split(const struct ledger *l)
{
	return l->parts[LEDGER_TRACED].blocks || l->parts[LEDGER_BEFORE].blocks;
}

static void put_part(struct sink *out, const struct ledger *l, enum ledger_part part)
{
	const struct ledger_row *row = &l->parts[part];
	bool rest = part == LEDGER_LIVE && is_split(l) && !l->objects_traced;

	if (!row->resident && !row->bytes)
		return;
	put_row(out, rest ? "live, not traced" : ledger_title(part), ledger_part_bytes(l, row),
		ledger_total(l));
	if (row->blocks)
		sink_printf(out, "of %s in %s blocks; ", unit_bytes(row->bytes).s,
			    unit_count(row->blocks).s);
	else if (row->bytes)
		sink_printf(out, "of %s; ", unit_bytes(row->bytes).s);
	sink_printf(out, "%s\n", ledger_how(part));
}

static void put_caveats(struct sink *out, const struct ledger *l)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (l->caveat)
		strbuf_puts(&b, l->caveat);
	if (l->unsupported_allocator)
		strbuf_printf(
			&b,
			"%s%s is mapped but was not walked: its memory, live or free, counts as other "
			"anonymous",
			b.len ? "; " : "", l->unsupported_allocator);
	if (!b.len)
		return;
	cells_spaces(out, 2);
	cells_wrapped(out, b.s ? b.s : "", 2, true);
}

/* Of the heap's parts above, what is an interpreter's. */
static void put_objects(struct sink *out, const struct ledger *l)
{
	const struct ledger_row *o = l->objects;
	int64_t resident = 0;

	if (!l->objects_by)
		return;
	for (int i = 0; i < N_LEDGER_HEAP_PARTS; i++)
		resident += ledger_part_bytes(l, &o[i]);
	put_row(out, "- for objects", resident, ledger_total(l));
	sink_printf(out, "of the above, %s's %u arenas: %s live in %s blocks, %s free\n",
		    l->objects_by, l->object_arenas, unit_bytes(o[LEDGER_LIVE].bytes).s,
		    unit_count(o[LEDGER_LIVE].blocks).s, unit_bytes(o[LEDGER_FREE].bytes).s);
}

static void put_not_read(struct sink *out, const struct ledger *l)
{
	if (!l->not_read)
		return;
	sink_printf(out,
		    "  not read: %s process%s with %s of RSS, shared pages in each; no time was "
		    "left\n",
		    unit_count(l->not_read).s, l->not_read == 1 ? "" : "es",
		    unit_bytes(l->not_read_rss).s);
}

static int64_t heap_of(const struct ledger *l)
{
	int64_t sum = 0;

	for (int i = 0; i < N_LEDGER_HEAP_PARTS; i++)
		sum += ledger_part_bytes(l, &l->parts[i]);
	return sum;
}

/* The largest first, as they come. */
static void put_containers(struct sink *out, const struct run_summary *s)
{
	int64_t total = ledger_total(&s->ledger.now);

	for (uint32_t i = 0; i < s->ledger.n_containers; i++) {
		const struct summary_container_memory *c = &s->ledger.containers[i];
		const struct ledger *l = &c->now;

		if (i == CONTAINERS) {
			sink_printf(out, "  and %u more: summary.json has all\n",
				    s->ledger.n_containers - i);
			return;
		}
		sink_puts(out, "  ");
		cells_name(out, c->name, TITLE - 2, true);
		sink_puts(out, "  ");
		cells_right(out, unit_bytes(ledger_total(l)).s, BYTES);
		cells_right(out, unit_percent(ledger_total(l), total).s, SHARE);
		sink_printf(out, "  %u process%s; heaps %s", l->processes,
			    l->processes == 1 ? "" : "es", unit_bytes(heap_of(l)).s);
		if (l->not_read)
			sink_printf(out, "; %u not read", l->not_read);
		sink_puts(out, "\n");
	}
}

void section_rss_breakdown_text(const struct run_summary *s, struct sink *out)
{
	const struct ledger *l = &s->ledger.now;
	int64_t rest = ledger_unexplained(l);

	if (!ledger_known(l))
		return;
	cells_label(out, "RSS breakdown");
	sink_printf(out, "  %s", unit_bytes(ledger_total(l)).s);
	if (l->by_pss)
		sink_printf(out, " (PSS) of %u process%s", l->processes,
			    l->processes == 1 ? "" : "es");
	else if (l->processes > 1)
		sink_printf(out, " of %u processes", l->processes);
	sink_printf(out, ", after %s of the run", unit_ns(s->ledger.at_ns).s);
	if (*l->allocators)
		sink_printf(out, "; %s walked", l->allocators);
	sink_puts(out, "\n");
	if (l->by_pss)
		sink_puts(
			out,
			"  a page that n processes map counts as an nth in each: none counts twice\n");
	else if (l->processes > 1)
		sink_puts(out, "  pages shared by several of them count in each\n");
	for (int i = 0; i < N_LEDGER_PARTS; i++) {
		put_part(out, l, (enum ledger_part)i);
		if (i == N_LEDGER_HEAP_PARTS - 1)
			put_objects(out, l);
	}
	put_row(out, "unexplained", rest, ledger_total(l));
	sink_puts(out, rest < 0 ? "the process changed while it was read\n"
				: "smaps_rollup minus all of the above\n");
	put_not_read(out, l);
	put_caveats(out, l);
	put_containers(out, s);
}

static cJSON *add_ledger_row(struct json_doc *d, cJSON *rows, enum ledger_part part,
			     const struct ledger_row *from)
{
	cJSON *row = json_object(d, rows, ledger_name(part));

	json_number(d, row, "resident_bytes", from->resident);
	json_number(d, row, "pss_bytes", from->pss);
	if (ledger_of_heap(part)) {
		json_number(d, row, "bytes", from->bytes);
		json_number(d, row, "blocks", from->blocks);
	}
	return row;
}

static void add_ledger_objects(struct json_doc *d, cJSON *ledger, const struct ledger *l)
{
	cJSON *o, *rows;

	if (!l->objects_by) {
		json_null(d, ledger, "objects");
		return;
	}
	o = json_object(d, ledger, "objects");
	json_text(d, o, "allocator", l->objects_by);
	json_number(d, o, "arenas", l->object_arenas);
	rows = json_object(d, o, "parts");
	for (int i = LEDGER_LIVE; i < N_LEDGER_HEAP_PARTS; i++)
		add_ledger_row(d, rows, (enum ledger_part)i, &l->objects[i]);
}

static void add_totals(struct json_doc *d, cJSON *o, const struct ledger *l)
{
	json_number(d, o, "processes", l->processes);
	json_text(d, o, "measure", l->by_pss ? "pss" : "rss");
	json_number(d, o, "rss_bytes", l->rss);
	json_number(d, o, "pss_bytes", l->pss);
	json_number(d, o, "unexplained_bytes", ledger_unexplained(l));
	json_number(d, o, "not_read_processes", l->not_read);
	json_number(d, o, "not_read_rss_bytes", l->not_read_rss);
}

static void add_containers(struct json_doc *d, cJSON *ledger, const struct run_summary *s)
{
	cJSON *list;

	if (!s->ledger.n_containers) {
		json_null(d, ledger, "containers");
		return;
	}
	list = json_array(d, ledger, "containers");
	for (uint32_t i = 0; i < s->ledger.n_containers; i++) {
		const struct summary_container_memory *c = &s->ledger.containers[i];
		cJSON *o = json_element(d, list), *rows;

		json_text(d, o, "name", c->name);
		add_totals(d, o, &c->now);
		rows = json_object(d, o, "parts");
		for (int k = 0; k < N_LEDGER_PARTS; k++)
			add_ledger_row(d, rows, (enum ledger_part)k, &c->now.parts[k]);
	}
}

void section_rss_breakdown_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct ledger *l = &s->ledger.now;
	cJSON *o, *rows, *row;

	if (!ledger_known(l)) {
		json_null(d, root, "rss_breakdown");
		return;
	}
	o = json_object(d, root, "rss_breakdown");
	json_number(d, o, "at_ns", s->ledger.at_ns);
	add_totals(d, o, l);
	json_text(d, o, "walked", l->allocators);
	json_text(d, o, "not_walked", l->unsupported_allocator);
	json_text(d, o, "caveat", l->caveat);
	json_number(d, o, "took_ns", l->took_ns);
	rows = json_object(d, o, "parts");
	for (int i = 0; i < N_LEDGER_PARTS; i++) {
		enum ledger_part part = (enum ledger_part)i;

		row = add_ledger_row(d, rows, part, &l->parts[i]);
		json_text(d, row, "how", ledger_how(part));
	}
	add_ledger_objects(d, o, l);
	add_containers(d, o, s);
}
