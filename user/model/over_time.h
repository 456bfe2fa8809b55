/*
 * What a file says over time beside a profile's samples: figures, and moments that its program marked. It belongs to
 * the profile (profile_set_over_time()); what is merged or subtracted has none.
 */
#ifndef MEMSCOPE_MODEL_OVER_TIME_H
#define MEMSCOPE_MODEL_OVER_TIME_H

#include "base/cleanup.h"
#include "model/ids.h"
#include "model/time_table.h"

#include <stdbool.h>

enum { OVER_TIME_SERIES = 4, OVER_TIME_MARKS = 2000 };

struct over_time_series {
	const char *id, *title; /* as a run's file of the same columns is named: "trend" (literals) */
	struct time_table *table;
};

struct over_time_mark {
	double s;       /* since the profile's begin */
	string_id text;
	bool message;   /* one of many that are logged; else a marker, which stands for a phase */
};

struct over_time {
	struct over_time_series series[OVER_TIME_SERIES];
	uint32_t n_series;
	struct over_time_mark *marks; /* by time */
	uint32_t n_marks, cap_marks;
	uint64_t omitted; /* marks beyond OVER_TIME_MARKS */
};

/* NULL: out of memory. */
struct over_time *over_time_new(void);
void over_time_free(struct over_time *o);
DEFINE_CLEANUP(struct over_time *, over_time_freep, over_time_free)

/* `table` becomes its own, also on failure: -ENOSPC where there are OVER_TIME_SERIES. */
int over_time_add_series(struct over_time *o, const char *id, const char *title, struct time_table *table);
/* In any order; beyond OVER_TIME_MARKS they are counted, and a marker takes the place of a message. 0 or -ENOMEM. */
int over_time_add_mark(struct over_time *o, const struct over_time_mark *mark);
void over_time_sort(struct over_time *o);

/* A table of `n_columns` columns and `n_rows` rows, all NAN; NULL: out of memory. */
struct time_table *time_table_new(const char *const *names, uint32_t n_columns, uint32_t n_rows);

#endif
