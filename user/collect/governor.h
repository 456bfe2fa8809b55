/*
 * Whether exact allocation tracing may run: calls × cost against the user's budget. Pure
 * arithmetic; alloc_probes.h measures the rate and knows what a probe costs here.
 *
 * Percentages are of one CPU: 5 % is 50 ms of probe time in a second.
 */
#ifndef MEMSCOPE_COLLECT_GOVERNOR_H
#define MEMSCOPE_COLLECT_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/* A pair is an allocation and its free: three hits (entry, return, free). */
#define GOVERNOR_HITS_PER_PAIR 3

/* Cost of `pairs_per_s` allocations and frees a second at `pair_ns` each. */
double governor_percent(double pairs_per_s, double pair_ns);

/* How many calls of a slice of `slice_ms` already prove that the budget would be passed. */
uint64_t governor_enough(double pair_ns, double max_percent, uint32_t slice_ms);

/*
 * When the next slice may begin (slicer.h), and how much tracing of every call may still cost
 * (exact_watch.h): credit grows with time, by the budget's share of it, up to
 * that of one slice, and what a slice cost is taken from it. So in any stretch of time T, slices
 * that keep to `burst_ns` cost no more than share * T + burst_ns; what one costs beyond that is waited
 * for before the next.
 */
struct pacer {
	double share;      /* of one CPU, 0.05 is 5 %         */
	double burst_ns;   /* what a slice may cost           */
	double credit_ns, spent_ns;
	uint64_t at_ns;
};

void pacer_init(struct pacer *p, double max_percent, double burst_ns, uint64_t now_ns);
void pacer_spend(struct pacer *p, uint64_t now_ns, double cost_ns);
/* From when on there is credit for a whole slice. */
uint64_t pacer_due_ns(const struct pacer *p);

#endif
