/* The counters of bpf/stats.def by number (STAT_…), for output. */
#ifndef MEMSCOPE_COLLECT_SESSION_STATS_H
#define MEMSCOPE_COLLECT_SESSION_STATS_H

#include "stat_ids.h"

#include <stdbool.h>

struct stat_row {
	const char *name, *help;
	bool loss;  /* each count is an event that is not shown */
};

extern const struct stat_row stat_rows[N_STATS];

#endif
