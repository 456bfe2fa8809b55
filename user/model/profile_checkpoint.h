/*
 * What a growing profile gained since a moment: the windows of a run.
 */
#ifndef MEMSCOPE_MODEL_PROFILE_CHECKPOINT_H
#define MEMSCOPE_MODEL_PROFILE_CHECKPOINT_H

#include "model/profile.h"

/* The values of a profile at a moment. A zeroed one is that of an empty profile. */
struct profile_checkpoint {
	int64_t *values;   /* of the samples that there were, in their order */
	uint32_t n;        /* samples                                       */
	struct checkpoint_error *errors; /* of those that have some, likewise */
	uint32_t n_errors;
};

void profile_checkpoint_fini(struct profile_checkpoint *m);

/*
 * A profile of what `p` gained since `m`, without meta, and `m` moves on to now: what it says over
 * any number of calls adds up to `p`, errors of estimates as well. Samples that gained nothing are not in it. -ENOMEM: `m` stays.
 */
int profile_since(const struct profile *p, struct profile_checkpoint *m, struct profile **ret_gained);

#endif
