/*
 * A part of a profile by time: what its samples have in some bins (sample_times.h).
 */
#ifndef MEMSCOPE_MODEL_TIME_PART_H
#define MEMSCOPE_MODEL_TIME_PART_H

#include "base/err.h"
#include "model/profile.h"

/*
 * A profile of what came from `from_ns` to `to_ns` (UINT64_MAX: the end) since the begin of `p`, which has times: whole bins, all
 * that reach into that stretch. It has the value types that have times, begins when the first bin does, lasts as long as
 * its bins, and has times itself. Errors of estimates are of the whole, and not in it. -ERANGE with a sentence: nothing of
 * the profile is there. -ENOMEM.
 */
int profile_time_part(const struct profile *p, uint64_t from_ns, uint64_t to_ns,
		      struct profile **ret_part, struct err *e);

/*
 * Gives `part`, a profile of what `whole` gained in that stretch, the times in it: as `whole` has them, made to add up
 * to the part's values, from a bin that begins with the stretch or less than a bin before. Nothing where `whole` has none. 0 or
 * -ENOMEM.
 */
int profile_part_times(const struct profile *whole, struct profile *part, uint64_t from_ns,
		       uint64_t to_ns);

#endif
