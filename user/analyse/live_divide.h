/*
 * What is known of several rows together, divided among them: a step of live_heap.h.
 *
 * The bytes in use in a pool of size classes are known exactly; the rows' estimates of what lives should add up
 * to them. What they are too large by comes from two errors, and in this order:
 *
 * 1. Which blocks have ended unseen. A row takes a part by the variance of that, and LIVE_DIVIDE_MOST standard
 *    errors of it at most: a row of which every block is known (weight 1) hardly gives anything, and one of
 *    which no end was ever seen nothing, so that a leak does not bear what the model of reuse gets wrong.
 * 2. Which blocks were seen in bursts: the rest, by the variance of that.
 *
 * (Were both done at once, by the sum of the variances, as generalized least squares would have it, a leak would
 * be 4 % too small: its variance is estimated from the blocks it has by chance, and falls with them.)
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_DIVIDE_H
#define MEMSCOPE_ANALYSE_LIVE_DIVIDE_H

#include <stdint.h>

#define LIVE_DIVIDE_MOST 5.0

/* A row's blocks in a pool of classes; bytes. */
struct live_share {
	uint32_t row;
	double in_use, bytes; /* usable, and as asked for, of blocks that may live  */
	double reused;        /* of in_use: expected to have ended                  */
	double unsure;        /* variance of that                                   */
	double chance;        /* variance by which blocks were seen                  */
	double live;          /* in_use - reused; afterwards, its part of what is known */
	double not_reused;    /* the same after step 1                               */
	double low, high;
	double one;   /* variance of one block more or less; 0: its blocks do not end */
	double least; /* what that is more than the others                       */
};

/* `excess`: the sum of `live`, less what is known. No share ends below 0. */
void live_divide(struct live_share *shares, uint32_t n, double excess);

#endif
