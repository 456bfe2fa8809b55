#include "render/tables/trend_report.h"

#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#define LABEL 13

static const struct {
	const char *label, *key;
} columns[N_MEM_COLUMNS] = {
	[MEM_COLUMN_RSS] = { "RSS", "rss_kb" },
	[MEM_COLUMN_ANONYMOUS] = { "anonymous", "anonymous_kb" },
	[MEM_COLUMN_FILE] = { "file", "file_kb" },
	[MEM_COLUMN_SWAP] = { "swap", "swap_kb" },
	[MEM_COLUMN_PSS] = { "PSS", "pss_kb" },
	[MEM_COLUMN_VSZ] = { "VSZ", "vsz_kb" },
	[MEM_COLUMN_GROUP] = { "cgroup", "group_kb" },
	[MEM_COLUMN_GC_LIVE] = { "GC live", "gc_live_kb" },
	[MEM_COLUMN_CPU] = { "CPU", "cpu_percent" },
};

/* A value of a column as people read it. */
static struct unit_text shown(int column, double v)
{
	struct unit_text t;

	if (column != MEM_COLUMN_CPU)
		return unit_bytes((int64_t)llround(v * 1024));
	snprintf(t.s, sizeof(t.s), "%.1f%%", v);
	return t;
}

static struct unit_text moment(double s)
{
	time_t sec = (time_t)s;
	struct unit_text t;
	struct tm tm;

	localtime_r(&sec, &tm);
	strftime(t.s, sizeof(t.s), "%Y-%m-%d %H:%M:%S", &tm);
	return t;
}

static struct unit_text signed_kb(double kb)
{
	struct unit_text t, size = unit_bytes((int64_t)llround(fabs(kb) * 1024));

	snprintf(t.s, sizeof(t.s), "%c%.40s", kb < 0 ? '-' : '+', size.s);
	return t;
}

/* --- one log --- */

static void put_facts(const struct mem_trend *t, struct sink *out)
{
	sink_printf(out, "%-*s %12s %12s %12s %12s %12s\n", LABEL, "", "first", "last", "min",
		    "mean", "max");
	for (int c = 0; c < N_MEM_COLUMNS; c++) {
		const struct series_facts *f = &t->column[c].facts;

		if (t->column[c].known)
			sink_printf(out, "%-*s %12s %12s %12s %12s %12s\n", LABEL, columns[c].label,
				    shown(c, f->first).s, shown(c, f->last).s, shown(c, f->min).s,
				    shown(c, f->mean).s, shown(c, f->max).s);
	}
}

static void put_slope(const struct mem_trend *t, struct sink *out)
{
	const struct series_line *l = &t->shape.all;

	if (isinf(l->slope_low)) {
		sink_printf(out, "%-*s not known: three rows at different times are needed\n",
			    LABEL, "slope");
		return;
	}
	sink_printf(out, "%-*s %s an hour (95 %% interval %s), r2 %.3f\n", LABEL, "slope",
		    signed_kb(l->slope * 3600).s,
		    unit_bytes_range(llround(l->slope_low * 3600 * 1024),
				     llround(l->slope_high * 3600 * 1024), true)
			    .s,
		    l->r2);
}

static void put_changes(const struct mem_trend *t, struct sink *out)
{
	sink_printf(out, "%-*s", LABEL, "changes");
	for (uint32_t i = 0; i < t->shape.n_changes; i++)
		sink_printf(out, "%s %s", i ? "," : "",
			    moment(t->begin_s + t->shape.changes_s[i]).s);
	sink_puts(out, t->shape.n_changes ? "\n" : " none\n");
}

static void put_verdicts(const struct mem_trend *t, struct sink *out)
{
	char reason[256];

	trend_shape_reason(&t->shape, reason, sizeof(reason));
	sink_printf(out, "%-*s %s: %s\n", LABEL, "verdict", trend_shape_name(t->shape.kind),
		    reason);
	sink_printf(out, "%-*s %s: RSS %+.1f%%%s; of these two rows alone\n", LABEL,
		    "first to last", plain_words(t->plain.kind), t->plain.percent,
		    t->plain.kind == PLAIN_WARNING   ? ", over 50%"
		    : t->plain.kind == PLAIN_MONITOR ? ", between 20 and 50%"
						     : ", under 20%");
}

