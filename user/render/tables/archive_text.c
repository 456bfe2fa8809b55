#include "render/tables/archive_text.h"

#include "base/moment.h"
#include "base/units.h"
#include "render/formats/text.h"
#include "render/json_doc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FOLDERS_SHOWN = 20, NAMES_SHOWN = 10 };

#define NS 1000000000LL

/* "2:00", "1:02:03"; what is not whole seconds is rounded. */
static struct unit_text clock_text(int64_t ns)
{
	long long s = (ns + NS / 2) / NS;
	struct unit_text t;

	if (s >= 3600)
		snprintf(t.s, sizeof(t.s), "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(t.s, sizeof(t.s), "%lld:%02lld", s / 60, s % 60);
	return t;
}

/* Names of files are others' bytes. */
static void put_clean(struct sink *out, const char *text)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	text_add(&b, TEXT_PLAIN, text, 300);
	sink_puts(out, b.s ? b.s : "");
}

static const struct archive_row *last_row(const struct archive_view *v)
{
	return &v->rows[v->n_rows - 1];
}

static void put_head(const struct archive_view *v, struct sink *out)
{
	put_clean(out, v->dir);
	if (v->container) {
		sink_puts(out, ", container ");
		put_clean(out, v->container);
	}
	sink_puts(out, v->at_work ? " (a run writes here)\n" : "\n");
	if (!v->n_rows) {
		sink_puts(out, "  no windows\n");
		return;
	}
	sink_printf(
		out, "  windows  %s, %s to %s%s", unit_count(v->n_rows).s,
		moment_short(v->rows[0].begin_ns, 0).s,
		moment_short(last_row(v)->end_ns ? last_row(v)->end_ns : last_row(v)->begin_ns, 0)
			.s,
		v->n_triggered ? "" : "\n");
	if (v->n_triggered)
		sink_printf(out, "; %s of them by triggers\n", unit_count(v->n_triggered).s);
	sink_printf(out, "  size     %s in %s file%s\n", unit_bytes((int64_t)v->bytes).s,
		    unit_count((int64_t)v->files).s, v->files == 1 ? "" : "s");
	for (uint32_t i = 0; v->labels && v->labels[i]; i++) {
		sink_puts(out, i ? ", " : "  labels   ");
		put_clean(out, v->labels[i]);
	}
	sink_puts(out, v->labels && v->labels[0] ? "\n" : "");
}

static void put_gaps(const struct archive_view *v, struct sink *out)
{
	const struct archive_gap *longest = v->gaps;

	for (uint32_t i = 0; i < v->n_gaps; i++)
		if (v->gaps[i].to_ns - v->gaps[i].from_ns > longest->to_ns - longest->from_ns)
			longest = &v->gaps[i];
	if (!v->n_gaps)
		return;
	sink_printf(out, "  gaps     %s, %s in all in which nothing was gathered",
		    unit_count(v->n_gaps).s, clock_text(v->gaps_ns).s);
	if (v->n_gaps > 1)
		sink_printf(out, "; the longest, %s, from %s",
			    clock_text(longest->to_ns - longest->from_ns).s,
			    moment_short(longest->from_ns, 0).s);
	sink_puts(out, "\n");
}

static void put_list(const char *title, const char *what, char *const *list, uint32_t n,
		     struct sink *out)
{
	if (!n)
		return;
	sink_printf(out, "  %-8s %s%s\n", title, unit_count(n).s, what);
	for (uint32_t i = 0; i < n && i < NAMES_SHOWN; i++) {
		sink_puts(out, "             ");
		put_clean(out, list[i]);
		sink_puts(out, "\n");
	}
	if (n > NAMES_SHOWN)
		sink_printf(out, "             and %u more\n", n - NAMES_SHOWN);
}

static void put_folders(const struct archive_view *v, struct sink *out)
{
	if (!v->n_folders)
		return;
	sink_printf(out, "\n%-32s %8s %12s  %s\n", "CONTAINER", "WINDOWS", "SIZE", "LAST");
	for (uint32_t i = 0; i < v->n_folders && i < FOLDERS_SHOWN; i++) {
		const struct archive_folder *f = &v->folders[i];

		sink_printf(out, "%-32s %8s %12s  %s\n", f->name, unit_count(f->windows).s,
			    f->bytes == ARCHIVE_BYTES_UNKNOWN ? "?"
							      : unit_bytes((int64_t)f->bytes).s,
			    moment_short(f->last_ns, 0).s);
	}
	if (v->n_folders > FOLDERS_SHOWN)
		sink_printf(out, "and %u more\n", v->n_folders - FOLDERS_SHOWN);
}

static void put_row(const struct archive_row *row, struct sink *out)
{
	sink_printf(out, "%-28s %-19s %8s %12s  %s", row->name, moment_short(row->begin_ns, 0).s,
		    row->end_ns ? clock_text(row->end_ns - row->begin_ns).s : "?",
		    unit_bytes((int64_t)row->bytes).s, row->sources);
	if (row->containers)
		sink_printf(out, "; %u container%s", row->containers,
			    row->containers == 1 ? "" : "s");
	sink_puts(out, "\n");
}

