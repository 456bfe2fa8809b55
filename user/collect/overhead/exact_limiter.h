/*
 * Keeps tracing of every call within the limit when the call rate rises above that of the first
 * measurement. A thread of its own, real-time where permitted, sets for the kernel's programs every 20
 * ms how many hits there is credit for (struct pacer: what the limit gives in a second, so a run of
 * T seconds may cost the limit of T + 1). After the last of these hits the programs close their
 * gate themselves, so the cost is bounded at any call rate and machine load. The thread then
 * removes the probes, whose hits cost their traps until then.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_EXACT_LIMITER_H
#define MEMSCOPE_COLLECT_OVERHEAD_EXACT_LIMITER_H

#include "collect/probes/alloc_probes.h"

struct exact_limiter;

/* Opens the gate of allocations. `hit_ns`: the assumed cost of a hit. */
int exact_limiter_start(struct session *s, struct alloc_probes *probes, double max_percent,
		      double hit_ns, struct exact_limiter **ret_watch, struct err *e);
/* The limit from now on, as other costs change. */
void exact_limiter_limit(struct exact_limiter *w, double max_percent);
/* The measured cost of a hit, used from now on. */
void exact_limiter_hit_costs(struct exact_limiter *w, double hit_ns);
/* Whether the limit was exceeded: then alloc_probes_burst() has been called. */
bool exact_limiter_over(const struct exact_limiter *w);
/* Does not close the gate. */
void exact_limiter_free(struct exact_limiter *w);

#endif
