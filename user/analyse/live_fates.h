/*
 * How blocks of a row of allocations end, where ends are seen by chance: the model of live_heap.h.
 *
 * Ages are in units, several intervals between bursts: up to one unit, two, four, … A block is watched until
 * its end is seen, or until now.
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_FATES_H
#define MEMSCOPE_ANALYSE_LIVE_FATES_H

#include <stdint.h>

enum { LIVE_AGES = 24, LIVE_NEXT = 4 };

/* Of one row; zeroed: nothing was seen. */
struct live_fates {
	float ends[LIVE_AGES];        /* seen: handed out again in another burst, freed there, gone by a look */
	float watched[LIVE_AGES];     /* units of time in which they would have been          */
	float unseen[LIVE_AGES + 1];  /* the share of blocks whose end was not seen by an age's begin … */
	float alive[LIVE_AGES + 1];   /* … and that have not ended                            */
	uint32_t next[LIVE_NEXT];     /* rows to which addresses were handed out next, most often: … */
	uint32_t n_next[LIVE_NEXT];   /* … how often, about                                   */
};

/* A block was watched up to that age; `sign` -1 takes it back. */
void live_fates_watched(struct live_fates *f, double units, int sign);
/* Its end was seen at that age. */
void live_fates_seen(struct live_fates *f, double units);
/* Its address was handed out again, to a block of row `next`. */
void live_fates_next(struct live_fates *f, uint32_t next);

/*
 * `unseen` and `alive` of `n` rows; all that is kept must have been watched up to now. `weight`: one allocation
 * in so many is seen, on average. `chance` 0: as counted; else a number: how often ends were seen is changed
 * as chance may, by a relative error of 1 / sqrt(parts * ends), the same for the same number.
 */
void live_fates_sum(struct live_fates *rows, uint32_t n, double weight, uint32_t chance,
		    uint32_t parts);
/* The probability that a block of that age, no end of which was seen, has ended; after live_fates_sum(). */
double live_fates_ended(const struct live_fates *f, double units);

/* A number that looks random, of another. */
uint64_t live_mixed(uint64_t x);

#endif
