/*
 * How many objects of each type a process had, and how many bytes, at several moments: what censuses of its heap found.
 *
 * Memory is bounded. At most CENSUS_TIMES moments are kept: when they are used up, every second one goes, and from then on
 * only every second, fourth, … census stays; the last one always does. At most CENSUS_TYPES types have a row: a new one takes
 * the place of the one that never had more bytes than it, and what that had counts among the others from then on.
 */
#ifndef MEMSCOPE_ANALYSE_CENSUS_SERIES_H
#define MEMSCOPE_ANALYSE_CENSUS_SERIES_H

#include "base/cleanup.h"

#include <stdint.h>

enum { CENSUS_TIMES = 256, CENSUS_TYPES = 256, CENSUS_NAME = 160 };

/* One type at one moment. */
struct census_count {
	char name[CENSUS_NAME];
	uint64_t bytes, objects;
};

struct census_row {
	char name[CENSUS_NAME];
	uint64_t most; /* bytes that it had at one moment */
	uint64_t bytes[CENSUS_TIMES], objects[CENSUS_TIMES];
};

struct census_series;

/* NULL when out of memory. */
struct census_series *census_series_new(void);
void census_series_free(struct census_series *s);
DEFINE_CLEANUP(struct census_series *, census_series_freep, census_series_free)

/* A census at `wall_ns` (ns since the Epoch): `n` types, and `all` of them and of others that are not listed. */
void census_series_add(struct census_series *s, int64_t wall_ns, const struct census_count *types, uint32_t n,
		       const struct census_count *all);

/* When the censuses that are kept were. Returns how many. */
uint32_t census_series_times(const struct census_series *s, const int64_t **ret_wall_ns);
/* At most `cap` types by bytes, summed over all moments, the largest first. Returns how many. */
uint32_t census_series_rank(const struct census_series *s, const struct census_row **ret_rows, uint32_t cap);
/* … by how many bytes they have more at the last moment than at the first; those that do. */
uint32_t census_series_grown(const struct census_series *s, const struct census_row **ret_rows, uint32_t cap);
/* All but `shown` at moment `i`: bytes and objects. */
struct census_count census_series_other(const struct census_series *s, const struct census_row *const *shown, uint32_t n,
					uint32_t i);

#endif
