/*
 * How blocks of a row of allocations end, where ends are seen by chance: the model of live_heap.h.
 *
 * Ages are in units, several intervals between bursts. A block is watched until its end is seen, or until now.
 *
 * A row's blocks are apart by class of sizes, because addresses of one class are handed out to others than those
 * of the next: where a loop allocates, they come again at once; where a leak does, never; where nobody does, a look
 * finds them free. How many ends are seen differs by that; how blocks end is much the same in all classes of a row.
 * So a class borrows from its row how they end, more where it says little itself.
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_FATES_H
#define MEMSCOPE_ANALYSE_LIVE_FATES_H

#include <stdbool.h>
#include <stdint.h>

enum { LIVE_AGES = 24, LIVE_NEXT = 4 };

/* Of a row's blocks in one class; zeroed but for `row`: nothing was seen. */
struct live_fates {
	uint32_t row, class;
	float made;               /* blocks that were seen being made                     */
	float ends[LIVE_AGES];    /* by when they were seen, or about when they were, by a look */
	float watched[LIVE_AGES]; /* units of time in which they would have been          */
	float reused, gone;       /* ends seen in bursts; by looks                         */
	float again; /* the share of ended ones that are in use again by the next look */
	float unseen[LIVE_AGES +
		     1]; /* the share of blocks whose end was not seen by an age's begin … */
	float alive[LIVE_AGES + 1]; /* … and that have not ended                            */
	uint32_t
		next[LIVE_NEXT]; /* to which others addresses were handed out next, most often: … */
	uint32_t n_next[LIVE_NEXT]; /* … how often, about                                   */
};

/* A block was watched up to that age; `sign` -1 takes it back. */
void live_fates_watched(struct live_fates *f, double units, int sign);
/* Its end was seen at that age, in a burst. */
void live_fates_seen(struct live_fates *f, double units);
/* A look found it gone, of age `to`, which was there at age `from`: it counts at an age between, by what is known
 * of ends so far, or any if nothing is. `part` 0 … 1 is drawn. */
void live_fates_gone(struct live_fates *f, double from, double to, double part);
/* Its address was handed out again, to a block of number `next` in the array. */
void live_fates_next(struct live_fates *f, uint32_t next);

/*
 * `unseen` and `alive` of all `n`; all that is kept must have been watched up to now. `weight`: one allocation
 * in so many is seen, on average. `chance` 0: as counted; else a number: how often ends were seen is changed
 * as chance may, by a relative error of 1 / sqrt(parts * ends), the same for the same number. 0 or -ENOMEM.
 */
int live_fates_sum(struct live_fates *all, uint32_t n, double weight, uint32_t chance,
		   uint32_t parts);
/* The probability that a block of that age, no end of which was seen, has ended; after live_fates_sum(). */
double live_fates_ended(const struct live_fates *f, double units);

/* A number that looks random, of another. */
uint64_t live_mixed(uint64_t x);

#endif
