/* One rss_breakdown.csv that grows while the run is at work (render/tables/ledger_csv.h). */
#ifndef MEMSCOPE_RUN_MEMORY_RSS_CSV_H
#define MEMSCOPE_RUN_MEMORY_RSS_CSV_H

#include "analyse/ledger.h"
#include "run/memory/window_rows.h"
#include "run/run.h"

struct rss_csv {
	struct run *run;
	int fd;         /* -1: there is none, or it failed */
	struct long_rows long_rows;
};

/* In the place of what is there. That it cannot be written is a note of the run. */
void rss_csv_open(struct rss_csv *csv, struct run *run, const char *path, bool by_pss);
/* `traced`: bytes, < 0 when not known. The time is now. A service leaves rows out (long_rows_due()). */
void rss_csv_row(struct rss_csv *csv, const struct ledger *l, int64_t traced);
void rss_csv_close(struct rss_csv *csv);

#endif
