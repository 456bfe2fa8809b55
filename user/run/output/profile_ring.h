/*
 * What the profiles gained lately: short stretches of time, in memory, the oldest of which go. A window that a
 * trigger asks for has them and what came since.
 *
 * What has gone is in no window; it stays in the run's totals.
 */
#ifndef MEMSCOPE_RUN_OUTPUT_PROFILE_RING_H
#define MEMSCOPE_RUN_OUTPUT_PROFILE_RING_H

#include "base/cleanup.h"
#include "base/err.h"
#include "run/pipeline.h"

struct run;
struct profile_ring;

/* For the last `before_s`, in `max_bytes` at most: with more to hold it goes less far back. NULL: out of
 * memory. */
struct profile_ring *profile_ring_new(double before_s, uint64_t max_bytes);
void profile_ring_free(struct profile_ring *ring);
DEFINE_CLEANUP(struct profile_ring *, profile_ring_freep, profile_ring_free)

/* When profile_ring_turn() is due; CLOCK_MONOTONIC. */
uint64_t profile_ring_due(const struct profile_ring *ring);
/* Takes what came since the last call. 0, or as pipeline_now(). */
int profile_ring_turn(struct profile_ring *ring, struct run *r, struct err *e);
/* All that it holds, and what came since. 0, or as pipeline_now(). */
int profile_ring_take(struct profile_ring *ring, struct run *r, struct profile_now *ret_now,
		      struct err *e);

struct profile_ring_stats {
	uint64_t peak_bytes, max_bytes;
	uint64_t cut_short; /* times that it had to go less far back, for want of room */
};
void profile_ring_stats(const struct profile_ring *ring, struct profile_ring_stats *ret_stats);

#endif
