/*
 * A profile of a window as stores are given it: parts, each small enough for Pyroscope's default limits (4 MiB unpacked,
 * 16,000 samples), which add up to the profile.
 *
 * Of labels `comm` alone stays, as stores make a series of its own of each set of labels: threads and processes would be
 * series that live as long as they do. Commands beyond the 32 with the largest values are "other". Value types that another
 * profile has are left out, and so are estimates' errors and times.
 */
#ifndef MEMSCOPE_RUN_PUSH_PARTS_H
#define MEMSCOPE_RUN_PUSH_PARTS_H

#include "collect/session/sources.h"
#include "model/profile.h"

enum { PARTS_SAMPLES = 15000, PARTS_COMMS = 32, PARTS_BYTES = 4000000 };

/* What a kind of profile is called in stores: "process_cpu", "memory"; those of waits have no "cpu" in them. */
const char *parts_name(enum profile_kind kind);

/* All of it as one, of the value types that are pushed. *ret_profile: NULL where nothing is left. 0 or -ENOMEM. */
int parts_reduce(const struct profile *p, enum profile_kind kind, struct profile **ret_profile);
/* Part `i` of `n`: each n-th sample. Its time is that of the whole and `i` ms, as stores tell profiles of a series by time. */
int parts_take(const struct profile *p, uint32_t i, uint32_t n, struct profile **ret_profile);

#endif
