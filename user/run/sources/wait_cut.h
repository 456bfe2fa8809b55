/*
 * Waits at the boundary of a profile: what of those that go on is before it, and what is after.
 *
 * A wait that is open at a boundary is cut there, 0.1 ms early where a thread was woken and does not run
 * yet. One that ends in its very moment (some tens of ms) is on one side, as a whole. With --max-block
 * waits count where they end.
 *
 *   wait_cut_boundary(before)   open waits at the boundary
 *   …                           the totals are exchanged and read
 *   wait_cut_boundary(after)    which of them are still open
 *   wait_cut()                  into the profile that ends there, and off the next one
 */
#ifndef MEMSCOPE_RUN_SOURCES_WAIT_CUT_H
#define MEMSCOPE_RUN_SOURCES_WAIT_CUT_H

#include "run/run.h"

struct open_thread {
	uint32_t tid;
	struct ms_thread state;
};

struct thread_list {
	struct open_thread *rows;
	uint32_t n, cap;
};

/* Waits of a busy thread that are in no total then; how many of them came in one after all. */
struct rest {
	struct ms_total_key key;
	struct ms_total total;
	int64_t came;
};

struct rest_list {
	struct rest *rows;
	uint32_t n, cap;
};

/* What is not in the totals yet. */
struct wait_gathered {
	struct thread_list threads;
	struct rest_list rests;
};

struct wait_cut {
	struct run *run;
	struct wait_gathered before, after; /* the exchange of totals at a boundary */
	struct wait_gathered *gathering;
	bool exchanging;
	uint64_t boundary_ns;
};

/* Makes up for stacks of which more was reassigned than they had; by how much is added to `ret_changes`. */
typedef int (*wait_settle_fn)(struct profile *p, struct profile *ret_changes);

void wait_cut_open(struct wait_cut *w, struct run *r);
void wait_cut_fini(struct wait_cut *w);
/* 0 or an error of the drain. */
int wait_cut_boundary(struct wait_cut *w, bool after, struct err *e);
/*
 * `*window`: what the off-CPU profile gained; `*open`: waits that were cut at its begin (NULL: none), and
 * then those cut at its end. `last`: the run has ended, waits that go on are in the profile already.
 * `settle` may be NULL. 0 or -ENOMEM.
 */
int wait_cut(struct wait_cut *w, struct profile **window, struct profile **open, bool last,
	     wait_settle_fn settle, struct err *e);

#endif
