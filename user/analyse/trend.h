/*
 * A number over time, and whether it grew: base, last and peak of a series of any length in fixed
 * memory.
 *
 * When the table is full every other point is dropped, and from then on only every second, fourth,
 * … is kept: the points that are there are evenly spaced, to one point's distance.
 */
#ifndef MEMSCOPE_ANALYSE_TREND_H
#define MEMSCOPE_ANALYSE_TREND_H

#include "analyse/series.h"

#include <stdbool.h>
#include <stdint.h>

#define TREND_POINTS 128

/* Zeroed is empty. */
struct trend {
	int64_t points[TREND_POINTS];
	uint32_t n, stride;  /* stride: one of so many was kept; 0 is 1 */
	uint64_t added;
	int64_t last, peak;
};

/* Values below 0 (MEM_UNKNOWN) are left out. */
void trend_add(struct trend *t, int64_t value);

struct trend_rise {
	bool known;
	bool from_quarter;  /* the base is that of a quarter of the series, not the first value */
	int64_t base, last, peak;
};

/*
 * What it rose from and to: two values at least. The base is the first value; with `from_birth` (the series begins with
 * the program's own start) it is the value after a quarter of the series, because a program that
 * loads is not one that grows, and fewer than 8 points say nothing.
 */
struct trend_rise trend_rise(const struct trend *t, bool from_birth);

/* The points kept, one value having been added every `interval_s`. Returns how many. */
uint32_t trend_points(const struct trend *t, double interval_s,
		      struct point ret_points[TREND_POINTS]);

#endif
