/*
 * live_series.csv: what the stacks that hold most held over time, for a stacked chart.
 *
 *   timestamp,"main;load;malloc","main;serve;…",OTHER
 *   2026-11-21 10:00:01,1048576,0,…
 *
 * A column is a stack, root first, and its live bytes; the largest LIVE_SERIES_COLUMNS by area (bytes x time),
 * and OTHER for the rest, so that a row adds up to what was live. Names are quoted, with quotes doubled
 * and control bytes replaced. Two columns may have one name: processes that do the same.
 */
#ifndef MEMSCOPE_RENDER_TABLES_LIVE_SERIES_CSV_H
#define MEMSCOPE_RENDER_TABLES_LIVE_SERIES_CSV_H

#include "analyse/live_series.h"
#include "base/sink.h"
#include "model/dict.h"

#define LIVE_SERIES_COLUMNS 20

/* `start_ns`: Unix time of second 0. 0 or -ENOMEM. */
int live_series_csv_write(const struct live_series *b, struct dict *d, int64_t start_ns, struct sink *out,
		    struct err *e);

#endif
