/*
 * A part of a run: a source, the unwind tables, the memory series, the windows.
 *
 * A component is one row of components.c. Its state is private: it is `size` bytes, zeroed, and begins
 * with a `struct run *`, which is set before the first call. A component knows the services of a run
 * (run.h) and never another component; `make lint` checks that none includes another's header.
 * user/README.md lists what belongs to a component outside of its source: files, summary, options.
 *
 * Every function may be NULL. In the order of a run:
 *
 *   wanted       does it take part in this run? NULL: in every run. doctor runs without a directory (cfg->dir
 *                NULL) and calls no write
 *   command      before a command is started: its environment
 *   prepare      before programs are loaded: which of them, how large their maps
 *   open         programs are loaded; dict, process table and drain are there
 *   attach       targets are known; the gate is still shut
 *   start        the gate has opened: events count from here
 *   entered      the command is held at its first instruction (`held`), or, where it could not be, runs
 *   ready        nothing can fail any more: files of an earlier run may be replaced
 *     process      what happened to a process (targets.h). PROCESS_ADDED of the first targets comes
 *                  between open and attach
 *     processes    all that the kernel recorded before `ns` has been handed to process
 *     tick         10 or 50 times a second, CLOCK_MONOTONIC; for periods other than --interval
 *     before_totals, after_totals   around the exchange and the reading of the totals
 *     stacks       stacks have come: those that wait to be walked may be
 *     drained      the totals were emptied: now things may be forgotten
 *     row          a row of the memory series is due (--interval)
 *     asked        a profile is wanted now: by SIGUSR1 (`why` NULL), or by what `why` says, a word
 *     window       a window is written, by a child process: what goes with it (run/window.h)
 *     cost, limit  what it costs, what it may cost from now on (budget.h)
 *     boundary     before and after the totals are exchanged for pipeline_now()
 *     snapshot     its part of such a profile (pipeline.h)
 *   closing      the gate is still open, for the last time
 *   closed       the gate is shut, programs are still attached. Also called when the run failed before its
 *                gate opened: of what follows, only free is then called
 *   stop         programs are detached
 *   drained_last the last totals are in
 *   finish       all stacks are in: the profiles are completed
 *   report       into the summary (analyse/summary.h); strings and rows live as long as the component
 *   write        files of its own (output/files.h)
 *   free         whatever was reached before; also when none of the others was called
 *
 * Rows are called in the order of the table, and freed in reverse.
 */
#ifndef MEMSCOPE_RUN_COMPONENT_H
#define MEMSCOPE_RUN_COMPONENT_H

#include "analyse/summary.h"
#include "collect/overhead/costs.h"
#include "run/run.h"

struct process_event;
struct run_output;
struct run_window;

/* What the programs of a source cost in a stretch of time. */
struct cost_window {
	const struct program_cost *program;
	double window_ns;      /* of which that is          */
	double elapsed_ns;     /* since the gate opened     */
	double fixed_ns;       /* in `elapsed_ns`, of the targets' time: what cannot be less */
	const uint64_t *stats; /* counters                  */
	uint64_t now_ns;
};

/* Who divides what the fixed part leaves of --max-overhead (collect/overhead/budget.h). */
enum budget_share { BUDGET_NONE, BUDGET_ALLOCATIONS, BUDGET_WAIT_STACKS };

struct component {
	const char *name;
	size_t size;
	bool (*wanted)(const struct run_config *cfg);

	int (*command)(void *self, struct err *e);
	int (*prepare)(void *self, struct session_opts *opts, struct err *e);
	int (*open)(void *self, struct err *e);
	int (*attach)(void *self, struct err *e);
	int (*start)(void *self, struct err *e);
	int (*entered)(void *self, pid_t pid, bool held, struct err *e);
	int (*ready)(void *self, struct err *e);

	void (*process)(void *self, const struct process_event *event);
	void (*processes)(void *self, uint64_t ns);
	void (*tick)(void *self, uint64_t now_ns);
	void (*before_totals)(void *self);
	void (*after_totals)(void *self);
	void (*stacks)(void *self);
	void (*drained)(void *self, uint64_t now_ns);
	void (*row)(void *self, uint64_t now_ns);
	void (*asked)(void *self, const char *why);
	int (*window)(void *self, const struct run_window *window, struct err *e);

	/* The share that it takes part in, and by the costs of which source (index of costs.h). */
	enum budget_share share;
	uint32_t source;
	/* Percent of one CPU, of what limit() governs; takes that off w->fixed_ns. */
	double (*cost)(void *self, struct cost_window *w);
	void (*limit)(void *self, double percent);
	/* In the end: what its programs cost. false: as the kernel's account says. */
	bool (*cost_report)(void *self, const struct program_cost *program,
			    const struct run_summary *s, struct summary_cost *ret_cost);

	int (*boundary)(void *self, bool after, struct err *e);
	int (*snapshot)(void *self, struct profile_since *since, struct profile_now *now,
			struct err *e);

	void (*closing)(void *self);
	void (*closed)(void *self);
	void (*stop)(void *self);
	void (*drained_last)(void *self, bool whole);
	int (*finish)(void *self, struct err *e);
	void (*report)(void *self, struct run_summary *to);
	int (*write)(void *self, struct run_output *to, struct err *e);
	void (*free)(void *self);
};

extern const struct component *const components[]; /* ends with NULL */

/* Calls one function of each component that takes part, in the order of the table. */
#define EACH_COMPONENT(r, c, self)                                                                 \
	for (uint32_t c##_i = 0; components[c##_i]; c##_i++)                                       \
		for (const struct component *c = components[c##_i]; c; c = NULL)                   \
			for (void *self = (r)->states[c##_i]; self; self = NULL)

#endif
