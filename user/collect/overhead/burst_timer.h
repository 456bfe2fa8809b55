/*
 * Exact tracing in bursts: a thread of its own attaches the probes of allocating functions for some
 * milliseconds, removes them, and waits until their cost is within the budget.
 *
 * Three bounds limit what a burst costs the target. It has a length. The kernel's programs count
 * its calls and close its gate when they are used up; from then on a hit costs only its trap. The
 * thread checks for that every millisecond or so, and then removes the probes; it is real-time
 * where permitted. The cost of a burst is computed from its hits: the measured cost of a trap
 * (trap_cost.h), the run time that the program reports, and the CPU time of attaching and
 * detaching. That cost decides when the next burst begins (struct pacer). Lengths adapt: a burst
 * that used up its calls makes the next one shorter, any other makes it longer.
 *
 * The time between bursts is usually some tenths of a second, with a random part, so that they do
 * not keep step with what the target does.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_BURST_TIMER_H
#define MEMSCOPE_COLLECT_OVERHEAD_BURST_TIMER_H

#include "collect/probes/alloc_probes.h"
#include "collect/overhead/process_times.h"
#include "collect/overhead/wait_sampler.h"

struct burst_timer;

/* CPU time of a thread, or of a process (burst_timer_start()), when the burst was opened, and closed. */
struct burst_thread {
	uint32_t tid; /* or pid */
	uint64_t open_ns, close_ns;
};

/* A burst that is over. */
struct burst {
	uint32_t no;         /* the bucket of its totals                      */
	uint64_t open_ns, close_ns;
	uint64_t hits;       /* calls it counted, including nested ones        */
	double call_ns, call_sure_ns; /* by how much a call was slowed; the error of that */
	uint64_t calls, results;      /* calls; of how many the return was seen            */
	bool alternates;              /* returns are traced in every second one alone,      */
	bool apart;                   /* … of which this is one                             */
	struct burst_thread *threads; /* threads with scheduler events; the taker frees it */
	uint32_t n_threads;
};

/*
 * Starts the thread. Where returns are traced (session_opts.results): `apart` from the beginning, or from when
 * that takes most of a busy thread's time on, returns are traced in every second burst alone.
 *
 * Bursts are numbered from 1. `busy`: sampled threads, whose times are not in the table, or NULL.
 * `processes`: where no scheduler events are traced, so that there are no times of threads, those of
 * processes; else NULL. `probes` must be in bursts (alloc_probes_burst()); all must live until the timer
 * is freed.
 */
int burst_timer_start(struct session *s, struct alloc_probes *probes, struct wait_sampler *busy,
		      struct process_times *processes, double max_percent, bool apart,
		      struct burst_timer **ret_timer, struct err *e);
/* The limit from the next burst on. */
void burst_timer_limit(struct burst_timer *s, double max_percent);
/* Stops it; the probes are gone or being removed. Finished bursts can still be taken. */
void burst_timer_stop(struct burst_timer *s);
void burst_timer_free(struct burst_timer *s);

/* Finished bursts, oldest first, each once; `cap` at most. Their totals are in the maps. */
uint32_t burst_timer_take(struct burst_timer *s, struct burst *ret_bursts, uint32_t cap);

/* CPU times of threads at the start, and at the stop; they live as long as the timer. */
struct burst_times {
	struct burst_thread *threads;
	uint32_t n;
};
void burst_timer_ends(const struct burst_timer *s, struct burst_times *ret_first,
		 struct burst_times *ret_last);

/* The same now, by any thread; the caller frees `threads`. NULL there: out of memory. */
void burst_timer_times(struct burst_timer *s, struct burst_times *ret_now);

struct burst_timer_stats {
	uint32_t bursts;
	uint64_t hits, late_hits;  /* late: after the burst was closed, or before it was open */
	double trap_ns;            /* what a hit costs without its program           */
	double target_ns, own_ns;  /* time the target lost; CPU time of attaching    */
	double worst_ns;           /* the most expensive burst, both                 */
	double burst_ns;           /* what one may cost                              */
	uint64_t attach_ns, attach_worst_ns, detach_worst_ns; /* wall time               */
};
void burst_timer_stats(struct burst_timer *s, struct burst_timer_stats *ret_stats);

#endif
