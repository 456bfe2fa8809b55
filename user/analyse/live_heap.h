/*
 * Live memory by allocation site where no frees are traced: from allocations seen in short bursts, and
 * from what the allocator's own structures say is in use (heap/in_use.h).
 *
 * A block seen in a burst stands for `weight` blocks: 1 / the probability that it was seen
 * (analyse/bursts.h). If each one's fate were known, the sum of the weights of those that live would be the
 * Horvitz-Thompson estimate, which is unbiased whatever sizes and lifetimes are (Horvitz and Thompson,
 * J. Am. Stat. Assoc. 47, 1952).
 *
 * What is known is whether its address is in use. It may have been freed and handed out again, unseen. Three
 * things show an end: its address is handed out again in a burst; a realloc takes it there; a look finds it
 * free, or of another size. For ends that none of these showed:
 *
 * 1. How blocks of a row end, in each class of sizes. By age, from all its blocks there: u(a), the share of which
 *    no end was seen (Kaplan and Meier, J. Am. Stat. Assoc. 53, 1958). A block that ended unseen at age b went to
 *    a block of some row r, whose end was not seen either for a - b. So with f(x) the mean of u of the rows that
 *    come next, times the probability 1 - 1/weight that the allocation that reused the address was not in a
 *    burst, times the probability that it was reused before a look could find it free,
 *
 *       u(a) = alive(a) + sum over b of (alive(b-) - alive(b)) f(a - b)
 *
 *    which is solved for alive, age by age: a renewal equation (live_fates.h), for each row over its classes, and
 *    for each class by its own blocks and its row's. Where a leak takes most addresses of a class, f is about 1
 *    and the class itself says nothing: only the row's other classes show how its blocks end. A block in use of
 *    age a lives with the probability alive(a)/u(a). Rows of which no end was ever seen keep all their blocks.
 *
 * 2. What that gets wrong. The bytes in use of a size class are known exactly, by the look; blocks in use
 *    before the first burst are a row of their own, BEFORE, all of whose blocks are known (weight 1), so that
 *    the rows' estimates should add up to them: they are made to, as calibration estimators do it (Deville and
 *    Saerndal, J. Am. Stat. Assoc. 87, 1992; live_divide.h says from whom it is taken). Size classes are pooled
 *    until POOL blocks and ends were seen.
 *
 * Memory is bounded: beyond `max` blocks, those are kept whose (size + 16) / u exceeds a threshold, u being
 * a block's own random number in (0, 1), and a kept one weighs by 1 / min(1, (size + 16) / threshold) more:
 * threshold sampling (Duffield, Lund, Thorup, J. ACM 54, 2007).
 *
 * Intervals are those of a jackknife: bursts are in LIVE_GROUPS groups, each of which is left out once. What that
 * does not show comes on top, in the rows that share classes, too: which of the blocks of BEFORE have ended, by their
 * binomial variance; and one block more or less of each row whose blocks end.
 *
 * In 2,000 simulated programs (tests/unit/analyse/live_heap_estimate.c: a leak, a loop, a full cache and a pool of mixed
 * sizes and lifetimes share an allocator that hands out what was freed last) intervals of the leak, the cache, the
 * pool and BEFORE hold the truth in 94 to 98 %, and bias is below 1 %. Known errors:
 *
 * - A loop that holds 1 % of what lives has 9 % too much.
 * - Where freed blocks come back in the order in which they were freed, intervals hold in 91 to 96 %; bias is below
 *   1.5 %.
 * - A leak that owns its class beside a pool that churns there is 2.5 % too small (200 programs; one allocation in 10 seen, 60
 *   bursts); with 120 bursts, one in 50, and ten times as many leaked: -0.3 % (50 programs), where the pool, which holds 3 % of
 *   what lives, is 30 % too small, within its interval. A row that has more than four fifths of its pool has 5 % of itself for
 *   a standard error more, for all groups may agree that all is its own: intervals of both leaks hold in all programs.
 * - With fewer than some 20 ends or blocks seen of a site, whether its blocks live or were reused cannot be known:
 *   live_estimate.power says how many ends would have been seen if its blocks ended as its class's do. Intervals of
 *   a site of which no block was seen in use are too narrow.
 * - Where bursts are too short to see an end of a site whose memory a leak takes at once, that site has a part of the leak: CPython,
 *   one float kept in 400 blocks, bursts of 600 calls on a slow machine: the leak was 36 % too small, beyond its interval (4 runs).
 * - In a real program where a leak has nearly all of its class beside a pool that churns (tests/targets/live_truth.c, 1.5 s on
 *   a busy machine, 10 to 15 bursts), the leak was 5.5 % too large and 92.5 % of its intervals held it; the pool, which holds
 *   14 %, was 20 % too small, 85 % (40 runs).
 * - Blocks in a thread's cache count as in use where the walker does not separate them.
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_HEAP_H
#define MEMSCOPE_ANALYSE_LIVE_HEAP_H

#include "analyse/live_estimate.h"
#include "analyse/survival_verdict.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	LIVE_BEFORE = 0, /* the row of blocks in use before the first burst */
	LIVE_CLASSES = 512,
};

