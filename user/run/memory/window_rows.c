#include "run/memory/window_rows.h"

#include "base/cleanup.h"
#include "base/sink.h"
#include "render/tables/trend_csv.h"
#include "run/folders.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ROWS_MAX = 64, /* of a window as it was asked for, and what may be late */
	ROWS_LATE = 4, /* a window may be longer, while others are written */
};

static bool has_windows(const struct run_config *cfg)
{
	return cfg->serve && cfg->archive && cfg->every_s > 0;
}

bool long_rows_due(struct long_rows *rows, const struct run_config *cfg)
{
	if (!has_windows(cfg))
		return true;
	if (rows->next) {
		rows->next--;
		return false;
	}
	rows->next = rows->left_out;
	if (++rows->written == LONG_ROWS) {
		rows->written = 0;
		rows->left_out = 2 * rows->left_out + 1;
		rows->next = rows->left_out;
	}
	return true;
}

void window_rows_init(struct window_rows *rows, const struct run_config *cfg)
{
	double n = cfg->interval_s > 0 ? cfg->every_s / cfg->interval_s : 1;

	*rows = (struct window_rows){ .every = 1 };
	if (!has_windows(cfg))
		return;
	rows->every += (uint32_t)(n / (ROWS_MAX - ROWS_LATE));
	rows->cap = 2 * (uint32_t)ceil(n / rows->every) +
		    ROWS_LATE; /* of one that grows meanwhile, too */
	rows->list = calloc(rows->cap, sizeof(*rows->list));
}

void window_rows_fini(struct window_rows *rows)
{
	free(rows->list);
	*rows = (struct window_rows){ 0 };
}

void window_rows_add(struct window_rows *rows, uint32_t factor, uint64_t now_ns,
		     const struct mem_sample *sample, int64_t live_bytes,
		     const struct mem_group *group)
{
	static const struct mem_group unknown = { MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN,
						  MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN,
						  MEM_UNKNOWN, MEM_UNKNOWN };

	/* Of processes that have ended since nothing is known. */
	if (!rows->list || sample->rss_kb == MEM_UNKNOWN || rows->seen++ % (rows->every * factor))
		return;
	rows->list[rows->at] =
		(struct window_row){ now_ns, *sample, group ? *group : unknown, live_bytes };
	rows->at = (rows->at + 1) % rows->cap;
	rows->n += rows->n < rows->cap;
}

/* The oldest is 0. */
static const struct window_row *row_at(const struct window_rows *rows, uint32_t i)
{
	return &rows->list[(rows->at + rows->cap - rows->n + i) % rows->cap];
}

static bool is_in(const struct window_row *row, const struct run_window *window)
{
	return row->ns >= window->from_ns && row->ns < window->to_ns;
}

int window_rows_write(const struct window_rows *rows, const struct run_window *window,
		      const char *folder, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	char path[4096];
	int r = 0;

	snprintf(path, sizeof(path), "%s/%s%smemory-%s.csv", window->dir, folder,
		 *folder ? "/" : "", window->stamp);
	for (uint32_t i = 0; r == 0 && i < rows->n; i++) {
		const struct window_row *row = row_at(rows, i);

		if (!is_in(row, window))
			continue;
		if (!out) {
			r = *folder ? folder_make(window->dir, folder, e) : 0;
			if (r == 0)
				r = sink_open_new(path, &out, e);
			if (r == 0)
				trend_csv_put_names(out);
		}
		if (r == 0)
			trend_csv_put_row(out, &row->sample, row->live_bytes, &row->group);
	}
	return r == 0 && out ? sink_commit(out, e) : r;
}
