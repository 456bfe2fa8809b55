/*
 * Rows of the memory series in windows of a service: [FOLDER/]memory-STAMP.csv, in the columns of a log of control groups
 * (render/tables/trend_csv.h). So the archive of a service has them as long as the windows, and `memscope trend ARCHIVE` reads them.
 *
 * Rows are kept for a window's time, and written by its writer, a copy of the process: nobody has to say which were.
 */
#ifndef MEMSCOPE_RUN_MEMORY_WINDOW_ROWS_H
#define MEMSCOPE_RUN_MEMORY_WINDOW_ROWS_H

#include "model/mem_sample.h"
#include "run/config.h"
#include "run/window.h"

#include <stdbool.h>

struct window_rows {
	struct window_row {
		uint64_t ns; /* CLOCK_MONOTONIC */
		struct mem_sample sample;
		struct mem_group group;
		int64_t live_bytes;
	} *list; /* a ring; NULL: the run has no windows, or there was no memory */
	uint32_t cap, n, at;
	uint32_t every, seen; /* one row in so many is kept, where windows are long */
};

void window_rows_init(struct window_rows *rows, const struct run_config *cfg);
void window_rows_fini(struct window_rows *rows);
/* `group`: NULL, nothing is known of one. `factor`: windows are so many times as long as was asked for (run/own_share.h), and have as many rows. */
void window_rows_add(struct window_rows *rows, uint32_t factor, uint64_t now_ns, const struct mem_sample *sample,
		     int64_t live_bytes, const struct mem_group *group);
/* Those of the window's time; no file where there are none. `folder`: "" or "web". 0 or -errno with a sentence. */
int window_rows_write(const struct window_rows *rows, const struct run_window *window,
		      const char *folder, struct err *e);

/*
 * Rows of a file that grows for as long as a service runs: all of the first LONG_ROWS, then every second for as many, every fourth, and
 * so on. So it grows with the logarithm of the time (a year of rows each ten seconds: some 39,000); windows have the others.
 */
enum { LONG_ROWS = 4096 };
struct long_rows {
	uint32_t left_out; /* between two rows */
	uint32_t next;     /* to be left out before the next one */
	uint32_t written;  /* since left_out was raised */
};
/* Is the row of this moment one of them? Of a run without windows each is. */
bool long_rows_due(struct long_rows *rows, const struct run_config *cfg);

#endif
