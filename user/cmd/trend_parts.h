/*
 * What `memscope trend` is made of: trend.c reads the command line, trend_log.c writes a log of
 * processes that run, trend_once.c prints what they use now.
 */
#ifndef MEMSCOPE_CMD_TREND_PARTS_H
#define MEMSCOPE_CMD_TREND_PARTS_H

#include "base/err.h"
#include "cmd/trend_groups.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TREND_PIDS 256

struct trend_target {
	pid_t pids[TREND_PIDS];
	uint32_t n;
	const char *pattern;  /* they were found by, or NULL */
	/* Instead of them: whoever is in these; NULL. */
	struct trend_groups *groups;
};

/*
 * Writes a row of each `interval_s` seconds into the log `path`, for `duration_s` seconds (0: until a
 * signal), over ends and new beginnings of the processes or groups; says on stderr when one ends and
 * when another has come in its place. A row that cannot be written is counted and said; the next one is
 * tried. 0, or -errno: nothing could be looked at or written.
 */
int trend_log(const struct trend_target *target, const char *path, double interval_s,
	      double duration_s, struct err *e);

struct trend_look {
	bool maps, json;
	double interval_s;  /* 0: once                               */
	double duration_s;  /* 0: until a signal                     */
};

/*
 * Prints the memory of each process, with `maps` of each of its mappings, and that of each group; with
 * `interval_s` again and again, until a signal, the time, or the end of all processes.
 */
int trend_once(const struct trend_target *target, const struct trend_look *how, struct err *e);

/* SIGINT, SIGTERM and SIGHUP end what is done, and are taken only while it waits; `ret_mask`: for then. */
void trend_take_signals(sigset_t *ret_mask);
bool trend_is_stopped(void);
double trend_now_s(void); /* CLOCK_MONOTONIC */

#endif