void trend_report_text(const struct mem_trend *t, const char *name, struct sink *out)
{
	const struct series_facts *rss = &t->column[MEM_COLUMN_RSS].facts;

	sink_printf(out, "%s: %s rows from %s to %s\n", name, unit_count(t->n).s,
		    moment(t->begin_s).s, moment(t->end_s).s);
	if (t->skipped)
		sink_printf(out,
			    "%s line%s left out, the first is line %s: not understood, or earlier "
			    "than the one before\n",
			    unit_count((int64_t)t->skipped).s, t->skipped == 1 ? "" : "s",
			    unit_count((int64_t)t->first_skipped).s);
	sink_puts(out, "\n");
	put_facts(t, out);
	sink_puts(out, "\n");
	sink_printf(out, "%-*s %s (%+.1f%%)\n", LABEL, "growth",
		    signed_kb(rss->last - rss->first).s, t->plain.percent);
	put_slope(t, out);
	put_changes(t, out);
	put_verdicts(t, out);
	if (t->cpu_kind == CPU_OF_LIFE)
		sink_printf(out,
			    "%-*s an average over the life of the process, as ps prints it: not "
			    "that of each interval\n",
			    LABEL, "cpu_percent");
}

/* --- several --- */

static void put_pair(struct sink *out, const char *label, int column, double a, double b,
		     bool in_percent, bool comparable)
{
	struct unit_text change;

	if (!comparable)
		snprintf(change.s, sizeof(change.s), "-");
	else if (column == MEM_COLUMN_CPU)
		snprintf(change.s, sizeof(change.s), "%+.1f%%", b - a);
	else
		change = signed_kb(b - a);
	sink_printf(out, "%-*s %12s %12s %12s", 2 * LABEL - 4, label, shown(column, a).s,
		    shown(column, b).s, change.s);
	if (in_percent && column != MEM_COLUMN_CPU && a > 0)
		sink_printf(out, " (%+.1f%%)", 100 * (b - a) / a);
	sink_puts(out, "\n");
}

/* Is the CPU of one of them an average over a life, and that of another of each interval? */
static bool cpu_differs(const struct mem_trend *t, uint32_t n)
{
	bool of_life = false, of_interval = false;

	for (uint32_t i = 0; i < n; i++) {
		of_life |= t[i].cpu_kind == CPU_OF_LIFE;
		of_interval |= t[i].cpu_kind == CPU_OF_INTERVAL;
	}
	return of_life && of_interval;
}

static void put_cpu_kinds(const struct mem_trend *t, const char *const *names, uint32_t n,
			  struct sink *out)
{
	if (!cpu_differs(t, n))
		return;
	sink_puts(out, "\nThe CPU percentages cannot be compared:\n");
	for (uint32_t i = 0; i < n; i++)
		if (t[i].cpu_kind != CPU_UNKNOWN)
			sink_printf(
				out, "  %s: %s\n", names[i],
				t[i].cpu_kind == CPU_OF_LIFE
					? "an average over the life of the process, as ps prints it"
					: "of each interval");
}

static void put_two(const struct mem_trend *t, const char *const *names, struct sink *out)
{
	bool cpu_comparable = !cpu_differs(t, 2);

	for (int i = 0; i < 2; i++)
		sink_printf(out, "%s: %s, %s rows over %.0f s, %s\n", i ? "after " : "before",
			    names[i], unit_count(t[i].n).s, t[i].end_s - t[i].begin_s,
			    trend_shape_name(t[i].shape.kind));
	sink_printf(out, "\n%-*s %12s %12s %12s\n", 2 * LABEL - 4, "", "before", "after", "change");
	for (int c = 0; c < N_MEM_COLUMNS; c++) {
		const struct series_facts *a = &t[0].column[c].facts, *b = &t[1].column[c].facts;
		bool comparable = c != MEM_COLUMN_CPU || cpu_comparable;
		char label[32];

		if (!t[0].column[c].known || !t[1].column[c].known)
			continue;
		snprintf(label, sizeof(label), "%s, mean", columns[c].label);
		put_pair(out, label, c, a->mean, b->mean, true, comparable);
		snprintf(label, sizeof(label), "%s, max", columns[c].label);
		put_pair(out, label, c, a->max, b->max, true, comparable);
	}
	put_pair(out, "RSS, an hour", MEM_COLUMN_RSS, t[0].shape.all.slope * 3600,
		 t[1].shape.all.slope * 3600, false, true);
}

static struct unit_text in_percent_of(double base, double v)
{
	struct unit_text t = { "-" };

	if (base > 0)
		snprintf(t.s, sizeof(t.s), "%+.1f%%", 100 * (v - base) / base);
	return t;
}

/* A line for each log; changes are against the first. */
static void put_many(const struct mem_trend *t, const char *const *names, uint32_t n,
		     struct sink *out)
{
	double base = t[0].column[MEM_COLUMN_RSS].facts.mean;

