/*
 * Who ended waits.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

enum { ROWS_SHOWN = 10, IDLE_SHOWN = 4 };
#define SHOWN_PART 0.001 /* of the longest */

static void put_head(const struct run_summary *s, struct sink *out)
{
	int64_t total = s->wakers.sums.total_ns;
	int64_t interrupt = s->wakers.sums.interrupt_ns, unknown = s->wakers.sums.unknown_ns;
	int64_t other = s->wakers.sums.other_ns;
	char text[400];

	snprintf(
		text, sizeof(text),
		"who ended waits of %s: threads profiled %s, other threads %s, interrupts %s, unknown %s",
		unit_ns(total).s, unit_percent(total - interrupt - unknown - other, total).s,
		unit_percent(other, total).s, unit_percent(interrupt, total).s,
		unit_percent(unknown, total).s);
	cells_labelled(out, "Wakers", text);
	cells_right(out, "time", 10);
	cells_right(out, "count", 12);
	sink_puts(out, "  ");
	cells_left(out, "waiting in", 32);
	sink_puts(out, "ended by\n");
}

static void put_row(const struct waker_row *row, struct sink *out)
{
	const struct site_row *w = &row->wait;
	char name[80], by[200];

	snprintf(name, sizeof(name), "%.40s%s[no user stack]", w->comm ? w->comm : "",
		 w->comm && *w->comm ? " " : "");
	snprintf(by, sizeof(by), "%.100s (%.40s)", *row->by ? row->by : "[unknown]", row->waker);
	cells_right(out, unit_ns(w->value).s, 10);
	cells_right(out, unit_count(w->count).s, 12);
	sink_puts(out, "  ");
	cells_name(out, *w->function ? w->function : name, 30, true);
	sink_puts(out, "  ");
	cells_name(out, by, CELLS_WIDTH - 56, false);
	sink_puts(out, "\n");
}

static void put_rows(const struct run_summary *s, struct sink *out, bool idle)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < s->wakers.n; i++) {
		const struct waker_row *row = &s->wakers.rows[i];

		if ((double)row->wait.value < SHOWN_PART * (double)s->wakers.rows[0].wait.value)
			break; /* sorted */
		if (summary_wait_is_idle(s, &row->wait) != idle ||
		    shown == (idle ? IDLE_SHOWN : ROWS_SHOWN))
			continue;
		if (idle && !shown)
			sink_puts(out, "  probably idle\n");
		shown++;
		put_row(row, out);
	}
}

void section_wakers_text(const struct run_summary *s, struct sink *out)
{
	if (!s->wakers.n)
		return;
	put_head(s, out);
	put_rows(s, out, false);
	put_rows(s, out, true);
}

void section_wakers_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o, *list;

	if (!s->wakers.known) {
		json_null(d, root, "wakers");
		return;
	}
	o = json_object(d, root, "wakers");
	json_number(d, o, "blocked_ns", s->wakers.sums.total_ns);
	json_number(d, o, "interrupts_ns", s->wakers.sums.interrupt_ns);
	json_number(d, o, "others_ns", s->wakers.sums.other_ns);
	json_number(d, o, "unknown_ns", s->wakers.sums.unknown_ns);
	list = json_array(d, o, "rows");
	for (uint32_t i = 0; i < s->wakers.n; i++) {
		const struct waker_row *row = &s->wakers.rows[i];
		cJSON *r = json_element(d, list);

		json_text(d, r, "function", row->wait.function);
		json_text(d, r, "module", row->wait.module);
		json_text(d, r, "comm", row->wait.comm ? row->wait.comm : "");
		json_text(d, r, "kind", wait_kind_name(row->wait.wait));
		json_truth(d, r, "idle", summary_wait_is_idle(s, &row->wait));
		json_number(d, r, "blocked_ns", row->wait.value);
		json_number(d, r, "wakeups", row->wait.count);
		json_text(d, r, "waker", row->waker);
		json_text(d, r, "waker_function", row->by);
		json_text(d, r, "waker_module", row->by_module);
	}
}
