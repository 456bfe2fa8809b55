/*
 * Is what a site allocates a leak? From the ages of blocks that were seen by chance and are still in use.
 *
 * Bursts are spread over the run, so a few dozen seen blocks say what a series of estimates does not, which has a step for
 * each of them. Of the blocks that have lived for SURVIVAL_YOUNG parts of the run or longer:
 *
 *                                in use, by time of birth     end at greater age
 *   leak                         over all of its time         none
 *   cache or table that filled   of the first part            none
 *   LRU cache, queue             of the last part             all, at one age
 *   random replacement           fewer, the older             at an even rate
 *
 * A leak is said where all of this holds, each at the level `alpha` where it is a test:
 *
 * A burst sees blocks that are alike, several at once where a program allocates in batches: those that a site made in one burst
 * count as one together, or as parts of one.
 *
 * Blocks that a site made in one burst count as one together: a program may allocate in batches.
 *
 * 1. They do not end. With `ended` ends in `lived` block-times, the exact (Poisson) test rejects a mean residence of half
 *    the window, which is what a full cache has at most that can be recognised in it.
 * 2. The oldest stay: of those born in the first third of the window at least half, which no LRU cache or queue has that
 *    holds less than two thirds of the window.
 * 3. They go on being made: given how many stay, the exact (binomial) test of how many of these were born late, with
 *    the number of bursts as exposure, rejects a rate of a sixteenth of the earlier one; and the bytes that they stand for
 *    come at a third of the earlier rate at least.
 * 4. There is room for them. Where an ended block's address is handed out again unseen, it seems to stay for ever. But
 *    estimates of all sites add up to what is in use, which is known at every look: what a site has more than at a look
 *    after half, and after two thirds, of the run is, of both together, three quarters of what it claims to have kept since. A cache that
 *    is full stays level, whatever its blocks seem to do.
 *
 * The window begins where these blocks begin to be born, but for the first twentieth of them before a gap: a leak may begin
 * late. It is at least a quarter of the run. A cache that is not full yet, or has been full for less than a third of the
 * window, is no different from a leak.
 *
 * Slope: bytes that stay over the time in which they were born. Its interval is the exact one of a Poisson count
 * (by Wilson and Hilferty's cube root, Proc. Natl. Acad. Sci. 17, 1931) of as many blocks of one size as have the same
 * relative variance. How often it errs, and what it finds: tests/unit/analyse/survival_verdict.c.
 */
#ifndef MEMSCOPE_ANALYSE_SURVIVAL_VERDICT_H
#define MEMSCOPE_ANALYSE_SURVIVAL_VERDICT_H

#include <stdbool.h>

enum {
	SURVIVAL_PARTS = 32, /* of the run                                              */
	SURVIVAL_YOUNG = 2,  /* parts: blocks that have not lived for so long say nothing */
	SURVIVAL_LEAST = 3,  /* blocks in use: fewer say nothing                      */
	SURVIVAL_SINCE = 2,  /* moments: a half and two thirds of the run              */
};

/*
 * Of a site's blocks that were seen. Those of several are added; what is above `stay` is the same for all of them. Blocks and
 * ends in `stay`, `gone`, `lived` and `ended` are parts of what was made in a burst.
 */
struct survival {
	/* Seconds: where the run begins, and its length. */
	double from_s, span_s;
	/* How many in each part; all 0: even. */
	double bursts[SURVIVAL_PARTS];
	/* `claim` and `room` are known: there were looks at those moments. */
	bool looked;
	/* That lived for SURVIVAL_YOUNG, by birth: in use, and ended. */
	double stay[SURVIVAL_PARTS], gone[SURVIVAL_PARTS];
	/* How many these are. */
	double blocks, blocks_ended;
	/* The sum of their times beyond that age, in runs; and their ends. */
	double lived, ended;
	/* What blocks in use stand for, by birth, young ones too; and the sum of the squares of what each burst's do. */
	double bytes[SURVIVAL_PARTS], squares[SURVIVAL_PARTS];
	/* Bytes in use that were made since each moment, by blocks; and what it has more than it had then. */
	double claim[SURVIVAL_SINCE], room[SURVIVAL_SINCE];
};

/* The part of a run of length `span` in which `t` is. */
unsigned survival_part(double t, double span);
/* Where the moments are, in runs. */
double survival_moment(unsigned m);
void survival_add(struct survival *to, const struct survival *from);

enum survival_says {
	SURVIVAL_FEW,     /* blocks, or looks, or time: not enough to say                  */
	SURVIVAL_ENDS,    /* its blocks end                                              */
	SURVIVAL_STOPPED, /* they stay, and no more come                                 */
	SURVIVAL_NO_ROOM, /* they seem to stay, but no more is in use                    */
	SURVIVAL_LEAKS,
};

struct survival_verdict {
	enum survival_says says;
	double blocks;           /* seen, older than SURVIVAL_YOUNG, and in use           */
	double ended;            /* … and ended                                        */
	double since_s;          /* where the window begins                             */
	double slope, low, high; /* bytes a second, 95 % interval; of what stays          */
};

void survival_verdict(const struct survival *s, double alpha, struct survival_verdict *ret_verdict);

#endif
