#include "collect/overhead/sample_throttle.h"

#include <math.h>

/*
 * Measured on Linux 6.18 in a virtual machine, as the costs in alloc_probes.c were: a trap on an
 * instruction that the kernel emulates, a sample with a shallow stack, a free.
 */
#define TRAP_NS   520
#define SAMPLE_NS 1600
#define FREE_NS   500

/* How long a change may take to show before the next one, and how long it must be quiet before more
 * samples are kept again. */
#define SETTLE_NS 250000000ULL
#define QUIET_NS  2000000000ULL

enum sample_throttle_says sample_throttle_tick(struct sample_throttle *t, uint64_t now_ns,
					       uint64_t allocs, uint64_t kept, uint64_t frees)
{
	uint64_t cost_ns = (allocs + frees) * TRAP_NS + kept * SAMPLE_NS + frees * FREE_NS;
	double elapsed_s, keep;

	if (!t->last_ns || now_ns <= t->last_ns) {
		t->last_ns = t->changed_ns = now_ns;
		t->last_cost_ns = cost_ns;
		return SAMPLE_THROTTLE_FINE;
	}
	elapsed_s = (double)(now_ns - t->last_ns) / 1e9;
	keep = exp(-elapsed_s);
	t->recent = t->recent * keep +
		    (double)(cost_ns - t->last_cost_ns) / elapsed_s / 1e7 * (1 - keep);
	t->last_ns = now_ns;
	t->last_cost_ns = cost_ns;
	if (t->recent > t->max_percent && now_ns - t->changed_ns >= SETTLE_NS) {
		if (t->shift == SAMPLE_THROTTLE_SHIFT_MAX)
			return SAMPLE_THROTTLE_STOP;
		t->shift++;
	} else if (t->shift && t->recent < t->max_percent / 4 &&
		   now_ns - t->changed_ns >= QUIET_NS) {
		t->shift--;
	} else {
		return SAMPLE_THROTTLE_FINE;
	}
	t->changed_ns = now_ns;
	return SAMPLE_THROTTLE_CHANGED;
}
