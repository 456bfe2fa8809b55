#include "render/trend_report.h"

#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#define LABEL 12

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
	const struct series_line *l = &t->course.all;

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
	for (uint32_t i = 0; i < t->course.n_changes; i++)
		sink_printf(out, "%s %s", i ? "," : "",
			    moment(t->begin_s + t->course.changes_s[i]).s);
	sink_puts(out, t->course.n_changes ? "\n" : " none\n");
}

static void put_verdicts(const struct mem_trend *t, struct sink *out)
{
	char reason[256];

	sink_printf(out, "%-*s %s: RSS %+.1f%% from first to last%s\n", LABEL, "plain rule",
		    plain_words(t->plain.kind), t->plain.percent,
		    t->plain.kind == PLAIN_WARNING   ? ", which is over 50%"
		    : t->plain.kind == PLAIN_MONITOR ? ", which is between 20 and 50%"
						     : ", which is under 20%");
	course_reason(&t->course, reason, sizeof(reason));
	sink_printf(out, "%-*s %s: %s\n", LABEL, "all points", course_name(t->course.kind), reason);
}

void trend_report_text(const struct mem_trend *t, const char *name, struct sink *out)
{
	const struct series_facts *rss = &t->column[MEM_COLUMN_RSS].facts;

	sink_printf(out, "%s: %s rows from %s to %s\n", name, unit_count(t->n).s,
		    moment(t->begin_s).s, moment(t->end_s).s);
	if (t->skipped)
		sink_printf(out,
			    "%s lines left out, the first is line %s: not understood, or earlier "
			    "than the one before\n",
			    unit_count((int64_t)t->skipped).s,
			    unit_count((int64_t)t->first_skipped).s);
	sink_puts(out, "\n");
	put_facts(t, out);
	sink_puts(out, "\n");
	sink_printf(out, "%-*s %s (%+.1f%%)\n", LABEL, "growth",
		    signed_kb(rss->last - rss->first).s, t->plain.percent);
	put_slope(t, out);
	put_changes(t, out);
	put_verdicts(t, out);
}

/* --- two --- */

static void put_pair(struct sink *out, const char *label, int column, double a, double b,
		     bool in_percent)
{
	struct unit_text change;

	if (column == MEM_COLUMN_CPU)
		snprintf(change.s, sizeof(change.s), "%+.1f%%", b - a);
	else
		change = signed_kb(b - a);
	sink_printf(out, "%-*s %12s %12s %12s", 2 * LABEL - 4, label, shown(column, a).s,
		    shown(column, b).s, change.s);
	if (in_percent && column != MEM_COLUMN_CPU && a > 0)
		sink_printf(out, " (%+.1f%%)", 100 * (b - a) / a);
	sink_puts(out, "\n");
}

void trend_report_compare(const struct mem_trend *before, const char *before_name,
			  const struct mem_trend *after, const char *after_name, struct sink *out)
{
	const struct mem_trend *both[] = { before, after };
	const char *const names[] = { before_name, after_name };

	for (int i = 0; i < 2; i++)
		sink_printf(out, "%s: %s, %s rows over %.0f s, %s\n", i ? "after " : "before",
			    names[i], unit_count(both[i]->n).s, both[i]->end_s - both[i]->begin_s,
			    course_name(both[i]->course.kind));
	sink_printf(out, "\n%-*s %12s %12s %12s\n", 2 * LABEL - 4, "", "before", "after", "change");
	for (int c = 0; c < N_MEM_COLUMNS; c++) {
		const struct series_facts *a = &before->column[c].facts;
		const struct series_facts *b = &after->column[c].facts;
		char label[32];

		if (!before->column[c].known || !after->column[c].known)
			continue;
		snprintf(label, sizeof(label), "%s, mean", columns[c].label);
		put_pair(out, label, c, a->mean, b->mean, true);
		snprintf(label, sizeof(label), "%s, max", columns[c].label);
		put_pair(out, label, c, a->max, b->max, true);
	}
	put_pair(out, "RSS, an hour", MEM_COLUMN_RSS, before->course.all.slope * 3600,
		 after->course.all.slope * 3600, false);
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
	cJSON_AddItemToObject(o, "line", line_json(&t->course.all));
	for (uint32_t i = 0; i < t->course.n_changes; i++)
		cJSON_AddItemToArray(changes,
				     cJSON_CreateNumber(t->begin_s + t->course.changes_s[i]));
	cJSON_AddItemToObject(o, "changes_s", changes);
	cJSON_AddStringToObject(o, "plain", plain_name(t->plain.kind));
	cJSON_AddNumberToObject(o, "plain_percent", t->plain.percent);
	cJSON_AddStringToObject(o, "course", course_name(t->course.kind));
	course_reason(&t->course, reason, sizeof(reason));
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
