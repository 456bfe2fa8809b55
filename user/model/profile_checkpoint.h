/*
 * What a growing profile gained since a moment: the windows of a run.
 *
 * A checkpoint is the profile's from its first use to profile_checkpoint_fini(): it follows where samples are put
 * together (profile_fold.h), so it stays where it is. When the profile is freed, it is that of an empty one again.
 */
#ifndef MEMSCOPE_MODEL_PROFILE_CHECKPOINT_H
#define MEMSCOPE_MODEL_PROFILE_CHECKPOINT_H

#include "model/profile.h"

/* The values of a profile at a moment. A zeroed one is that of an empty profile. */
struct profile_checkpoint {
	struct profile *of; /* NULL: not used yet */
	struct profile_checkpoint *next;
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
int profile_since(struct profile *p, struct profile_checkpoint *m, struct profile **ret_gained);
/* `m` moves on to now. 0 or -ENOMEM: it stays. */
int profile_checkpoint_take(struct profile *p, struct profile_checkpoint *m);
/* Has the sample the values that it had at `m`? What came later has not. */
bool profile_checkpoint_has(const struct profile_checkpoint *m, uint32_t sample);

#endif
