/*
 * What RSS consists of: analyse/ledger.h.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <string.h>

enum { TITLE = 21, BYTES = 12, SHARE = 8 };

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
	put_row(out, rest ? "live, not traced" : ledger_title(part), row->resident, l->rss);
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
		resident += o[i].resident;
	put_row(out, "- for objects", resident, l->rss);
	sink_printf(out, "of the above, %s's %u arenas: %s live in %s blocks, %s free\n",
		    l->objects_by, l->object_arenas, unit_bytes(o[LEDGER_LIVE].bytes).s,
		    unit_count(o[LEDGER_LIVE].blocks).s, unit_bytes(o[LEDGER_FREE].bytes).s);
}

void section_rss_breakdown_text(const struct run_summary *s, struct sink *out)
{
	const struct ledger *l = &s->ledger.now;
	int64_t rest = ledger_unexplained(l);

	if (!l->processes)
		return;
	cells_label(out, "RSS breakdown");
	sink_printf(out, "  %s", unit_bytes(l->rss).s);
	if (l->processes > 1)
		sink_printf(out, " of %u processes", l->processes);
	sink_printf(out, ", after %s of the run", unit_ns(s->ledger.at_ns).s);
	if (*l->allocators)
		sink_printf(out, "; %s walked", l->allocators);
	sink_puts(out, "\n");
	if (l->processes > 1)
		sink_puts(out, "  pages shared by several of them count in each\n");
	for (int i = 0; i < N_LEDGER_PARTS; i++) {
		put_part(out, l, (enum ledger_part)i);
		if (i == N_LEDGER_HEAP_PARTS - 1)
			put_objects(out, l);
	}
	put_row(out, "unexplained", rest, l->rss);
	sink_puts(out, rest < 0 ? "the process changed while it was read\n"
				: "smaps_rollup minus all of the above\n");
	put_caveats(out, l);
}

static cJSON *add_ledger_row(struct json_doc *d, cJSON *rows, enum ledger_part part,
			     const struct ledger_row *from)
{
	cJSON *row = json_object(d, rows, ledger_name(part));

	json_number(d, row, "resident_bytes", from->resident);
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

void section_rss_breakdown_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct ledger *l = &s->ledger.now;
	cJSON *o, *rows, *row;

	if (!l->processes) {
		json_null(d, root, "rss_breakdown");
		return;
	}
	o = json_object(d, root, "rss_breakdown");
	json_number(d, o, "at_ns", s->ledger.at_ns);
	json_number(d, o, "processes", l->processes);
	json_number(d, o, "rss_bytes", l->rss);
	json_number(d, o, "unexplained_bytes", ledger_unexplained(l));
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
}
