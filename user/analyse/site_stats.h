/*
 * What one site does over time, in numbers: of a series of values, in real units and seconds.
 *
 * Each value stands for some seconds: of bins of time their width; of readings half of the time to their neighbours on
 * either side, so that the integral is the trapezoidal rule's. The mean and the deviation are those over that time. The line is
 * the least-squares one of analyse/series.h, whose interval allows for neighbours that are alike.
 */
#ifndef MEMSCOPE_ANALYSE_SITE_STATS_H
#define MEMSCOPE_ANALYSE_SITE_STATS_H

#include "analyse/series.h"

#include <stdbool.h>
#include <stdint.h>

struct site_stats {
	double integral;  /* value × seconds                                                */
	double mean;
	double deviation; /* standard, of all of the time (not of a sample of it)           */
	double intercept; /* of the line, at second 0                                       */
	double slope, slope_low, slope_high; /* a second, 95 %; infinite below 3 points         */
	double r2;        /* 1 for a constant                                               */
	double first_s, last_s; /* the first and the last point that is not 0; NAN: all are   */
	double burst_from_s, burst_to_s; /* where most of it came (site_burst()); NAN: nothing did */
};

/* How many seconds each of `n` readings stands for: 1 for a single one. */
void site_stats_spans(const struct point *p, uint32_t n, double *ret_span_s);
/*
 * The shortest time in a row that has SITE_BURST of the integral: which of these points, from … to-1; of equally short ones
 * that which has more, of equal ones the first. Values below 0 count as 0. false: all are 0.
 */
#define SITE_BURST .8
bool site_burst(const struct point *p, const double *span_s, uint32_t n, uint32_t *ret_from, uint32_t *ret_to);
/* n >= 1. */
void site_stats(const struct point *p, const double *span_s, uint32_t n, struct site_stats *ret_stats);

#endif
