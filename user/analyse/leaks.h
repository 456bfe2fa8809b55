/*
 * Is what grows a leak? Growth of a site's live memory, or of the process's, with the same evidence whatever it
 * was measured by: its slope with an interval, the age of what stays and how much of it stays, and what becomes of
 * it beside the work of the program (workload.h). Series that were given come before the program's own CPU time,
 * and of several the one that explains most.
 *
 *   a counter: requests        no growth without it         the last request costs as much as the first:
 *                                                           GROWTH_LEAK_WORK; it costs ever less: GROWTH_FILLS
 *                              growth without it, too       GROWTH_LEAK_IDLE
 *   a level: entries, sessions no growth without it         GROWTH_FOLLOWS
 *   unknown, or too even       -                            GROWTH_LEAK
 *
 * Growth that has stopped is no leak. Where work has stopped with it, whether it would go on is unknown, and
 * that is said.
 *
 * What a stack allocates in the run may take the place of what was there before the run, as in a cache that is full: so
 * much came, four times as much as what is in use rose by, that this is what happened: GROWTH_REPLACES. Where what is in use is not known,
 * the private memory of the process says so, if it stays level (TREND_SHAPE_FLAT) and its noise is less than a quarter of it, too: what
 * is never written to does not show there.
 */
#ifndef MEMSCOPE_ANALYSE_LEAKS_H
#define MEMSCOPE_ANALYSE_LEAKS_H

#include "analyse/live_series.h"
#include "analyse/summary.h"
#include "model/dict.h"

#include <stddef.h>

/* Adds what grows and stays, the fastest first, and what grew and stayed, to `to`: at most SUMMARY_LEAKS of each.
 * Strings are of `d`. */
void leaks_of(const struct live_series *series, struct dict *d, double age_s,
	      struct summary_alloc *to);
/* When most was live in all, where that is estimated. */
void leaks_peak(const struct live_series *series, struct summary_alloc *to);
/* Who goes on touching memory, the fastest first. */
void leaks_growing(const struct live_series *series, struct dict *d, struct summary_growth *to);
/* The private memory's points, in bytes, and its shape. */
void leaks_private(const struct point *kb, uint32_t n, const struct trend_shape *shape,
		   struct summary_leak *to);

/* Holds all of them against the series of work: those that turn out to be none move to `no_leaks`. */
void leaks_against_work(struct run_summary *s);

bool growth_is_leak(enum growth_says says);
const char *growth_name(enum growth_says says); /* leak, idle, work, follows, fills, stopped, replaces */

/* "4.2 MiB a minute (95 % interval 3.9 MiB to 4.5 MiB) retained at handler_x; it grows also without
 * requests": of a leak or what is none. Without a full stop. */
void leak_sentence(const struct run_summary *s, const struct summary_leak *leak, char *buf,
		   size_t size);
/* What work says of it: a clause, without a comma or full stop at its ends; "": nothing. */
void leak_work_clause(const struct summary_leak *leak, char *buf, size_t size);

#endif
