/*
 * What the files of live_series share: live_series.c (rows and moments) and live_series_leaks.c (which of them leak). All
 * others include live_series.h.
 */
#ifndef MEMSCOPE_ANALYSE_LIVE_SERIES_PARTS_H
#define MEMSCOPE_ANALYSE_LIVE_SERIES_PARTS_H

#include "analyse/live_series.h"
#include "base/hash.h"

struct live_series_entry {
	struct {
		uint32_t image, stack;
	} key;
	struct live_series_row row;
	bool shrunk;           /* live_series_settle() */
	double before;         /* … the sum of its series */
	struct survival *ages; /* NULL: not known       */
	UT_hash_handle hh;
};

struct live_series {
	struct live_series_entry *entries;
	uint32_t n;
	struct live_series_entry *spare[LIVE_SERIES_SPARE]; /* the one with the least last */
	uint32_t n_spare;
	struct live_series_moved moved;
	struct live_series_row other;
	double times[LIVE_SERIES_TICKS];
	double held[LIVE_SERIES_TICKS], held_now; /* live_series_held(); 0: not known */
	uint32_t n_times, stride;
	uint64_t ticks;
	bool by_age;
};

#endif
