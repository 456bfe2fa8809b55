/* What the files of profiles share. For model/ only. */
#ifndef MEMSCOPE_MODEL_PROFILE_PARTS_H
#define MEMSCOPE_MODEL_PROFILE_PARTS_H

#include "model/profile.h"

struct profile_checkpoint;

/* Its checkpoints, a list by `next`. */
struct profile_checkpoint **profile_checkpoints(struct profile *p);
/* `p` is freed: they are those of an empty one. */
void profile_checkpoints_end(struct profile *p);
/* The samples of `from`, which has the same value types, become those of `p`; `from` has none then. */
void profile_take_samples(struct profile *p, struct profile *from);
/* An empty one of the same dict and value types. NULL: out of memory. */
struct profile *profile_like(const struct profile *p);

/*
 * Samples of the checkpoint's profile get other numbers: sample i is (or is part of) to[i] of n_after. 0, and what it would be is in
 * `ret`; or -ENOMEM.
 */
int checkpoint_move(const struct profile_checkpoint *m, const uint32_t *to, uint32_t n_after, struct profile_checkpoint *ret);
/* Its values become those of `from`, which is a moved one; nothing is left there. */
void checkpoint_take_values(struct profile_checkpoint *m, struct profile_checkpoint *from);

#endif
