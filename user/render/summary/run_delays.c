/*
 * Who ran while threads waited for a CPU.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

enum { ROWS_SHOWN = 8 };
#define SHOWN_PART 0.01 /* of all of it */
#define WORTH_PART 0.01 /* of thread time: what is less is not worth a table */

static void put_head(const struct run_summary *s, struct sink *out)
{
	const struct run_delay_sums *d = &s->run_delays.sums;
	int64_t others = d->total_ns - d->own_ns - d->idle_ns - d->elsewhere_ns - d->unknown_ns;
	char text[500];

	snprintf(
		text, sizeof(text),
		"%s runnable: others ran %s, its own threads %s; CPU idle %s, queue of another CPU %s, "
		"unknown %s",
		unit_ns(d->total_ns).s, unit_percent(others, d->total_ns).s,
		unit_percent(d->own_ns, d->total_ns).s, unit_percent(d->idle_ns, d->total_ns).s,
		unit_percent(d->elsewhere_ns, d->total_ns).s,
		unit_percent(d->unknown_ns, d->total_ns).s);
	cells_labelled(out, "Run queue", text);
}

static void put_process(const char *comm, uint32_t pid, const char *container, size_t width,
			bool pad, struct sink *out)
{
	char text[200], number[24] = " [kernel]";

	if (pid)
		snprintf(number, sizeof(number), " (%u)", pid);
	snprintf(text, sizeof(text), "%.40s%s%s%.60s", *comm ? comm : "[unknown]", number,
		 *container ? " in " : "", container);
	cells_name(out, text, width, pad);
}

void section_run_delays_text(const struct run_summary *s, struct sink *out)
{
	int64_t total = s->run_delays.sums.total_ns;

	if (!s->run_delays.n || (double)total < WORTH_PART * (double)s->time.wall_ns)
		return;
	put_head(s, out);
	cells_right(out, "time", 10);
	cells_right(out, "runs", 12);
	sink_puts(out, "  ");
	cells_left(out, "waited", 34);
	sink_puts(out, "while this ran\n");
	for (uint32_t i = 0; i < s->run_delays.n && i < ROWS_SHOWN; i++) {
		const struct run_delay_row *row = &s->run_delays.rows[i];

		if ((double)row->ns < SHOWN_PART * (double)total)
			break; /* sorted */
		cells_right(out, unit_ns(row->ns).s, 10);
		cells_right(out, unit_count(row->count).s, 12);
		sink_puts(out, "  ");
		put_process(row->comm, row->pid, row->container, 32, true, out);
		sink_puts(out, "  ");
		if (row->own)
			sink_puts(out, "its own threads");
		else
			put_process(row->by_comm, row->by_pid, row->by_container, CELLS_WIDTH - 58,
				    false, out);
		sink_puts(out, "\n");
	}
}

void section_run_delays_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct run_delay_sums *sums = &s->run_delays.sums;
	cJSON *o, *list;

	if (!s->run_delays.known) {
		json_null(d, root, "run_queue");
		return;
	}
	o = json_object(d, root, "run_queue");
	json_number(d, o, "delay_ns", sums->total_ns);
	json_number(d, o, "own_threads_ns", sums->own_ns);
	json_number(d, o, "idle_ns", sums->idle_ns);
	json_number(d, o, "other_queue_ns", sums->elsewhere_ns);
	json_number(d, o, "unknown_ns", sums->unknown_ns);
	list = json_array(d, o, "rows");
	for (uint32_t i = 0; i < s->run_delays.n; i++) {
		const struct run_delay_row *row = &s->run_delays.rows[i];
		cJSON *r = json_element(d, list);

		json_number(d, r, "pid", row->pid);
		json_text(d, r, "comm", row->comm);
		json_text(d, r, "container", row->container);
		json_number(d, r, "ran_pid", row->by_pid);
		json_text(d, r, "ran_comm", row->by_comm);
		json_text(d, r, "ran_container", row->by_container);
		json_number(d, r, "delay_ns", row->ns);
		json_number(d, r, "runs", row->count);
	}
}
