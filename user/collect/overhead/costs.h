/*
 * The run time of a session's BPF programs, by the kernel's own account: BPF_ENABLE_STATS. While
 * that is on, each run reads the clock twice, so it is on only for a tenth of a second in each
 * second, which represents all of the time. Runs for all processes of the host are included: a
 * program at the scheduler also runs for threads that are not watched.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_COSTS_H
#define MEMSCOPE_COLLECT_OVERHEAD_COSTS_H

#include "collect/session/bpf_session.h"

/* Whose programs: the sources, and those that follow processes (fork, exec, exit, mappings). */
enum { COST_EVENTS = N_SOURCES, N_COSTS };

/*
 * What the way to a program takes, which that account does not have. Measured on Linux 6.18 in a virtual machine (tests/bench/README.md):
 * an interrupt of the clock that perf samples by (2.6 to 3.7 us); a raw tracepoint with an empty program less what that is said to take;
 * and, until it is measured, all of a run that returns at once.
 */
#define COST_INTERRUPT_NS  3000.0
#define COST_TRACEPOINT_NS 50.0
#define COST_REST_NS       150.0

/* One window: what programs took in it, and the events of sources that were seen, by their own counters. */
struct costs_window {
	uint32_t no; /* 0: there was none yet */
	uint64_t length_ns;
	struct program_cost costs[N_COSTS];
	struct program_cost
		rest[N_SOURCES]; /* of those: what returned at once between two slices (slices.h) */
	uint64_t switches, changes; /* STAT_OFFCPU_SWITCHES, STAT_GROWTH_EVENTS */
};

struct costs;

/* NULL: out of memory, or the kernel has no such account (before 5.8). */
struct costs *costs_new(struct session *s);
void costs_free(struct costs *c);
DEFINE_CLEANUP(struct costs *, costs_freep, costs_free)

/* Call it ten times a second or more often: begins or ends a window. */
void costs_tick(struct costs *c, uint64_t now_ns);
/* From now on a window of so long in each such time (100 ms, 1 s); it ends with the first tick after that. */
void costs_pace(struct costs *c, uint64_t window_ns, uint64_t every_ns);
/* The last one that has ended. */
const struct costs_window *costs_last(const struct costs *c);
/* Before programs are detached: ends the last one. */
void costs_stop(struct costs *c, uint64_t now_ns);
/* N_COSTS; returns the length of all windows, ns. */
uint64_t costs_read(const struct costs *c, struct program_cost *ret_costs);

#endif
