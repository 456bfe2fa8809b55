/*
 * Which files, devices and peers threads waited for.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

enum { ROWS_SHOWN = 10 };
#define SHOWN_PART 0.001 /* of the longest */

void section_io_waits_text(const struct run_summary *s, struct sink *out)
{
	if (!s->io_waits.n)
		return;
	cells_labelled(out, "I/O waits",
		       "by file, device and peer, of calls that name a descriptor");
	cells_right(out, "time", 10);
	cells_right(out, "count", 12);
	sink_puts(out, "  ");
	cells_left(out, "for", 46);
	sink_puts(out, "in\n");
	for (uint32_t i = 0; i < s->io_waits.n && i < ROWS_SHOWN; i++) {
		const struct io_wait_row *row = &s->io_waits.rows[i];
		char text[300];

		if ((double)row->blocked_ns < SHOWN_PART * (double)s->io_waits.rows[0].blocked_ns)
			break; /* sorted */
		snprintf(text, sizeof(text), "%s %s%s%s%s", row->kind, row->name,
			 *row->device ? " (" : "", row->device, *row->device ? ")" : "");
		cells_right(out, unit_ns(row->blocked_ns).s, 10);
		cells_right(out, unit_count(row->count).s, 12);
		sink_puts(out, "  ");
		cells_name(out, text, 44, true);
		sink_puts(out, "  ");
		cells_name(out, *row->function ? row->function : "[no user stack]",
			   CELLS_WIDTH - 70, false);
		sink_puts(out, "\n");
	}
}

void section_io_waits_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "io_waits");

	for (uint32_t i = 0; i < s->io_waits.n; i++) {
		const struct io_wait_row *row = &s->io_waits.rows[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "kind", row->kind);
		json_text(d, o, "name", row->name);
		json_text(d, o, "device", row->device);
		json_number(d, o, "blocked_ns", row->blocked_ns);
		json_number(d, o, "count", row->count);
		json_text(d, o, "function", row->function);
		json_text(d, o, "module", row->module);
		json_number(d, o, "function_ns", row->function_ns);
	}
}
