/*
 * Keeps the cost of listening to a sampler within the user's budget: when there are more samples
 * than it allows, only one in 2^shift is kept, at random, and weighs accordingly more
 * (sampled.bpf.c). A dropped sample costs its trap and no stack. Pure arithmetic, in percent of one
 * CPU.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_SAMPLE_THROTTLE_H
#define MEMSCOPE_COLLECT_OVERHEAD_SAMPLE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#define SAMPLE_THROTTLE_SHIFT_MAX 10

enum sample_throttle_says {
	SAMPLE_THROTTLE_FINE,
	SAMPLE_THROTTLE_CHANGED, /* `shift` has changed         */
	SAMPLE_THROTTLE_STOP,    /* the traps alone exceed the limit */
};

/* Zero-initialise, set the first. */
struct sample_throttle {
	double max_percent;
	uint32_t shift;
	uint64_t last_ns, last_cost_ns, changed_ns;
	double recent;         /* moving average, percent, time constant one second */
};

/* Counts since the run began: events at allocation sites, those of them that were kept, and frees. */
enum sample_throttle_says sample_throttle_tick(struct sample_throttle *t, uint64_t now_ns, uint64_t allocs, uint64_t kept,
			       uint64_t frees);

#endif
