/*
 * Does it grow? The last hour of a figure of memory, a point every half minute: its shape, and the slope of
 * the line that decided (analyse/trend_shape.h).
 */
#ifndef MEMSCOPE_RUN_SERVE_GROWTH_HOUR_H
#define MEMSCOPE_RUN_SERVE_GROWTH_HOUR_H

#include "analyse/trend_shape.h"

#include <stdbool.h>

enum { GROWTH_POINTS = 120, GROWTH_EVERY_S = 30 };

/* Zeroed is empty. */
struct growth_hour {
	struct point
		points[GROWTH_POINTS]; /* seconds, kB; a ring, the oldest at `at` when it is full */
	uint32_t n, at;
	struct trend_shape shape; /* as of the last point                                   */
};

/* `t_s`: rises; a value that comes sooner than GROWTH_EVERY_S after the last is left out, and so is one that is not known. */
void growth_hour_add(struct growth_hour *g, double t_s, int64_t bytes);
/* Are there enough points to say anything? */
bool growth_hour_known(const struct growth_hour *g);
/* Bytes per second: of what still rises or falls, as it does at the end; else of a line through it all. */
double growth_hour_slope(const struct growth_hour *g);

#endif
