/*
 * How often a service's account of what programs cost (costs.h) is on. To switch it on and off is to rewrite the kernel's code on all CPUs, an
 * eighth of what an idle host's service costs: once what an event costs is known, that is done rarely. Known it is when the figures of
 * some windows in a row agreed with what was expected; by one that does not, and where sources come to be gathered in another part of the
 * time, it has to be learned anew. Pure arithmetic.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_COST_PACE_H
#define MEMSCOPE_COLLECT_OVERHEAD_COST_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { COST_PACE_AGREE = 3 };
#define COST_PACE_RARELY_NS 60000000000ULL
#define COST_PACE_NEAR                                                                             \
	0.5 /* of what was expected: figures of one load are no nearer to each other */

/* Zero-initialise. */
struct cost_pace {
	uint32_t agreed;
	bool any, moved; /* of the window in hand */
};

/* A figure of a window, and what was expected; 0: nothing yet. */
void cost_pace_figure(struct cost_pace *p, double expected, double found);
/* … which was the last one. Where there was none, the window says nothing. */
void cost_pace_window(struct cost_pace *p);
void cost_pace_anew(struct cost_pace *p);
/* The time from one window to the next, where it is `often_ns` until the cost is known. */
uint64_t cost_pace_every_ns(const struct cost_pace *p, uint64_t often_ns);

#endif
