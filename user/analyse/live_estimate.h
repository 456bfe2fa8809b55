/*
 * What is estimated of a row of live_heap.h, or of several together, and how far off it may be.
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_ESTIMATE_H
#define MEMSCOPE_ANALYSE_LIVE_ESTIMATE_H

#include "model/estimate.h"
#include "model/value_error.h"

#include <stdint.h>

enum { LIVE_GROUPS = 16 }; /* of bursts, for the jackknife */

/* Two are added by adding each member. */
struct live_estimate {
	uint64_t seen; /* blocks it is based on: in use, or counted so         */
	double bytes, blocks;
	double plain;      /* bytes, with what a call stood for, about, when it was seen, and what
					* was reused taken off: whatever becomes known of weights later, it
					* stays, and how much bursts cover may change */
	double old_blocks; /* older than live_heap_age(), with all weights 1       */
	double without[LIVE_GROUPS]; /* bytes, with one group left out                      */
	double v, vc;                /* sums of squares and cubes of what each stands for     */
	double model;                /* variance of the division among rows                 */
	double most;                 /* bytes in use in its pools of size classes           */
	double if_low, if_high;      /* bytes, if all weights are so far off: live_heap_weights_may_be() */
	double power;                /* ends that would have been seen, by its pool's share  */
	double ends;                 /* ends that were seen, weighted                        */
};

void live_estimate_merge(struct live_estimate *to, const struct live_estimate *from);
/* What is off in the same direction for all that is merged, by what all weights have in common: bytes, down and up. */
void live_weight_error(const struct live_estimate *est, double *ret_below, double *ret_above);
/* 95 %, of the bytes. */
struct interval live_interval(const struct live_estimate *est);
/*
 * As a profile carries it; what all weights have in common (below, above) is the caller's to add. Not quite the
 * same: a profile's errors add up over rows, so it has the variance and neither the skew, nor the bound by what is in
 * use in the row's size classes (`most`). report's interval of a site reaches as far down as up, where that of
 * live_interval(), which the summary prints, reaches less far down and further up.
 */
void live_errors(const struct live_estimate *est, struct value_error *ret_blocks,
		 struct value_error *ret_bytes);
/*
 * Of how it came to this over time: squares of half 95 % intervals, down and up. At least what chance in which blocks
 * were seen makes: at the end it is known how much is in use in all, before it was not.
 */
void live_walk_error(const struct live_estimate *est, double *ret_low2, double *ret_high2);

#endif
