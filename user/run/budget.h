/*
 * --max-overhead: asks each component what it costs, and says what it may cost.
 *
 * What a run costs those who are profiled: the programs' own time by the kernel's account, and the way to
 * them by what it is known to take.
 */
#ifndef MEMSCOPE_RUN_BUDGET_H
#define MEMSCOPE_RUN_BUDGET_H

#include "analyse/summary.h"

struct run;
struct run_config;
struct costs_window;
struct profile_since;
struct profile_now;

/* Programs are attached; ten times a second or oftener; before the gate closes. */
void budget_start(struct run *r);
void budget_tick(struct run *r, uint64_t now_ns);
void budget_closing(struct run *r);
/* What each source cost in a stretch of time, into now->cost_percent (pipeline.h). */
void budget_part(const struct run *r, struct profile_since *since, struct profile_now *now);
/*
 * What memscope looks at by itself, beside probes: how many times a look's length it rests between two. One part in 100 of the
 * time; of a service at most a quarter of --max-overhead, which is meant for all that it does.
 */
double budget_look_rest(const struct run_config *cfg);
/* The same of the sums of all mappings of processes (proc_mem_rollup_rest()): of a service a twentieth of the limit. */
double budget_rollup_rest(const struct run_config *cfg);
/*
 * How long looks at what processes' memory holds rest, from the begin of one that took so long on: that, and of a service 20 s
 * at least at a limit of 1 %, more at a lower one, in proportion.
 */
uint64_t budget_look_rest_ns(const struct run_config *cfg, uint64_t took_ns);
/* The last window of the kernel's account; NULL: there is no such account. */
const struct costs_window *budget_window(const struct run *r);
/* How often there is one. */
void budget_pace(const struct run *r, uint64_t window_ns, uint64_t every_ns);
/* After the components' own reports. */
void budget_report(struct run *r, struct run_summary *to);
/*
 * CPUs that the programs of each source take, of the host's, up to now: a part of the time is looked at (costs.h), so it is an
 * estimate. N_COSTS of them, with their names; 0: not known yet.
 */
struct budget_use {
	const char *name;
	double cpus;
};
uint32_t budget_uses(const struct run *r, struct budget_use *ret_uses);
void budget_free(struct run *r);

/* Where what it takes to get to a probe cannot be measured. */
#define BUDGET_TRAP_NS 520.0

#endif
