/*
 * What each stack holds over time: the bytes it had allocated and that were not freed, at every tick.
 *
 * Memory is bounded. There are BANDS_TICKS moments at most: when they are used up every other one is
 * dropped, and from then on only every second, fourth, … tick is kept. Of stacks there are BANDS_MAX;
 * what comes later is OTHER.
 */
#ifndef MEMSCOPE_ANALYSE_BANDS_H
#define MEMSCOPE_ANALYSE_BANDS_H

#include "analyse/course.h"
#include "base/cleanup.h"
#include "model/ids.h"

#include <stdbool.h>
#include <stdint.h>

#define BANDS_TICKS 256
#define BANDS_MAX   4096

struct bands;

/* One stack of one process image. `image` is a number of the caller's. */
struct band {
	uint32_t image;
	stack_id stack;
	int64_t live;                 /* bytes, now                                      */
	uint64_t made;                /* blocks allocated so far                         */
	uint64_t old;                 /* blocks that bands_old() was told of             */
	double area;                  /* bytes x ticks: who held most, for longest       */
	int64_t bytes[BANDS_TICKS];   /* live at each moment                             */
	uint64_t made_by[BANDS_TICKS];
};

struct bands *bands_new(void);
void bands_free(struct bands *b);
DEFINE_CLEANUP(struct bands *, bands_freep, bands_free)

/* Blocks were allocated (both positive) or given back (both negative). 0 or -ENOMEM. */
int bands_add(struct bands *b, uint32_t image, stack_id stack, int64_t blocks, int64_t bytes);
/* The process has ended, or become another: what it held is gone. */
void bands_drop(struct bands *b, uint32_t image);
/* A moment, in seconds since the run began. */
void bands_tick(struct bands *b, double t_s);
/* A block is there at the end and older than the age that bands_leaks() is given. */
void bands_old(struct bands *b, uint32_t image, stack_id stack);

/* The moments kept. Returns how many. */
uint32_t bands_times(const struct bands *b, const double **ret_times);
/* At most `cap` by area, the largest first. Returns how many. */
uint32_t bands_rank(const struct bands *b, const struct band **ret_bands, uint32_t cap);
/* What all others hold at moment `i`. */
int64_t bands_other(const struct bands *b, const struct band *const *shown, uint32_t n, uint32_t i);

/*
 * A stack whose memory grows (course.h) and stays: of the blocks it had allocated `age_s` before the
 * end, at least half are there still. Survival tells a leak from a queue that is behind.
 */
#define LEAK_SURVIVAL 0.5

struct leak {
	const struct band *band;
	struct course course;
	double survived, age_s; /* share of the blocks that were made before then */
};

/* At most `cap`, the fastest first. Returns how many. */
uint32_t bands_leaks(const struct bands *b, double age_s, struct leak *ret_leaks, uint32_t cap);

#endif
