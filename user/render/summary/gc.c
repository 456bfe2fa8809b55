/*
 * Garbage collection, by what the runtimes count of it.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 640 };

struct text {
	char s[TEXT_MAX];
	size_t len;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->s + t->len, sizeof(t->s) - t->len, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
	if (t->len >= sizeof(t->s))
		t->len = sizeof(t->s) - 1;
}

/* Percent of the lives of the processes while they were looked at. */
static double percent(const struct gc_row *row, int64_t ns)
{
	return row->seen_ns > 0 ? 100 * (double)ns / (double)row->seen_ns : 0;
}

static void put_kinds(struct text *t, const struct gc_row *row)
{
	const char *before = " (";

	for (uint32_t i = 0; i < row->n_kinds; i++) {
		if (!row->kinds[i].count)
			continue;
		put(t, "%s%s: %s", before, row->kinds[i].name,
		    unit_count((int64_t)row->kinds[i].count).s);
		before = ", ";
	}
	if (*before == ',')
		put(t, ")");
}

static void put_time(struct text *t, const struct gc_row *row)
{
	struct gc_time_of time;

	if (!gc_row_time(row, &time))
		return;
	if (time.estimated)
		put(t, ", about %s, %.1f%% of the time (95%% interval %.1f to %.1f%%)",
		    unit_ns(time.ns).s, percent(row, time.ns), percent(row, time.low_ns),
		    percent(row, time.high_ns));
	else
		put(t, ", %s, %.1f%% of the time", unit_ns(time.ns).s, percent(row, time.ns));
	if (row->longest_ns != GC_UNKNOWN)
		put(t, ", longest pause%s %s", row->longest_exact ? "" : " seen",
		    unit_ns(row->longest_ns).s);
}

static void put_row(const struct gc_row *row, struct sink *out)
{
	struct text t = { .len = 0 };

	put(&t, "%s", row->runtime);
	if (row->processes > 1)
		put(&t, ", %s processes", unit_count(row->processes).s);
	put(&t, ": %s collection%s", unit_count((int64_t)row->count).s, row->count == 1 ? "" : "s");
	put_kinds(&t, row);
	put_time(&t, row);
	if (row->live_bytes != GC_UNKNOWN)
		put(&t, "; %s alive after the last", unit_bytes(row->live_bytes).s);
	if (row->heap_bytes != GC_UNKNOWN)
		put(&t, ", %s held for the heap", unit_bytes(row->heap_bytes).s);
	cells_wrapped(out, t.s, 2, false);
	if (row->untested)
		cells_wrapped(
			out,
			"memscope was never tried with this version: compare with what the program "
			"itself says",
			4, false);
	if (row->missing && *row->missing && row->count)
		cells_wrapped(out, row->missing, 4, false);
}

void section_gc_text(const struct run_summary *s, struct sink *out)
{
	if (!s->gc.n)
		return;
	sink_puts(out, "\nGarbage collection\n");
	for (uint32_t i = 0; i < s->gc.n; i++)
		put_row(&s->gc.rows[i], out);
}

static void json_ns(struct json_doc *d, cJSON *o, const char *key, int64_t value)
{
	if (value == GC_UNKNOWN)
		json_null(d, o, key);
	else
		json_number(d, o, key, value);
}

void section_gc_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "gc");

	for (uint32_t i = 0; i < s->gc.n; i++) {
		const struct gc_row *row = &s->gc.rows[i];
		cJSON *o = json_element(d, list), *kinds;
		struct gc_time_of time = { .ns = GC_UNKNOWN,
					   .low_ns = GC_UNKNOWN,
					   .high_ns = GC_UNKNOWN };

		gc_row_time(row, &time);
		json_text(d, o, "runtime", row->runtime);
		json_truth(d, o, "untested", row->untested);
		json_count(d, o, "processes", row->processes);
		json_count(d, o, "count", row->count);
		json_count(d, o, "major_count", row->major);
		kinds = json_object(d, o, "kinds");
		for (uint32_t k = 0; k < row->n_kinds; k++)
			json_count(d, kinds, row->kinds[k].name, row->kinds[k].count);
		json_truth(d, o, "estimated", time.estimated);
		json_ns(d, o, "time_ns", time.ns);
		json_ns(d, o, "time_low_ns", time.low_ns);
		json_ns(d, o, "time_high_ns", time.high_ns);
		json_number(d, o, "seen_ns", row->seen_ns);
		json_count(d, o, "looks", row->looks);
		json_count(d, o, "looks_collecting", row->collecting);
		json_ns(d, o, "longest_pause_ns", row->longest_ns);
		json_truth(d, o, "longest_pause_exact", row->longest_exact);
		json_ns(d, o, "live_bytes", row->live_bytes);
		json_ns(d, o, "heap_bytes", row->heap_bytes);
		json_text(d, o, "missing", row->missing && *row->missing ? row->missing : NULL);
	}
}
