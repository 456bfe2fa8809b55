/*
 * alloc_series.csv: how fast the stacks that allocate most did so over time, for a stacked chart.
 *
 *   timestamp,"main;load;malloc","main;serve;…",OTHER
 *   2026-11-21 10:00:01,1048576,0,…
 *
 * A column is a stack, root first, and the bytes a second that it allocated since the row before (the first
 * row: since the run began); the ALLOC_SERIES_COLUMNS that allocated most, and OTHER for the rest. Names are
 * quoted as in live_series.csv.
 */
#ifndef MEMSCOPE_RENDER_TABLES_ALLOC_SERIES_CSV_H
#define MEMSCOPE_RENDER_TABLES_ALLOC_SERIES_CSV_H

#include "analyse/alloc_series.h"
#include "base/sink.h"
#include "model/dict.h"

#define ALLOC_SERIES_COLUMNS 20

/* `start_ns`: Unix time of second 0. 0 or -ENOMEM. */
int alloc_series_csv_write(const struct alloc_series *s, struct dict *d, int64_t start_ns,
			   struct sink *out, struct err *e);

#endif
