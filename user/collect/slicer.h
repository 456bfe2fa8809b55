/*
 * Exact tracing in slices of time: a thread of its own attaches the probes of allocating functions for
 * some milliseconds, takes them away, and waits until what that cost is within the budget.
 *
 * What a slice costs the target is bounded three times: it has a length; the kernel's programs count
 * its calls and close its gate when they are used up, after which a hit costs its trap and no more; and
 * the thread looks every millisecond or so whether that is so, and then takes the probes away. The
 * thread is a real-time one where it may be. What a slice did cost is reckoned from its hits, by what a
 * hit costs here (trap_cost.h) and what the program says that it took, and the CPU time of attaching
 * and detaching; that decides when the next one begins (struct pacer). Lengths adapt: a slice that
 * used up its calls makes the next one shorter, one that did not longer.
 *
 * Slices are some tenths of a second apart at most times, by a random part more or less, so that they
 * do not keep step with what the target does.
 */
#ifndef MEMSCOPE_COLLECT_SLICER_H
#define MEMSCOPE_COLLECT_SLICER_H

#include "collect/alloc_probes.h"
#include "collect/busy.h"

struct slicer;

/* CPU time of a thread when the slice was opened, and closed. */
struct slice_thread {
	uint32_t tid;
	uint64_t open_ns, close_ns;
};

/* A slice that is over. */
struct slice {
	uint32_t no;         /* the bucket of its totals                      */
	uint64_t open_ns, close_ns;
	uint64_t hits;       /* calls it took, those inside others included    */
	double call_ns, call_sure_ns; /* what a call was slowed by; how far that may be off */
	struct slice_thread *threads; /* of whom the scheduler's events tell; whoever takes the slice frees it */
	uint32_t n_threads;
};

/*
 * Begins. Numbers of slices begin at 1. `busy`: threads whose times are in no table, or NULL. `probes` must
 * be in slices (alloc_probes_slice()); both must live until slicer_stop().
 */
int slicer_start(struct session *s, struct alloc_probes *probes, struct busy *busy,
		 double max_percent, struct slicer **ret_slicer, struct err *e);
/* From the next slice on they may cost so much. */
void slicer_limit(struct slicer *s, double max_percent);
/* Ends; the probes are gone or going. What was taken can still be had. */
void slicer_stop(struct slicer *s);
void slicer_free(struct slicer *s);

/* Slices that are over, oldest first, each once; `cap` at most. Their totals are in the maps. */
uint32_t slicer_take(struct slicer *s, struct slice *ret_slices, uint32_t cap);

/* CPU times of threads when it began, and when it was stopped; they live as long as it does. */
struct slice_times {
	struct slice_thread *threads;
	uint32_t n;
};
void slicer_ends(const struct slicer *s, struct slice_times *ret_first,
		 struct slice_times *ret_last);

struct slicer_stats {
	uint32_t slices;
	uint64_t hits, late_hits;  /* late: after the slice was closed, or before it was open */
	double trap_ns;            /* what a hit costs without its program           */
	double target_ns, own_ns;  /* time the target lost; CPU time of attaching    */
	double worst_ns;           /* the dearest slice, both                        */
	double slice_ns;           /* what one may cost                              */
	uint64_t attach_ns, attach_worst_ns, detach_worst_ns; /* wall time               */
};
void slicer_stats(struct slicer *s, struct slicer_stats *ret_stats);

#endif
