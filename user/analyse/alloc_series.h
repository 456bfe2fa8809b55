/*
 * Allocated bytes of each stack over time: where, and when.
 *
 * What was allocated in a stretch of time is spread evenly over the intervals between ticks that it
 * overlaps, so estimates that become known late are counted where they belong, and the intervals of a stack
 * add up to what it allocated.
 *
 * Memory is bounded. At most ALLOC_SERIES_TICKS intervals are kept: when they are used up, each two
 * neighbours become one, and from then on only every second, fourth, … tick ends one. At most
 * ALLOC_SERIES_MAX stacks have a row. A new one then takes the place of the one with the least, whose bytes go to
 * OTHER, and begins with the latter's rank: so every stack that allocated more than 1/ALLOC_SERIES_MAX of all has
 * a row, whenever it came (Space-Saving: Metwally, Agrawal, El Abbadi, ICDT 2005). What a row says was allocated
 * in it; what of its stack may be in OTHER instead is `before` at most.
 */
#ifndef MEMSCOPE_ANALYSE_ALLOC_SERIES_H
#define MEMSCOPE_ANALYSE_ALLOC_SERIES_H

#include "base/cleanup.h"
#include "model/ids.h"

#include <stdint.h>

#define ALLOC_SERIES_TICKS 256
#define ALLOC_SERIES_MAX   1024

struct alloc_series;

struct alloc_series_row {
	stack_id stack;
	double all;                       /* bytes                                      */
	double before;                    /* bytes at most that are in OTHER            */
	double open;                      /* of these, since the last tick that counted */
	double bytes[ALLOC_SERIES_TICKS]; /* in each interval                           */
};

/* Times are seconds since the run began. NULL when out of memory. */
struct alloc_series *alloc_series_new(void);
void alloc_series_free(struct alloc_series *s);
DEFINE_CLEANUP(struct alloc_series *, alloc_series_freep, alloc_series_free)

/* Allocated between two moments. `stack` NULL: not known. 0 or -ENOMEM. */
int alloc_series_add(struct alloc_series *s, const stack_id *stack, double bytes, double from_s,
		     double to_s);
void alloc_series_tick(struct alloc_series *s, double t_s);
/* The last tick, which always counts; what comes later, of before it, is spread as ever. */
void alloc_series_end(struct alloc_series *s, double t_s);

/* Rows that made room for others, and what of them went to OTHER. */
struct alloc_series_moved {
	uint64_t rows;
	double bytes;
};
struct alloc_series_moved alloc_series_moved(const struct alloc_series *s);

/* The ends of the intervals; the first begins at 0. Returns how many. */
uint32_t alloc_series_times(const struct alloc_series *s, const double **ret_times);
/* At most `cap` by bytes, the largest first. Returns how many. */
uint32_t alloc_series_rank(const struct alloc_series *s, const struct alloc_series_row **ret_rows,
			   uint32_t cap);
/* What all others allocated in interval `i`. */
double alloc_series_other(const struct alloc_series *s, const struct alloc_series_row *const *shown,
			  uint32_t n, uint32_t i);

#endif
