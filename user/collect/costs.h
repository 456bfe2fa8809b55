/*
 * What the BPF programs of a session take, by the kernel's own account: BPF_ENABLE_STATS. While that is
 * on, each run reads the clock twice, so it is for a window of a tenth of a second in each, and what runs
 * and takes there stands for all of the time. Runs of all processes of the host are in it: a program at
 * the scheduler is asked about those that are not watched, too.
 */
#ifndef MEMSCOPE_COLLECT_COSTS_H
#define MEMSCOPE_COLLECT_COSTS_H

#include "collect/bpf_session.h"

/* By whose programs: the sources, and what follows processes (fork, exec, exit, mappings). */
enum { COST_EVENTS = MS_N_SOURCES, N_COSTS };

struct program_cost {
	uint64_t runs, run_ns; /* in the windows */
};

struct costs;

/* NULL: out of memory, or the kernel has no such account (before 5.8). */
struct costs *costs_new(struct session *s);
void costs_free(struct costs *c);
DEFINE_CLEANUP(struct costs *, costs_freep, costs_free)

/* Now and then, ten times a second or oftener: begins a window, or ends one. */
void costs_tick(struct costs *c, uint64_t now_ns);
/* Before programs are detached: ends the last one. */
void costs_stop(struct costs *c, uint64_t now_ns);
/* N_COSTS; returns the length of all windows, ns. */
uint64_t costs_read(const struct costs *c, struct program_cost *ret_costs);

#endif
