/*
 * What samplers in the targets report (sampled.bpf.c): sums for each stack, and the live blocks.
 *
 * Records come in the order in which they happened, so a free belongs to the block last allocated
 * at its address. Weights are summed one by one (model/estimate.h).
 *
 * A sampler that states its mean distance R between samples, drawn from an exponential (or
 * geometric) distribution, samples a block of s bytes with probability 1 - exp(-s/R): its weight is
 * s over that. jemalloc's and Go's own profiles are scaled by the same rule (jeprof's
 * AdjustSamples; Go's runtime/pprof/protomem.go).
 *
 * Where threads count what they allocate (HotSpot), a sample is taken when a thread's buffer is full, of the object that
 * did not fit: the larger an object, the more often is it that one. It stands for what the thread has allocated since its
 * last sample, itself included. An object that is as large as a buffer never fits: it stands for itself, and
 * what came before it for the thread's next sample. Of a thread that existed before, the first sample stands for half a
 * buffer, which is what it had used of it on the average. So the sum is what was allocated, but for the buffers in use at
 * either end; sites are exact within chance where objects are small against a buffer. After a garbage collection each thread
 * begins a new buffer with any object: one in some 50 samples.
 *
 * Where a sampler reports frees by class (jemalloc 5.3), blocks of a class and size are alike: they
 * have one stack. The freed block is the one allocated at the time that the free states; if there
 * is none, it was allocated before the run.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_SAMPLES_H
#define MEMSCOPE_COLLECT_STREAM_SAMPLES_H

#include "base/cleanup.h"
#include "collect/stream/event_key.h"
#include "model/estimate.h"

#include <stdbool.h>

struct samples;

/* `max_bytes`: what the table of live blocks may take. NULL: out of memory. */
struct samples *samples_new(uint64_t max_bytes);
void samples_free(struct samples *s);
DEFINE_CLEANUP(struct samples *, samples_freep, samples_free)

/* A record of DRAIN_SAMPLE. 0 or -ENOMEM. */
int samples_take(struct samples *s, const void *record);

/* Removes the blocks of images that are `gone`. */
void samples_sweep(struct samples *s, bool (*gone)(void *ctx, const struct proc_id *proc),
		   void *ctx);

/* Σ weights of the live blocks. */
int64_t samples_live_bytes(const struct samples *s);

/* One stack of one thread of one process image: all its allocations, and the live ones. */
struct samples_row {
	const struct event_key *key;
	struct estimate alloc, live;
	/* The caller's: how much of it is in the profiles. */
	int64_t added[4];
	struct estimate added_alloc;
	uint64_t told_samples; /* … and in the series of what lives */
	int64_t told_live;
};
/* Calls `fn` for each; stops at its first error and returns that. */
int samples_each(struct samples *s, int (*fn)(void *ctx, struct samples_row *row), void *ctx);

/* Each live block: when it was allocated (CLOCK_MONOTONIC), and the bytes it stands for. */
void samples_each_live(struct samples *s,
		       void (*fn)(void *ctx, const struct samples_row *row, uint64_t born_ns,
				  uint64_t bytes),
		       void *ctx);

struct samples_stats {
	struct estimate alloc;
	uint64_t frees;         /* of blocks that were followed                             */
	uint64_t unknown_frees; /* from before the run, inherited by a fork, not followed   */
	uint64_t untracked;     /* allocations not followed: no room there or here          */
	uint64_t unreported;    /* allocations whose free the sampler does not report       */
	uint64_t full;          /* of untracked, for want of room here                          */
	uint64_t reused;        /* address reused before a free was seen                    */
	uint64_t ended;         /* samples that went with their process or an exec          */
	double ended_bytes;
	uint64_t by_source;     /* bit n: source n has reported an allocation */
	double rate;            /* mean bytes between samples, as the weights have it; 0: unknown */
};
void samples_stats(const struct samples *s, struct samples_stats *ret_stats);

#endif
