/*
 * Does memory grow with work, or by itself? A series of measurements of memory beside one of work: requests
 * so far, keys, CPU time.
 *
 *   memory = a + idle * time + per_unit * work
 *
 * The points are reduced to at most WORKLOAD_BINS, each the mean of the last quarter of a run of them; the line
 * is fitted to the differences between neighbours, because what memory gains by chance in one it still has in
 * the next. Intervals (95 %) are by the
 * variance of Newey and West (1987) with a lag of 1 and the residuals of HC3 (MacKinnon and White 1985), which allows for neighbouring differences that are alike
 * (means of a random walk) or opposite (noise), and Student's t. Where work goes on evenly, time and work
 * cannot be told apart: both intervals are wide then, and that is what is said.
 */
#ifndef MEMSCOPE_ANALYSE_WORKLOAD_H
#define MEMSCOPE_ANALYSE_WORKLOAD_H

#include <stdint.h>

#define WORKLOAD_POINTS 256 /* for whoever keeps them */
#define WORKLOAD_BINS   32
#define WORKLOAD_LEAST  12 /* points; of fewer nothing is said */
/* A rise that matters: this many bytes, and this part of the memory at the beginning. */
#define WORKLOAD_LEAST_BYTES 524288
#define WORKLOAD_LEAST_PART  0.02

struct workload_point {
	double t_s;
	double bytes; /* of memory                                       */
	double work;  /* a counter, or a level: what is used is its rise */
};

enum workload_says {
	WORKLOAD_SHORT,  /* too few points                                           */
	WORKLOAD_STEADY, /* no rise that is certain, and matters                     */
	WORKLOAD_WITH,   /* it grows with work, and not while there is none          */
	WORKLOAD_IDLE,   /* it grows as fast while there is no work                  */
	WORKLOAD_BOTH,   /* with work, and by itself                                 */
	WORKLOAD_UNTOLD, /* it grows; which of the two it is, these points do not say */
	N_WORKLOADS,
};

/* One word, for programs to read: short, steady, work, idle, both, unknown. */
const char *workload_name(enum workload_says says);

struct workload_fit {
	enum workload_says says;
	double grown, grown_low, grown_high;  /* bytes from first to last             */
	double per_unit, unit_low, unit_high; /* bytes for a unit of work             */
	double idle, idle_low, idle_high;     /* bytes a second without work          */
	double work, span_s;                  /* how much work there was, and how long */
	double still; /* part of the time in which there was less than a tenth of the mean work */
	double still_grown; /* bytes gained in it */
	double r2;                            /* of the differences, that it explains */
};

void workload_fit(const struct workload_point *p, uint32_t n, struct workload_fit *ret_fit);

#endif
