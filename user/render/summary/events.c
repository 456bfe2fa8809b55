/*
 * Events that were asked for.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>
#include <string.h>

enum { PARTS_TEXT = 10 };

static struct unit_text amount(const struct event_row *row, int64_t n)
{
	return strcmp(row->unit, "nanoseconds") == 0 ? unit_ns(n) : unit_count(n);
}

static void put_function(const struct event_row *row, struct sink *out)
{
	if (!*row->function || row->on_stacks <= 0) {
		sink_puts(out, "\n");
		return;
	}
	sink_printf(out, "  %.0f %% ", (double)row->function_value * 100 / (double)row->on_stacks);
	cells_in_image(out, row->function, 26, row->module, 16);
}

static void put_row(const struct event_row *row, struct sink *out)
{
	char name[64];

	if (row->why) {
		cells_right(out, "-", 12);
		cells_right(out, "-", 10);
	} else {
		cells_right(out, amount(row, row->count).s, 12);
		cells_right(out, unit_count(row->samples).s, 10);
	}
	snprintf(name, sizeof(name), "%s%s", *row->part ? "  " : "",
		 *row->part ? row->part : row->event);
	sink_puts(out, "  ");
	cells_name(out, name, 28, *row->function != '\0' && row->on_stacks > 0);
	put_function(row, out);
}

static void put_notes(const struct event_row *row, struct sink *out)
{
	char text[400];

	if (row->one_in > 1) {
		snprintf(
			text, sizeof(text),
			"%.100s: at times only one stack in %u was captured, by chance, to keep "
			"within --max-overhead: its profile is an estimate (%s +- %s); the count is exact",
			row->event, row->one_in, amount(row, row->on_stacks).s,
			amount(row, row->on_stacks_error).s);
		cells_wrapped(out, text, 2, false);
	} else if (row->on_stacks_error) {
		snprintf(text, sizeof(text),
			 "%.100s: its profile is an estimate by one in %llu: %s +- %s", row->event,
			 (unsigned long long)row->period, amount(row, row->on_stacks).s,
			 amount(row, row->on_stacks_error).s);
		cells_wrapped(out, text, 2, false);
	}
	if (row->missed) {
		snprintf(
			text, sizeof(text),
			"%.100s: %s more, of all processes, came while another program ran on the CPU",
			row->event, unit_count(row->missed).s);
		cells_wrapped(out, text, 2, false);
	}
	if (row->stopped_s > 0) {
		snprintf(text, sizeof(text), "%.100s: counted for %.1f s alone", row->event,
			 row->stopped_s);
		cells_wrapped(out, text, 2, false);
	}
}

static void put_head(struct sink *out)
{
	cells_label(out, "Events");
	cells_right(out, "events", 12);
	cells_right(out, "stacks", 10);
	sink_puts(out, "  event\n");
}

void section_events_text(const struct run_summary *s, struct sink *out)
{
	uint32_t part = 0;
	char text[200];

	if (!s->events.known)
		return;
	put_head(out);
	for (uint32_t i = 0; i < s->events.n; i++) {
		part = *s->events.rows[i].part ? part + 1 : 0;
		if (part <= PARTS_TEXT)
			put_row(&s->events.rows[i], out);
	}
	for (uint32_t i = 0; i < s->events.n; i++)
		if (!*s->events.rows[i].part)
			put_notes(&s->events.rows[i], out);
	if (s->events.missed_tracepoints) {
		snprintf(text, sizeof(text),
			 "%s tracepoints more came while another program ran on the CPU",
			 unit_count(s->events.missed_tracepoints).s);
		cells_wrapped(out, text, 2, false);
	}
}

void section_events_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < s->events.n && shown < rows; i++) {
		if (*s->events.rows[i].part)
			continue;
		if (!shown++)
			put_head(out);
		put_row(&s->events.rows[i], out);
	}
}

void section_events_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o, *list;

	if (!s->events.known) {
		json_null(d, root, "events");
		return;
	}
	o = json_object(d, root, "events");
	json_number(d, o, "missed_tracepoints", s->events.missed_tracepoints);
	list = json_array(d, o, "rows");
	for (uint32_t i = 0; i < s->events.n; i++) {
		const struct event_row *row = &s->events.rows[i];
		cJSON *r = json_element(d, list);

		json_text(d, r, "event", row->event);
		json_text(d, r, "part", row->part);
		json_text(d, r, "profile", row->profile);
		json_text(d, r, "unit", row->unit);
		json_number(d, r, "count", row->count);
		json_number(d, r, "samples", row->samples);
		json_number(d, r, "on_stacks", row->on_stacks);
		json_number(d, r, "on_stacks_error", row->on_stacks_error);
		json_number(d, r, "period", row->period);
		json_number(d, r, "one_in", row->one_in);
		json_number(d, r, "missed", row->missed);
		json_real(d, r, "stopped_s", row->stopped_s);
		json_text(d, r, "function", row->function);
		json_text(d, r, "module", row->module);
		json_number(d, r, "function_value", row->function_value);
		json_text(d, r, "why", row->why ? row->why : "");
	}
}
