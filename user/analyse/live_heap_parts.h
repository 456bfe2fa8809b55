/*
 * What the files of live_heap share: live_heap.c (blocks that are kept, ends, looks), live_heap_estimate.c (the
 * estimates) and live_heap_survival.c (ages). All others include live_heap.h.
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_HEAP_PARTS_H
#define MEMSCOPE_ANALYSE_LIVE_HEAP_PARTS_H

#include "analyse/live_divide.h"
#include "analyse/live_fates.h"
#include "analyse/live_heap.h"
#include "base/hash.h"

enum { LIVE_NO_GROUP = LIVE_GROUPS };

/* A block of which it is not known that it has ended. */
struct kept {
	uint64_t addr;
	uint64_t size, born_ns;
	uint32_t usable; /* words; by the look, else as expected              */
	uint32_t row, thread, burst;
	float u;      /* 0 … 1                                             */
	float weight; /* 0: not known yet                                  */
	float then;   /* what a call stood for, about, when it was seen    */
	bool looked;  /* `usable` is the look's                            */
	UT_hash_handle hh;
};

/* One that has ended, whose weight is not known yet. */
struct ended {
	uint32_t row, thread, burst;
	uint16_t class;
	bool before; /* only its making counts: it ended in its own burst  */
	float mult;
	double size;
};

/* A row's blocks of one class: sums of weights, by group; LIVE_NO_GROUP is of certain ones. */
struct cell {
	struct {
		uint32_t row, class;
	} key;
	double in_use[LIVE_GROUPS + 1]; /* usable bytes */
	double blocks, old, plain, bytes[LIVE_GROUPS + 1];
	double reused; /* of in_use, but one group: that have ended, by live_fates.h    */
	double chance; /* variance of the others' sum: by which blocks were seen            */
	double unsure; /* variance of `reused`: which of them have ended                    */
	double ends;
	double one; /* variance of one block more or less, of those that may have ended */
	uint64_t seen;
	uint64_t n_ends;
	double v, vc;
	struct cell *next; /* of the same class                                  */
	UT_hash_handle hh;
};

struct settled {
	struct {
		uint32_t burst, thread;
	} key;
	double weight;
	UT_hash_handle hh;
};

/* Which of `fates` is of a row's blocks of a class. */
struct fate {
	struct {
		uint32_t row, class;
	} key;
	uint32_t at;
	UT_hash_handle hh;
};

enum { LIVE_MOMENTS = 32 };

/* What rows were estimated to hold after a look, and how many bursts there were by then. */
struct live_moment {
	uint64_t at_ns;
	double bursts;
	float *rows;
	uint32_t n_rows;
};

/* A block that ended after SURVIVAL_YOUNG parts of the run, as long as it was then. */
struct live_late {
	uint64_t born_ns, end_ns;
	uint32_t row, burst;
	float rank, stands_for;
};

struct live_heap {
	struct kept *kept;
	uint32_t max;
	struct cell *cells, *by_class[LIVE_CLASSES];
	struct settled *settled;
	struct ended *ended;
	uint32_t n_ended, room_ended;
	double weights, n_weights; /* of those that are known: their mean is the others' */
	/* live_heap_guess(): in all, and means of the last ones, about. */
	struct {
		double calls, stand_for;
	} guessed, lately;
	uint32_t settled_to; /* the last burst whose weights came                   */
	double scale; /* of all weights, while it is asked what becomes of estimates: else 1 */
	/* Of what is in use and not of BEFORE: what no row explains, in each pool by what its rows come to over the
	 * variance of that, and the variance of the sum. */
	struct {
		double left, v;
	} fit;
	double threshold;
	uint64_t random;
	uint64_t at_ns, age_ns;
	uint64_t before_ns;          /* of the look before */
	bool sampled;                /* BEFORE: some of its blocks are not known */
	double in_use[LIVE_CLASSES]; /* bytes, by the last look */
	struct live_estimate *rows;
	double *made;
	struct fate *fate_of;
	struct live_fates *fates;
	uint32_t n_fates, room_fates;
	double unit_ns;
	struct live_share *shares; /* of the pool being estimated, and where a row is among them */
	uint32_t *share_of;
	uint32_t n_rows;
	uint64_t began_ns; /* the first moment: LIVE_MOMENTS are kept, then every second one, …   */
	struct live_moment moments[LIVE_MOMENTS];
	uint32_t n_moments, moment_stride;
	uint64_t n_looks;
	double n_bursts; /* live_heap_guess() */
	struct live_late *late;
	uint32_t n_late, room_late;
	struct live_facts facts;
};

/* By how much one that was kept weighs more, because others were not. */
double live_heap_kept_for(const struct live_heap *h, uint64_t size);
/* Of all whose weights are known; else what was guessed; else 1. */
double live_heap_mean_weight(const struct live_heap *h);
/* 0: not known yet. */
double live_heap_weight_of(const struct live_heap *h, uint32_t burst, uint32_t thread);
double live_heap_units_of(const struct live_heap *h, const struct kept *k, uint64_t at_ns);
/* Of those whose rank is under `threshold` none is kept. */
double live_heap_rank(const struct kept *k);
/* Rows' estimates are as of now; the block has ended. 0 or -ENOMEM. */
int live_heap_note_moment(struct live_heap *h, uint64_t at_ns);
void live_heap_free_moments(struct live_heap *h);
int live_heap_note_late(struct live_heap *h, const struct kept *k, uint64_t end_ns);
/* The probability that it has not ended; after live_heap_estimate(). */
double live_heap_lives(const struct live_heap *h, const struct kept *k);
/* Those of the block's row and class. NULL: out of memory. */
struct live_fates *live_heap_fates_of(struct live_heap *h, const struct kept *k);

#endif