	sink_printf(out, "%8s %9s %12s %9s %12s %14s %11s  %-9s  %s\n", "rows", "seconds",
		    "RSS, mean", "change", "RSS, max", "RSS, an hour", "CPU, mean", "shape", "log");
	for (uint32_t i = 0; i < n; i++) {
		const struct series_facts *rss = &t[i].column[MEM_COLUMN_RSS].facts;
		const struct series_facts *cpu = &t[i].column[MEM_COLUMN_CPU].facts;

		sink_printf(
			out, "%8s %9.0f %12s %9s %12s %14s %11s  %-9s  %s\n", unit_count(t[i].n).s,
			t[i].end_s - t[i].begin_s, shown(MEM_COLUMN_RSS, rss->mean).s,
			i ? in_percent_of(base, rss->mean).s : "",
			shown(MEM_COLUMN_RSS, rss->max).s,
			isinf(t[i].shape.all.slope_low) ? "-"
							: signed_kb(t[i].shape.all.slope * 3600).s,
			t[i].column[MEM_COLUMN_CPU].known ? shown(MEM_COLUMN_CPU, cpu->mean).s
							  : "-",
			trend_shape_name(t[i].shape.kind), names[i]);
	}
}

void trend_report_compare(const struct mem_trend *t, const char *const *names, uint32_t n,
			  struct sink *out)
{
	if (n == 2)
		put_two(t, names, out);
	else
		put_many(t, names, n, out);
	put_cpu_kinds(t, names, n, out);
}

/* --- for programs --- */

static cJSON *facts_json(const struct series_facts *f)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "first", f->first);
	cJSON_AddNumberToObject(o, "last", f->last);
	cJSON_AddNumberToObject(o, "min", f->min);
	cJSON_AddNumberToObject(o, "max", f->max);
	cJSON_AddNumberToObject(o, "mean", f->mean);
	return o;
}

static cJSON *line_json(const struct series_line *l)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "slope_kb_s", l->slope);
	/* cJSON writes what is not finite as null. */
	cJSON_AddNumberToObject(o, "low", l->slope_low);
	cJSON_AddNumberToObject(o, "high", l->slope_high);
	cJSON_AddNumberToObject(o, "r2", l->r2);
	return o;
}

static cJSON *log_json(const struct mem_trend *t, const char *name)
{
	cJSON *o = cJSON_CreateObject(), *changes = cJSON_CreateArray();
	char reason[256];

	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddNumberToObject(o, "rows", t->n);
	cJSON_AddNumberToObject(o, "skipped", (double)t->skipped);
	cJSON_AddNumberToObject(o, "begin_s", t->begin_s);
	cJSON_AddNumberToObject(o, "end_s", t->end_s);
	for (int c = 0; c < N_MEM_COLUMNS; c++)
		if (t->column[c].known)
			cJSON_AddItemToObject(o, columns[c].key, facts_json(&t->column[c].facts));
	if (cpu_kind_name(t->cpu_kind))
		cJSON_AddStringToObject(o, "cpu_percent_is_of", cpu_kind_name(t->cpu_kind));
	cJSON_AddItemToObject(o, "line", line_json(&t->shape.all));
	for (uint32_t i = 0; i < t->shape.n_changes; i++)
		cJSON_AddItemToArray(changes,
				     cJSON_CreateNumber(t->begin_s + t->shape.changes_s[i]));
	cJSON_AddItemToObject(o, "changes_s", changes);
	cJSON_AddStringToObject(o, "endpoint_rule", plain_name(t->plain.kind));
	cJSON_AddNumberToObject(o, "endpoint_percent", t->plain.percent);
	cJSON_AddStringToObject(o, "trend_shape", trend_shape_name(t->shape.kind));
	trend_shape_reason(&t->shape, reason, sizeof(reason));
	cJSON_AddStringToObject(o, "reason", reason);
	return o;
}

int trend_report_json(const struct mem_trend *t, const char *const *names, uint32_t n,
		      struct sink *out, struct err *e)
{
	cJSON *all = cJSON_CreateArray();
	char *text;

	for (uint32_t i = 0; i < n; i++)
		cJSON_AddItemToArray(all, log_json(&t[i], names[i]));
	text = cJSON_Print(all);
	cJSON_Delete(all);
	if (!text)
		return err_set(e, -ENOMEM, "out of memory for the report");
	sink_puts(out, text);
	sink_puts(out, "\n");
	cJSON_free(text);
	return 0;
}
