/*
 * Goroutines of Go programs: how many, what they wait for, and where.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>
#include <string.h>

#define SHOWN 12

static void put_head(const struct run_summary *s, struct sink *out)
{
	char text[480], part[128] = "";

	if (s->goroutines.most_part > 1)
		snprintf(part, sizeof(part), " of one in %u of them: estimates",
			 s->goroutines.most_part);
	snprintf(text, sizeof(text),
		 "%s at the end (%s on a thread, %s of the runtime's own), by %s looks%s%s",
		 unit_count(s->goroutines.now).s, unit_count(s->goroutines.running).s,
		 unit_count(s->goroutines.system).s, unit_count((int64_t)s->goroutines.looks).s,
		 part, s->goroutines.untested ? " (version untested)" : "");
	cells_labelled(out, "Goroutines", text);
}

/* "IO wait, 127.0.0.1:5432" */
static void put_reason(const struct goroutine_row *row, struct sink *out)
{
	char text[240];

	snprintf(text, sizeof(text), "%.60s%s%.160s", *row->reason ? row->reason : "[unknown]",
		 *row->peer ? ", " : "", row->peer);
	cells_name(out, text, 26, true);
}

static void put_row(const struct goroutine_row *row, struct sink *out)
{
	cells_right(out, unit_ns(row->at.value).s, 10);
	cells_right(out, unit_count(row->now).s, 9);
	cells_right(out, row->waits ? unit_count(row->at.count).s : "", 10);
	cells_right(out, row->longest_ns ? unit_ns(row->longest_ns).s : "", 10);
	sink_puts(out, "  ");
	put_reason(row, out);
	sink_puts(out, "  ");
	cells_name(out, *row->at.function ? row->at.function : "[unknown]", 29, false);
	sink_puts(out, "\n");
}

void section_goroutines_text(const struct run_summary *s, struct sink *out)
{
	char text[420];

	if (!s->goroutines.processes)
		return;
	put_head(s, out);
	cells_right(out, "time", 10);
	cells_right(out, "number", 9);
	cells_right(out, "stops", 10);
	cells_right(out, "longest", 10);
	sink_puts(out, "  ");
	cells_left(out, "for", 28);
	sink_puts(out, "in\n");
	for (uint32_t i = 0; i < s->goroutines.n_rows && i < SHOWN; i++) {
		const struct goroutine_row *row = &s->goroutines.rows[i];

		if (!goroutines_held_up(row) && (!i || goroutines_held_up(row - 1)))
			sink_puts(out, "  held up by nothing but new work and each other\n");
		put_row(row, out);
	}
	if (!s->goroutines.moved && !s->goroutines.unreadable && !s->goroutines.cut)
		return;
	snprintf(
		text, sizeof(text),
		"Of %s seen, %s ran on while they were read and %s could not be read: they are in no row; "
		"%s stacks are incomplete.",
		unit_count((int64_t)s->goroutines.looked).s,
		unit_count((int64_t)s->goroutines.moved).s,
		unit_count((int64_t)s->goroutines.unreadable).s,
		unit_count((int64_t)s->goroutines.cut).s);
	cells_wrapped(out, text, 2, false);
}

/* Those that something holds up. */
void section_goroutines_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	if (!s->goroutines.processes)
		return;
	cells_line(out, "Goroutines");
	sink_printf(out, "%s at the end, %s on a thread%s\n", unit_count(s->goroutines.now).s,
		    unit_count(s->goroutines.running).s,
		    s->goroutines.most_part > 1 ? " (a part looked at: estimates)" : "");
	for (uint32_t i = 0; i < s->goroutines.n_rows && i < rows; i++) {
		const struct goroutine_row *row = &s->goroutines.rows[i];

		if (!goroutines_held_up(row))
			break; /* they come first */
		cells_right(out, unit_ns(row->at.value).s, CELLS_LABEL_WIDTH + 10);
		cells_right(out, unit_count(row->at.count).s, 12);
		sink_puts(out, "  ");
		put_reason(row, out);
		sink_puts(out, "  ");
		cells_name(out, row->at.function, 29, false);
		sink_puts(out, "\n");
	}
}

void section_goroutines_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o, *list;

	if (!s->goroutines.processes && !s->goroutines.refused)
		return;
	o = json_object(d, root, "goroutines");
	json_count(d, o, "processes", s->goroutines.processes);
	json_text(d, o, "runtime", s->goroutines.version);
	json_truth(d, o, "untested", s->goroutines.untested);
	json_count(d, o, "refused", s->goroutines.refused);
	json_text(d, o, "why", s->goroutines.why);
	json_count(d, o, "looks", s->goroutines.looks);
	json_count(d, o, "looked", s->goroutines.looked);
	json_count(d, o, "moved", s->goroutines.moved);
	json_count(d, o, "unreadable", s->goroutines.unreadable);
	json_count(d, o, "cut_stacks", s->goroutines.cut);
	json_count(d, o, "one_in", s->goroutines.most_part);
	json_number(d, o, "now", s->goroutines.now);
	json_number(d, o, "running", s->goroutines.running);
	json_number(d, o, "system", s->goroutines.system);
	list = json_array(d, o, "rows");
	for (uint32_t i = 0; i < s->goroutines.n_rows; i++) {
		const struct goroutine_row *row = &s->goroutines.rows[i];
		cJSON *r = json_element(d, list);

		json_text(d, r, "state", row->reason);
		json_text(d, r, "function", row->at.function);
		json_text(d, r, "module", row->at.module);
		json_truth(d, r, "own", row->own);
		json_text(d, r, "role", wait_role_name(row->at.role));
		json_text(d, r, "peer", row->peer);
		json_number(d, r, "now", row->now);
		json_number(d, r, "time_ns", row->at.value);
		json_number(d, r, "stops", row->at.count);
		json_number(d, r, "longest_ns", row->longest_ns);
	}
}