struct live_heap;

/* A block in use, by its usable size. */
struct live_block {
	uint64_t addr, bytes;
};

/* What is in use in a process: by address. Between `from` and `end` nothing is known. */
struct live_range {
	uint64_t from, end;
};
struct live_look {
	uint64_t at_ns;
	/* All, or at least those that the addresses of live_heap_addrs() are in; to begin with, a sample. */
	const struct live_block *blocks;
	uint64_t n;
	double one_in;               /* of a sample; 0: all are there                          */
	const uint64_t *class_words; /* of all, by live_class_of(); NULL: of those listed       */
	const struct live_range *unknown;
	uint32_t n_unknown;
};

/* A call seen in a burst. Rows are dense, from 1 on. */
struct live_seen {
	uint64_t addr, size; /* as asked for                                          */
	uint64_t room;       /* usable size that its allocator gives it, about          */
	uint64_t born_ns;
	uint32_t row, thread, burst;
};

/* At most `max` blocks are kept. NULL: out of memory. */
struct live_heap *live_heap_new(uint32_t max, uint64_t seed);
void live_heap_free(struct live_heap *h);
DEFINE_CLEANUP(struct live_heap *, live_heap_freep, live_heap_free)

/* What is in use before the first burst, or but for what was seen in bursts. 0 or -ENOMEM, like all that follow. */
int live_heap_begin(struct live_heap *h, const struct live_look *look);
int live_heap_seen(struct live_heap *h, const struct live_seen *seen);
/* A realloc has taken the block at `addr`, in a burst. */
void live_heap_freed(struct live_heap *h, uint64_t addr, uint64_t at_ns);
/* The first two ages within which reuse is counted together; several intervals between bursts. 1 s. */
void live_heap_unit(struct live_heap *h, uint64_t unit_ns);
/* A burst's calls, and for how many they stand, about: before any weight is known. */
void live_heap_guess(struct live_heap *h, double calls, double stand_for);
/* What calls of `thread` in `burst` stand for; until then they stand for the mean. */
int live_heap_weigh(struct live_heap *h, uint32_t burst, uint32_t thread, double weight);
/* The addresses that the next look must know about, sorted; the caller frees them. */
int live_heap_addrs(const struct live_heap *h, uint64_t **ret_addrs, uint64_t *ret_n);
/* The class of sizes of a block of so many words of 8 bytes: < LIVE_CLASSES. */
uint32_t live_class_of(uint64_t words);
/* Each block is looked up; then the estimates are made, without intervals. */
int live_heap_look(struct live_heap *h, const struct live_look *look);
/* The same estimates, once more: weights are known now. With intervals it takes 17 times as long. */
int live_heap_estimate(struct live_heap *h, bool intervals);
/*
 * What all weights have in common is known within a factor, from `low` to `high`: what each row would come to, `if_low`
 * and `if_high`, of the factors with which all rows add up to what is in use, within what chance explains. 2 to 14 times as
 * long as without intervals.
 */
int live_heap_weights_may_be(struct live_heap *h, double low, double high);

/* Of the rows whose blocks say something. Zeroed to begin with. */
struct live_ages {
	uint32_t *slot_of, n_rows; /* 0: none */
	struct survival *slots;
};
void live_ages_fini(struct live_ages *ages);
/* NULL: too few blocks. `from_s` is the caller's to add. */
const struct survival *live_ages_of(const struct live_ages *ages, uint32_t row);
/* The ages of rows' blocks, after live_heap_estimate(); in place of what `ages` has. 0 or -ENOMEM. */
int live_heap_survival(const struct live_heap *h, struct live_ages *ages);

/* As of the last look. A row that was never seen is zero. */
const struct live_estimate *live_heap_row(const struct live_heap *h, uint32_t row);
/* So many seconds old must a block be to count as old; before live_heap_look(). */
void live_heap_age(struct live_heap *h, uint64_t age_ns);
/* Calls seen of a row so far. */
double live_heap_made(const struct live_heap *h, uint32_t row);

struct live_facts {
	uint32_t blocks;              /* kept now                                            */
	uint64_t in_use;              /* bytes, by the last look: usable sizes of all blocks */
	uint64_t seen;                /* calls passed to live_heap_seen()                     */
	uint64_t reused, freed, gone; /* ends: address seen again; taken by a realloc; by looks */
	uint64_t unknown;             /* answers that could not be had: the block stays as it was */
	double threshold;             /* bytes; 0: all are kept                                */
};
void live_heap_facts(const struct live_heap *h, struct live_facts *ret_facts);

#endif
