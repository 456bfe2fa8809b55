/*
 * How many locations have a name, and why the others have none.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <string.h>

static void put_unnamed(struct sink *out, uint64_t locations, const char *where)
{
	if (locations == 0)
		return;
	cells_right(out, unit_count((int64_t)locations).s, CELLS_LABEL_WIDTH + 8);
	sink_printf(out, " unsymbolized %s\n", where);
}

void section_symbols_text(const struct run_summary *s, struct sink *out)
{
	const struct summary_symbols *y = &s->symbols;
	uint64_t in_worst = 0;

	if (y->locations == 0)
		return;
	cells_label(out, "Symbols");
	sink_printf(out, "%s of %s locations symbolized (%s)", unit_count((int64_t)y->named).s,
		    unit_count((int64_t)y->locations).s,
		    unit_percent((int64_t)y->named, (int64_t)y->locations).s);
	if (y->ranges)
		sink_printf(out, ", %s in unnamed functions", unit_count((int64_t)y->ranges).s);
	sink_puts(out, "\n");
	for (uint32_t i = 0; i < y->n_worst; i++) {
		const char *slash = strrchr(y->worst[i].module, '/');

		cells_right(out, unit_count((int64_t)y->worst[i].locations).s,
			    CELLS_LABEL_WIDTH + 8);
		sink_puts(out, " unsymbolized in ");
		cells_name(out, slash && slash[1] ? slash + 1 : y->worst[i].module, 32, false);
		sink_printf(out, ": %s\n", y->worst[i].reason);
		in_worst += y->worst[i].locations;
		if (y->worst[i].package && y->worst[i].package[0]) {
			cells_right(out, "", CELLS_LABEL_WIDTH + 8);
			sink_puts(out, " debug symbols: ");
			cells_name(out, y->worst[i].package, 64, false);
			sink_puts(out, "\n");
		}
	}
	if (y->ranges + y->offset_only > in_worst)
		put_unnamed(out, y->ranges + y->offset_only - in_worst, "in other images");
	put_unnamed(out, y->no_module, "in no mapping: [unknown]");
}

void section_symbols_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o = json_object(d, root, "symbols"), *list;

	json_count(d, o, "locations", s->symbols.locations);
	json_count(d, o, "symbolized", s->symbols.named);
	json_count(d, o, "range_only", s->symbols.ranges);
	json_count(d, o, "offset_only", s->symbols.offset_only);
	json_count(d, o, "no_module", s->symbols.no_module);
	list = json_array(d, o, "worst");
	for (uint32_t i = 0; i < s->symbols.n_worst; i++) {
		o = json_element(d, list);
		json_text(d, o, "module", s->symbols.worst[i].module);
		json_count(d, o, "locations", s->symbols.worst[i].locations);
		json_text(d, o, "reason", s->symbols.worst[i].reason);
		if (s->symbols.worst[i].package && s->symbols.worst[i].package[0])
			json_text(d, o, "debug_package", s->symbols.worst[i].package);
	}
}
