/*
 * When the values of a sum of profiles came, from the times of its parts: windows of one run that were merged.
 *
 * Bins of a part lie on other moments than those of the sum, into which they are spread in proportion: that moves a value by
 * up to a bin, and loses nothing.
 */
#ifndef MEMSCOPE_MODEL_TIME_MERGE_H
#define MEMSCOPE_MODEL_TIME_MERGE_H

#include "model/profile.h"

/*
 * `sum` has the samples of `part`, which is of the same dict, and begins at `begin_ns` since the Epoch. Of a part that
 * has no times its values are spread over its duration. The value types that have times are those of the first part that
 * has any; until then nothing is added (-EAGAIN: call again for this part later). 0 or -ENOMEM.
 */
int time_merge_add(struct profile *sum, const struct profile *part, int64_t begin_ns);

#endif
