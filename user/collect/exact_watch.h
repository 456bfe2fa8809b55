/*
 * Keeps tracing of every call within the limit, when the program comes to call more often than it did in
 * the first look: a thread of its own, real-time where it may be, tells the kernel's programs every 20 ms
 * how many hits there is credit for (struct pacer: what the limit gives in a second, so a run of T seconds
 * may cost the limit of T + 1). With the last of
 * them they close their gate themselves, so that it costs no more than that whatever the rate, and
 * however busy the machine is; the thread then takes the probes away, whose hits cost their traps until
 * then.
 */
#ifndef MEMSCOPE_COLLECT_EXACT_WATCH_H
#define MEMSCOPE_COLLECT_EXACT_WATCH_H

#include "collect/alloc_probes.h"

struct exact_watch;

/* Opens the gate of allocations. `hit_ns`: what a hit is taken to cost. */
int exact_watch_start(struct session *s, struct alloc_probes *probes, double max_percent,
		      double hit_ns, struct exact_watch **ret_watch, struct err *e);
/* From now on it may cost so much: others cost something, too. */
void exact_watch_limit(struct exact_watch *w, double max_percent);
/* From now on a hit is taken to cost so much: it has been measured. */
void exact_watch_hit_costs(struct exact_watch *w, double hit_ns);
/* Whether it has come to cost too much: then probes are taken away, alloc_probes_slice() was called. */
bool exact_watch_over(const struct exact_watch *w);
/* Does not close the gate. */
void exact_watch_free(struct exact_watch *w);

#endif
