/*
 * What processes map themselves (bpf/mappings.bpf.c): which stack made which range, and what of it
 * remains.
 *
 * Bytes are of address space, in whole pages, touched or not. They are counted once, where they
 * were made: a range that mremap() moves stays with its stack, what mremap() adds at its end
 * belongs to the adding stack, and a range that is mapped over has gone. A mapping remains as long
 * as one of its pages does.
 *
 * What mremap() adds to a mapping is of the mapping's kind; where that is unknown, it counts as
 * anonymous.
 *
 * Only ranges made in the run are known: unmapping anything else (pre-existing, a parent's, the
 * allocator's own) changes nothing here.
 *
 * Calls of several threads: records come in the order in which calls returned, which need not be
 * the order in which they took effect. A range that is handed out anew proves that its old one has
 * gone, and a call that began before a range was made did not refer to it.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_MAPPINGS_H
#define MEMSCOPE_COLLECT_STREAM_MAPPINGS_H

#include "base/cleanup.h"
#include "collect/stream/event_key.h"
#include "model/source.h"

#include <stdbool.h>
#include <stdint.h>

struct mappings;

/* `max_bytes`: memory for the present ranges. NULL: out of memory. */
struct mappings *mappings_new(uint64_t max_bytes);
void mappings_free(struct mappings *m);
DEFINE_CLEANUP(struct mappings *, mappings_freep, mappings_free)

/* A record of DRAIN_MAPPING. 0 or -ENOMEM. Contradictory records are ignored. */
int mappings_take(struct mappings *m, const void *record);
/* Ends the ranges of images that are `gone`. */
void mappings_sweep(struct mappings *m, bool (*gone)(void *ctx, const struct proc_id *proc),
		    void *ctx);

/* Sums of a stack, or of a kind of memory. */
struct mappings_sum {
	uint64_t made, made_bytes;
	uint64_t gone_bytes;       /* unmapped, or mapped over               */
	uint64_t live, live_bytes;
};

/* One stack of one thread of one process image, and one kind of memory. */
struct mappings_row {
	const struct event_key *key;
	uint64_t cgroup_id;
	struct mappings_sum sum;
};
/* Calls `fn` for each; stops at its first error and returns that. */
int mappings_each(struct mappings *m, int (*fn)(void *ctx, const struct mappings_row *row),
		  void *ctx);

struct mappings_stats {
	struct mappings_sum by[N_MEMORY_KINDS];
	uint64_t ended_bytes;      /* ended with their process or an exec: otherwise only in made */
	uint64_t full;             /* mappings made but not followed: no room */
};
void mappings_stats(const struct mappings *m, struct mappings_stats *ret_stats);

#endif