/* Rows that were asked for, and what is not there between them. */
static void put_rows(const struct archive_view *v, struct sink *out)
{
	uint32_t gap = 0, shown = 0, last = UINT32_MAX;

	for (uint32_t i = 0; i < v->n_rows; i++)
		shown += v->rows[i].shown;
	if (!shown)
		return;
	sink_printf(out, "\n%-28s %-19s %8s %12s  %s\n", "WINDOW", "BEGIN", "LENGTH", "SIZE",
		    "SOURCES");
	for (uint32_t i = 0; i < v->n_rows; i++) {
		while (gap < v->n_gaps && v->gaps[gap].before < i)
			gap++;
		if (!v->rows[i].shown)
			continue;
		if (gap < v->n_gaps && v->gaps[gap].before == i && last != UINT32_MAX)
			sink_printf(out, "%-28s %-19s %8s\n", "-- nothing was gathered",
				    moment_short(v->gaps[gap].from_ns, 0).s,
				    clock_text(v->gaps[gap].to_ns - v->gaps[gap].from_ns).s);
		put_row(&v->rows[i], out);
		last = i;
	}
	if (shown < v->n_rows)
		sink_printf(out, "%u of %s windows; -n 0 shows all, and A..B those of a time\n",
			    shown, unit_count(v->n_rows).s);
}

void archive_text_write(const struct archive_view *v, struct sink *out)
{
	put_head(v, out);
	put_gaps(v, out);
	put_list("missing", ", written and not there", v->missing, v->n_missing, out);
	put_list("damaged", v->checked ? "" : ", of those that were read (--check reads all)",
		 v->damaged, v->n_damaged, out);
	put_folders(v, out);
	put_rows(v, out);
}

/* --- JSON --- */

/* 2026-11-22T19:50:00.400+01:00 */
static void add_time(struct json_doc *d, cJSON *to, const char *key, int64_t ns)
{
	time_t s = (time_t)(ns / NS);
	char zone[8], text[64];
	struct tm tm;

	localtime_r(&s, &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(text, sizeof(text), "%s.%03d%.3s:%.2s", moment_text(ns).s,
		 (int)(ns % NS / 1000000), zone, zone + 3);
	json_text(d, to, key, text);
}

/* "oncpu, offcpu" */
static void add_sources(struct json_doc *d, cJSON *to, const char *sources)
{
	cJSON *list = json_array(d, to, "sources");
	char copy[128], *rest = copy, *word;

	snprintf(copy, sizeof(copy), "%s", sources);
	while ((word = strsep(&rest, ", ")))
		if (*word && !cJSON_AddItemToArray(list, cJSON_CreateString(word)))
			d->oom = true;
}

static void add_row(struct json_doc *d, cJSON *list, const struct archive_row *row)
{
	cJSON *to = json_element(d, list);

	json_text(d, to, "name", row->name);
	json_text(d, to, "trigger", *row->trigger ? row->trigger : NULL);
	add_time(d, to, "begin", row->begin_ns);
	json_number(d, to, "begin_ns", row->begin_ns);
	if (row->end_ns)
		json_number(d, to, "duration_ns", row->end_ns - row->begin_ns);
	else
		json_null(d, to, "duration_ns");
	json_count(d, to, "files", row->files);
	json_count(d, to, "bytes", row->bytes);
	json_count(d, to, "containers", row->containers);
	add_sources(d, to, row->sources);
}

static void add_rows(struct json_doc *d, cJSON *root, const struct archive_view *v)
{
	cJSON *windows = json_array(d, root, "windows"), *gaps = json_array(d, root, "gaps");

	for (uint32_t i = 0; i < v->n_rows; i++)
		if (v->rows[i].shown)
			add_row(d, windows, &v->rows[i]);
	for (uint32_t i = 0; i < v->n_gaps; i++) {
		cJSON *gap = json_element(d, gaps);

		json_number(d, gap, "begin_ns", v->gaps[i].from_ns);
		json_number(d, gap, "duration_ns", v->gaps[i].to_ns - v->gaps[i].from_ns);
	}
	json_number(d, root, "gaps_ns", v->gaps_ns);
}

static void add_folders(struct json_doc *d, cJSON *root, const struct archive_view *v)
{
	cJSON *list = json_array(d, root, "containers");

	for (uint32_t i = 0; i < v->n_folders; i++) {
		cJSON *to = json_element(d, list);

		json_text(d, to, "name", v->folders[i].name);
		json_count(d, to, "windows", v->folders[i].windows);
		if (v->folders[i].bytes != ARCHIVE_BYTES_UNKNOWN)
			json_count(d, to, "bytes", v->folders[i].bytes);
		json_number(d, to, "last_ns", v->folders[i].last_ns);
	}
}

static void add_totals(struct json_doc *d, cJSON *root, const struct archive_view *v)
{
	static const char *const no_labels[] = { NULL };
	const char *const *labels = v->labels ? v->labels : no_labels;
	uint32_t n = 0;

	while (labels[n])
		n++;
	json_text(d, root, "archive", v->dir);
	json_text(d, root, "container", v->container);
	json_truth(d, root, "at_work", v->at_work);
	json_strings(d, root, "labels", labels, n);
	if (v->n_rows) {
		add_time(d, root, "first", v->rows[0].begin_ns);
		add_time(d, root, "last",
			 last_row(v)->end_ns ? last_row(v)->end_ns : last_row(v)->begin_ns);
	}
	json_count(d, root, "windows_total", v->n_rows);
	json_count(d, root, "triggered", v->n_triggered);
	json_count(d, root, "files", v->files);
	json_count(d, root, "bytes", v->bytes);
}

int archive_json_write(const struct archive_view *v, struct sink *out, struct err *e)
{
	struct json_doc d = { false };
	cJSON *root = cJSON_CreateObject();
	char *text;

	add_totals(&d, root, v);
	add_rows(&d, root, v);
	add_folders(&d, root, v);
	json_strings(&d, root, "missing", (const char *const *)v->missing, v->n_missing);
	json_strings(&d, root, "damaged", (const char *const *)v->damaged, v->n_damaged);
	json_truth(&d, root, "checked", v->checked);
	text = d.oom ? NULL : cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	if (!text)
		return err_set(e, -ENOMEM, "out of memory");
	sink_puts(out, text);
	sink_puts(out, "\n");
	free(text);
	return 0;
}
