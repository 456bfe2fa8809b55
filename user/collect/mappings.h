/*
 * What processes map by themselves (bpf/mappings.bpf.c): who made which range, and what of it is there.
 *
 * Bytes are of address space, in whole pages: nothing says that they were ever touched. They are counted
 * once, where they were made: a range that mremap() moves stays whose it was, what that adds at its end
 * belongs to who added it, and what is mapped over by something else is gone. A mapping is there as long
 * as some page of it is.
 *
 * What mremap() adds to a mapping is of its kind; where that is not known, it counts as anonymous.
 *
 * Only what was made in the run is known: what is given back of anything else (from before, a parent's,
 * the allocator's own) changes nothing here.
 *
 * Calls of several threads: records come in the order in which calls returned, which need not be that in
 * which they took effect. A range that is handed out anew proves that its old one is gone, and a call that
 * began before a range was made was not about that one.
 */
#ifndef MEMSCOPE_COLLECT_MAPPINGS_H
#define MEMSCOPE_COLLECT_MAPPINGS_H

#include "abi.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct mappings;

/* `max_bytes`: what the ranges that are there may take here. NULL: out of memory. */
struct mappings *mappings_new(uint64_t max_bytes);
void mappings_free(struct mappings *m);
DEFINE_CLEANUP(struct mappings *, mappings_freep, mappings_free)

/* 0 or -ENOMEM. What makes no sense is left out. */
int mappings_take(struct mappings *m, const struct ms_mapping_rec *rec);
/* What images that are `gone` still had is no longer there. */
void mappings_sweep(struct mappings *m, bool (*gone)(void *ctx, const struct ms_proc *proc), void *ctx);

/* Of a stack, or of a kind of memory. */
struct mappings_sum {
	uint64_t made, made_bytes;
	uint64_t gone_bytes;       /* given back, or mapped over            */
	uint64_t live, live_bytes;
};

/* One stack of one thread of one process image, and one kind of memory (key.memory). */
struct mappings_row {
	struct ms_total_key key;   /* source MS_ALLOC */
	uint64_t cgroup_id;
	struct mappings_sum sum;
};
/* Calls `fn` for each; stops at its first error and returns that. */
int mappings_each(struct mappings *m, int (*fn)(void *ctx, const struct mappings_row *row), void *ctx);

struct mappings_stats {
	struct mappings_sum by[MS_N_MEMORY_KINDS];
	uint64_t ended_bytes;      /* went with their process or an exec: in no other number but made */
	uint64_t full;             /* mappings that are made and not followed: no room */
};
void mappings_stats(const struct mappings *m, struct mappings_stats *ret_stats);

#endif
