/* The counters of bpf/stats.def by number (STAT_…), for those who show them. */
#ifndef MEMSCOPE_COLLECT_STATS_H
#define MEMSCOPE_COLLECT_STATS_H

#include "abi.h"

#include <stdbool.h>

struct stat_row {
	const char *name, *help;
	bool loss;  /* each count is something that happened and is not shown */
};

extern const struct stat_row stat_rows[MS_N_STATS];

#endif
