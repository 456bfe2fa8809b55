/*
 * Keeps what listening to a sampler costs its target within the user's budget: when there are more
 * samples than that allows, only one in 2^shift of them is kept, at random, and weighs as much more
 * (sampled.bpf.c). What is left out costs its trap and no stack. Pure arithmetic, in percent of one
 * CPU.
 */
#ifndef MEMSCOPE_COLLECT_THINNER_H
#define MEMSCOPE_COLLECT_THINNER_H

#include <stdbool.h>
#include <stdint.h>

#define THINNER_SHIFT_MAX 10

enum thinner_says {
	THINNER_FINE,
	THINNER_CHANGED, /* `shift` is another one      */
	THINNER_STOP,    /* the traps alone are too much */
};

/* Zero-initialise, set the first. */
struct thinner {
	double max_percent;
	uint32_t shift;
	uint64_t last_ns, last_cost_ns, changed_ns;
	double recent;         /* moving average, percent, time constant one second */
};

/* Counts since the run began: events at allocation sites, those of them that were kept, and frees. */
enum thinner_says thinner_tick(struct thinner *t, uint64_t now_ns, uint64_t allocs, uint64_t kept,
			       uint64_t frees);

#endif
