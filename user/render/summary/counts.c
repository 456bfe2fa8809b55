/*
 * Functions whose calls were counted and timed.
 */
#include "analyse/counts.h"

#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

enum { ROWS_TEXT = 12 };

/* What --max-overhead left of it. */
static void put_given_up(const struct count_row *row, struct sink *out)
{
	char text[400], timed[120] = "", counted[120] = "";

	if (row->timed_s > 0)
		snprintf(timed, sizeof(timed), "timed for %.1f s (%s calls)", row->timed_s,
			 unit_count(row->returned).s);
	if (row->counted_s > 0)
		snprintf(counted, sizeof(counted),
			 "counted for %.1f s: there were more calls than that", row->counted_s);
	if (!*timed && !*counted)
		return;
	snprintf(text, sizeof(text), "%.100s: to keep within --max-overhead, %s%s%s", row->function,
		 timed, *timed && *counted ? ", and " : "", counted);
	cells_wrapped(out, text, 2, false);
}

static void put_notes(const struct count_row *row, struct sink *out)
{
	char text[400], parts[200] = "";
	int n = 0;

	put_given_up(row, out);
	if (row->untimed) {
		snprintf(text, sizeof(text), "%.100s: calls are counted, not timed: %s",
			 row->function, row->untimed);
		cells_wrapped(out, text, 2, false);
		return;
	}
	if (row->outer < row->returned)
		n += snprintf(parts + n, sizeof(parts) - (size_t)n,
			      ", %s within another one (time is of the outermost)",
			      unit_count(row->returned - row->outer).s);
	if (row->left)
		n += snprintf(parts + n, sizeof(parts) - (size_t)n, ", %s never return",
			      unit_count(row->left).s);
	if (row->open)
		n += snprintf(parts + n, sizeof(parts) - (size_t)n, ", %s in progress at the end",
			      unit_count(row->open).s);
	if (row->lost)
		n += snprintf(parts + n, sizeof(parts) - (size_t)n, ", %s lost for want of room",
			      unit_count(row->lost).s);
	if (row->timed_s <= 0 && count_unseen(row))
		n += snprintf(parts + n, sizeof(parts) - (size_t)n,
			      ", %s whose return was not seen", unit_count(count_unseen(row)).s);
	if (!n)
		return;
	snprintf(text, sizeof(text), "%.100s: of its calls%s", row->function, parts + 1);
	cells_wrapped(out, text, 2, false);
}

static void put_row(const struct count_row *row, struct sink *out)
{
	bool timed = row->returned > 0;

	cells_right(out, unit_count(row->calls).s, 13);
	cells_right(out, timed ? unit_ns(row->outer_ns).s : "-", 10);
	cells_right(out, timed ? unit_ns(row->shortest_ns).s : "-", 10);
	cells_right(out,
		    timed ? unit_ns(histogram_quantile(row->parts, row->longest_ns, 0.5)).s : "-",
		    10);
	cells_right(out,
		    timed ? unit_ns(histogram_quantile(row->parts, row->longest_ns, 0.99)).s : "-",
		    10);
	cells_right(out, timed ? unit_ns(row->longest_ns).s : "-", 10);
	sink_puts(out, "  ");
	cells_name(out, row->function, 32, false);
	sink_puts(out, "\n");
}

static void put_head(struct sink *out)
{
	static const char *const columns[] = { "time", "shortest", "p50", "p99", "longest" };

	cells_label(out, "Calls");
	cells_right(out, "calls", 13);
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		cells_right(out, columns[i], 10);
	sink_puts(out, "  function\n");
}

void section_counts_text(const struct run_summary *s, struct sink *out)
{
	if (!s->counts.n)
		return;
	put_head(out);
	for (uint32_t i = 0; i < s->counts.n && i < ROWS_TEXT; i++)
		put_row(&s->counts.rows[i], out);
	for (uint32_t i = 0; i < s->counts.n && i < ROWS_TEXT; i++)
		put_notes(&s->counts.rows[i], out);
	cells_wrapped(
		out,
		"in each time is what the two probes of a call take: at most the function's shortest",
		2, false);
}

void section_counts_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	for (uint32_t i = 0; i < s->counts.n && i < rows; i++) {
		if (!i)
			put_head(out);
		put_row(&s->counts.rows[i], out);
	}
}

void section_counts_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list, *parts;

	if (!s->counts.known) {
		json_null(d, root, "counts");
		return;
	}
	list = json_array(d, root, "counts");
	for (uint32_t i = 0; i < s->counts.n; i++) {
		const struct count_row *row = &s->counts.rows[i];
		cJSON *r = json_element(d, list);

		json_text(d, r, "function", row->function);
		json_text(d, r, "profile", row->profile);
		json_number(d, r, "calls", row->calls);
		json_number(d, r, "returned", row->returned);
		json_number(d, r, "left", row->left);
		json_number(d, r, "in_progress", row->open);
		json_number(d, r, "lost", row->lost);
		json_number(d, r, "time_ns", row->ns);
		json_number(d, r, "outermost", row->outer);
		json_number(d, r, "outermost_ns", row->outer_ns);
		json_number(d, r, "shortest_ns", row->shortest_ns);
		json_number(d, r, "longest_ns", row->longest_ns);
		json_number(d, r, "p50_ns", histogram_quantile(row->parts, row->longest_ns, 0.5));
		json_number(d, r, "p99_ns", histogram_quantile(row->parts, row->longest_ns, 0.99));
		json_real(d, r, "counted_s", row->counted_s);
		json_real(d, r, "timed_s", row->timed_s);
		json_text(d, r, "untimed", row->untimed ? row->untimed : "");
		parts = json_array(d, r, "histogram");
		for (int p = 0; p < SYSCALL_HISTOGRAM; p++) {
			cJSON *part;

			if (!row->parts[p])
				continue;
			part = json_element(d, parts);
			json_number(d, part, "from_ns", p ? 64LL << p : 0);
			json_number(d, part, "calls", row->parts[p]);
		}
	}
}
