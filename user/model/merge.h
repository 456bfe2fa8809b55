/*
 * Profiles added up, as pprof adds them: equal stacks with equal labels become one sample, durations
 * add, the earliest start is the start, of two periods the larger is kept, and comments of both, each once. Images are one when
 * their build IDs are, whatever path each was mapped under.
 */
#ifndef MEMSCOPE_MODEL_MERGE_H
#define MEMSCOPE_MODEL_MERGE_H

#include "base/err.h"
#include "model/profile.h"

#include <stddef.h>

enum merge_types {
	MERGE_COMMON,  /* keeps the value types that both have, -EDOM when there is none */
	MERGE_SAME,    /* -EDOM unless both have the same, in whatever order              */
};

/* What was not equal although it was added. */
struct merge_info {
	bool periods_differ;     /* counts of samples weigh differently, times do not  */
	bool build_ids_differ;   /* some image of one path is of several build IDs      */
};

/*
 * Adds `more` to `*sum`, which may be replaced by a new one (value types dropped); both are of one
 * dict. `*sum` NULL: becomes a copy. `name` is `more`'s, for sentences. A profile without samples
 * has no say in the value types under MERGE_COMMON. `info` may be NULL; it is only ever set.
 */
int profile_merge(struct profile **sum, const struct profile *more, const char *name,
		  enum merge_types types, struct merge_info *info, struct err *e);

/*
 * Adds `sign` (1 or -1) times each value of `more` to `to`; from[i] is which value of `more` is value
 * i of `to`; NULL: value i. 0 or -ENOMEM.
 */
int profile_add_all(struct profile *to, const struct profile *more, const uint32_t *from, int sign);

/* "samples/count, cpu/nanoseconds" */
void profile_list_types(const struct profile *p, char *out, size_t cap);
/* The value type of equal name and unit, -1 when there is none. */
int profile_same_type(const struct profile *p, const struct value_type *t);

#endif
