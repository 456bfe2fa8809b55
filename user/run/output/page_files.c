#include "run/output/page_files.h"

#include "base/strbuf.h"
#include "import/run_scalars.h"
#include "import/time_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* In the order in which the page offers them. */
static const char *const tables[][2] = {
	{ "trend", "Memory and CPU" },
	{ "alloc_series", "Allocation rate by stack" },
	{ "live_series", "Live bytes by stack" },
	{ "census", "Objects by type" },
	{ "rss_breakdown", "RSS breakdown" },
	{ "workload", "Work" },
};

/* Of a summary; larger ones are not ours. */
enum { SUMMARY_MAX = 1 << 26 };

static int read_text(const char *path, char **ret_text, size_t *ret_len)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	FILE *f = fopen(path, "re");
	char buf[16384];
	size_t n;

	if (!f)
		return -errno;
	while (text.len < SUMMARY_MAX && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(&text, buf, n);
	fclose(f);
	*ret_len = text.len;
	*ret_text = strbuf_take(&text);
	return *ret_text || !*ret_len ? 0 : -ENOMEM;
}

static int read_tables(const char *dir, const char *suffix, struct page_run *page,
		       struct page_files *files, struct err *e)
{
	char path[4096];
	int r;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct err ignored = { 0 };
		struct time_table *t = NULL;

		snprintf(path, sizeof(path), "%s/%s%s.csv", dir, tables[i][0], suffix);
		r = time_table_read(path, &t, NULL, &ignored);
		if (r == -ENOMEM)
			return err_set(e, r, "out of memory");
		if (r < 0)
			continue;
		files->tables[page->n_series] = t;
		page->series[page->n_series++] =
			(struct page_series){ tables[i][0], tables[i][1], t };
	}
	return 0;
}

int page_files_read(const char *dir, const char *suffix, struct page_run *page,
		    struct page_files *files, struct err *e)
{
	struct run_scalars scalars;
	char path[4096];
	size_t len = 0;
	int r = read_tables(dir, suffix, page, files, e);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/summary%s.json", dir, suffix);
	if (read_text(path, &files->summary, &len) == -ENOMEM)
		return err_set(e, -ENOMEM, "out of memory");
	page->summary = bytes_of(files->summary, len);
	if (len && run_scalars_parse(page->summary, path, &scalars, NULL) == 0 &&
	    isfinite(scalars.value[RUN_DURATION]))
		page->seconds = scalars.value[RUN_DURATION] / 1e9;
	return 0;
}

/* Rows are in the order of time. */
static void cut_table(struct time_table *t, double from_s, double to_s)
{
	uint32_t first = 0, end;

	while (first < t->n_rows && t->times_s[first] < from_s)
		first++;
	for (end = first; end < t->n_rows && t->times_s[end] <= to_s;)
		end++;
	t->n_rows = end - first;
	memmove(t->times_s, t->times_s + first, t->n_rows * sizeof(*t->times_s));
	for (uint32_t c = 0; c < t->n_columns; c++)
		memmove(t->columns[c].values, t->columns[c].values + first,
			t->n_rows * sizeof(*t->columns[c].values));
}

int page_files_read_part(const char *dir, const char *suffix, double from_s, double to_s,
			 struct page_run *page, struct page_files *files, struct err *e)
{
	uint32_t before = page->n_series;
	int r = read_tables(dir, suffix, page, files, e);

	for (uint32_t i = before; i < page->n_series; i++)
		cut_table(files->tables[i], from_s, to_s);
	return r;
}

void page_files_fini(struct page_files *files)
{
	for (int i = 0; i < PAGE_SERIES; i++)
		time_table_free(files->tables[i]);
	free(files->summary);
}
