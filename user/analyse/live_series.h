/*
 * Live memory of each stack over time: the bytes it had allocated and that were not freed, at every
 * tick.
 *
 * Memory is bounded. At most LIVE_SERIES_TICKS moments are kept: when they are used up every other
 * one is dropped, and from then on only every second, fourth, … tick is kept. At most
 * LIVE_SERIES_MAX stacks have a row. When they are used up, each tick finds the LIVE_SERIES_SPARE that hold least;
 * a new stack takes the place of one of these, whose series goes to OTHER, as do frees of what it still held. So
 * one that grows for hours has a row although it came late, and one that keeps nothing has none for long.
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_SERIES_H
#define MEMSCOPE_ANALYSE_LIVE_SERIES_H

#include "analyse/survival_verdict.h"
#include "analyse/trend_shape.h"
#include "base/cleanup.h"
#include "model/ids.h"

#include <stdbool.h>
#include <stdint.h>

#define LIVE_SERIES_TICKS 256
#define LIVE_SERIES_MAX   4096
#define LIVE_SERIES_SPARE 512

struct live_series;

/*
 * Of what a stack holds at the end, where that is an estimate: squares of half 95 % intervals, down and up, that add
 * up over independent parts; and bytes that are wrong in the same direction for all, and add up as they are.
 */
struct live_series_error {
	double low2, high2;
	double below, above;
};

/* One stack of one process image. `image` is a number of the caller's. */
struct live_series_row {
	uint32_t image;
	stack_id stack;
	int64_t live;                     /* bytes, now                                      */
	uint64_t made;                    /* blocks allocated so far                         */
	uint64_t old;                     /* blocks passed to live_series_old()              */
	double final;                     /* bytes passed to live_series_final()             */
	struct live_series_error error;   /* passed to live_series_error()                   */
	double area;                      /* bytes x ticks: held most, for longest           */
	int64_t bytes[LIVE_SERIES_TICKS]; /* live at each moment                             */
	uint64_t made_by[LIVE_SERIES_TICKS];
};

struct live_series *live_series_new(void);
void live_series_free(struct live_series *b);
DEFINE_CLEANUP(struct live_series *, live_series_freep, live_series_free)

/* Blocks were allocated (both positive) or freed (both negative). 0 or -ENOMEM. */
int live_series_add(struct live_series *b, uint32_t image, stack_id stack, int64_t blocks,
		    int64_t bytes);
/* The process has ended or called exec: its memory is gone. */
void live_series_drop(struct live_series *b, uint32_t image);
/* What all hold together at the ticks that follow, where that is known and no sum of estimates; bytes. */
void live_series_held(struct live_series *b, double bytes);
/* What it was more at the last moment than at the first. false: not known. */
bool live_series_held_grew(const struct live_series *b, double *ret_bytes);
/* A moment, in seconds since the run began. */
void live_series_tick(struct live_series *b, double t_s);
/* So many blocks are live at the end, and older than the age passed to live_series_leaks(). */
void live_series_old(struct live_series *b, uint32_t image, stack_id stack, uint64_t blocks);

/*
 * Where what was added are estimates in a unit of their own: what a stack holds now, in bytes, is the sum of what
 * this was called with. live_series_settle() then multiplies each stack's series accordingly; of one that has less than half
 * of its most by then, as all of them together are. No moment has more than live_series_held().
 */
void live_series_final(struct live_series *b, uint32_t image, stack_id stack, double bytes);
void live_series_settle(struct live_series *b);
/* Adds to the stack's; see below. */
void live_series_error(struct live_series *b, uint32_t image, stack_id stack,
		       const struct live_series_error *error);

/*
 * Where blocks are seen by chance, and series are estimates: the verdict is that of the ages of blocks (survival_verdict.h), and
 * not of the series' shape, to which few blocks give steps.
 */
void live_series_by_age(struct live_series *b);
/* Adds to the stack's. Without any it is no leak. 0 or -ENOMEM. */
int live_series_survival(struct live_series *b, uint32_t image, stack_id stack,
			 const struct survival *ages);

/* When most was live in all, of the moments kept, and how much, with a 95 % interval; after live_series_settle(). */
struct live_series_peak {
	double t_s, bytes, low, high;
	bool held; /* it is live_series_held(), no estimate */
};
/* false: nothing was ever live at one of them. */
bool live_series_peak(const struct live_series *b, struct live_series_peak *ret_peak);

/* The moments kept. Returns how many. */
uint32_t live_series_times(const struct live_series *b, const double **ret_times);
/* At most `cap` by area, the largest first. Returns how many. */
uint32_t live_series_rank(const struct live_series *b, const struct live_series_row **ret_rows,
			  uint32_t cap);
/* Rows that made room for others, and what they held then, which is in OTHER. */
struct live_series_moved {
	uint64_t rows, bytes;
};
struct live_series_moved live_series_moved(const struct live_series *b);

/* What all others hold at moment `i`. */
int64_t live_series_other(const struct live_series *b, const struct live_series_row *const *shown,
			  uint32_t n, uint32_t i);

/*
 * A stack whose memory grows (trend_shape.h) and stays: of the blocks it had allocated `age_s`
 * before the end, at least half are still live. Survival distinguishes a leak from a queue that is
 * behind.
 */
#define LEAK_SURVIVAL 0.5

/*
 * What matters in hours is less than in a minute: of longer series LIVE_SERIES_LEAST_KB * 60 s / length, but
 * LIVE_SERIES_FLOOR_KB at least. Growth by less than TREND_SHAPE_MIN_KB must be beyond its interval, too.
 *
 * Where live_series_error() was called, the interval of a slope has more than the line's own. An estimate of what lives is
 * a sum over blocks that were seen by chance, and they stay in the sum: its error is a random walk, which bends the line
 * itself and hardly shows beside it. A line through one has 6/5 of the variance that its ends' difference has (Durlauf
 * and Phillips, Econometrica 56, 1988); of the variance of what lives in the end a piece has what it has of its growth.
 */
#define LIVE_SERIES_LEAST_KB 512
#define LIVE_SERIES_FLOOR_KB 32

struct leak {
	const struct live_series_row *row;
	struct trend_shape shape;
	double survived, age_s; /* live share of the blocks allocated before then */
	/* By ages: seen blocks that reached that age and are in use, and those that ended later. 0: by shape. */
	double sampled, ended, sampled_age_s;
};

/* At most `cap`, the fastest first. Returns how many. */
uint32_t live_series_leaks(const struct live_series *b, double age_s, struct leak *ret_leaks,
			   uint32_t cap);
/* Stacks that grow, whatever becomes of their blocks (`survived` is 1): where only the rise is known. */
uint32_t live_series_growing(const struct live_series *b, struct leak *ret_rows, uint32_t cap);
/* Stacks that grew by what matters, have stayed at the level since and still hold half of that: the largest
 * rise first. */
uint32_t live_series_stopped(const struct live_series *b, double age_s, struct leak *ret_rows,
			     uint32_t cap);

#endif
