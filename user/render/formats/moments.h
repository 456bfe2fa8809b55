/*
 * What the stacks of a profile held at one moment after another, for formats that are made of such snapshots. Known of
 * profiles with a value space_time that has times (import/censuses.h), and of those beside which is a table live_series
 * (render/tables/live_series_csv.h): its columns are stacks by the names of their functions, and OTHER.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_MOMENTS_H
#define MEMSCOPE_RENDER_FORMATS_MOMENTS_H

#include "model/profile.h"
#include "model/time_table.h"

enum { MOMENTS_MAX = 100 };

struct moment {
	int64_t ns;      /* since the profile's begin */
	int64_t bytes;   /* of all stacks             */
	uint32_t row;    /* of the table, or a bin    */
};

struct moments {
	const struct profile *p;
	const struct time_table *table; /* NULL: bins of the profile's times */
	uint32_t which;                 /* of the value types that have times */
	struct moment all[MOMENTS_MAX]; /* by time; of each stretch of rows or bins the one that held most */
	uint32_t n;                     /* 0: nothing is known over time */
};

/* 0 or -ENOMEM. Borrows from `p`. */
int moments_find(const struct profile *p, struct moments *ret);
/* One of them by stack: a profile of one value type in bytes that adds up to its `bytes`. -ENOMEM. */
int moments_profile(const struct moments *m, uint32_t i, struct profile **ret_profile);

#endif
