/*
 * Who used how much, over the last rows of a run: containers, and processes of no container by their name.
 *
 * CPU time and waits come from the run's own profiles: a row's part is what they gained. Resident memory is read from /proc, of
 * the processes that the profiles have. What finds no room is counted in row 0.
 */
#ifndef MEMSCOPE_RUN_SERVE_TARGET_SERIES_H
#define MEMSCOPE_RUN_SERVE_TARGET_SERIES_H

#include "model/profile_checkpoint.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TARGET_ROWS = 256, TARGET_POINTS = 60, TARGET_PIDS = 64, TARGET_NAME = 64, TARGET_PIDS_READ = 512 };
enum target_value { TARGET_CPU_NS, TARGET_BLOCKED_NS, TARGET_RUNNABLE_NS, TARGET_RSS_KB, N_TARGET_VALUES };

struct target_row {
	char name[TARGET_NAME];
	bool container;
	pid_t pids[TARGET_PIDS]; /* that are there, or were at the last row */
	uint32_t n_pids;
	int64_t points[TARGET_POINTS][N_TARGET_VALUES];  /* of the last rows: first comes points[at] */
};

struct target_series {
	struct target_row rows[TARGET_ROWS];
	uint32_t n_rows;
	int64_t times_ns[TARGET_POINTS]; /* wall clock */
	uint32_t at, n_points; /* the next one's place; how many there are */
	struct profile_checkpoint oncpu, offcpu; /* at the last row */
	uint16_t *by_labels; /* by label set: the row and 1; 0: not known */
	uint32_t n_labels, swept; /* dict_labels_swept() */
	uint32_t rss_from;        /* the row whose processes are read first */
};

/* A row, now. `rss_kb` of a process, -1: it is gone. Profiles may be NULL. 0 or -ENOMEM: there is no row. */
int target_series_add(struct target_series *s, struct profile *oncpu, struct profile *offcpu,
		      int64_t wall_ns, int64_t (*rss_kb)(pid_t pid));
/* The i-th of n_points, the oldest first: an index into `points` and `times_ns`. */
uint32_t target_series_point(const struct target_series *s, uint32_t i);
void target_series_fini(struct target_series *s);

#endif
