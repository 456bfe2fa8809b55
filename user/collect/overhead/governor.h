/*
 * Whether exact allocation tracing may run: calls × cost against the user's budget. Pure
 * arithmetic; alloc_probes.h measures the call rate and the cost of a probe on this machine.
 *
 * Percentages are of one CPU: 5 % is 50 ms of probe time in a second.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_GOVERNOR_H
#define MEMSCOPE_COLLECT_OVERHEAD_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/* A pair is an allocation and its free: three hits (entry, return, free). */
#define GOVERNOR_HITS_PER_PAIR 3

/* Cost of `pairs_per_s` allocations and frees a second at `pair_ns` each. */
double governor_percent(double pairs_per_s, double pair_ns);

/* The number of calls in a burst of `burst_ms` that already proves that the budget would be
 * exceeded. */
uint64_t governor_enough(double pair_ns, double max_percent, uint32_t burst_ms);

/*
 * When the next burst may begin (burst_timer.h), and how much tracing of every call may still cost
 * (exact_limiter.h). Credit grows by the budget's share of the time, up to that of one burst; the
 * cost of a burst is subtracted. So in any stretch of time T, bursts that keep to `burst_ns` cost
 * no more than share * T + burst_ns; a burst that exceeds it delays the next one.
 */
struct pacer {
	double share;      /* of one CPU, 0.05 is 5 %         */
	double burst_ns;   /* what a burst may cost           */
	double credit_ns, spent_ns;
	uint64_t at_ns;
};

void pacer_init(struct pacer *p, double max_percent, double burst_ns, uint64_t now_ns);
void pacer_spend(struct pacer *p, uint64_t now_ns, double cost_ns);
/* The time from which there is credit for a whole burst. */
uint64_t pacer_due_ns(const struct pacer *p);

#endif
