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
#ifndef MEMSCOPE_COLLECT_STREAM_WAIT_CUT_H
#define MEMSCOPE_COLLECT_STREAM_WAIT_CUT_H

#include "collect/stream/drain.h"
#include "collect/stream/ingest.h"

struct wait_cut;

/* Makes up for stacks of which more was reassigned than they had; by how much is added to `ret_changes`. */
typedef int (*wait_settle_fn)(struct profile *p, struct profile *ret_changes);

/*
 * Before ingest_listen(), as it takes open waits from it at a boundary. `max_ns`: of --max-block; 0: none. *oom
 * is set when memory runs out. All are borrowed. NULL: out of memory.
 */
struct wait_cut *wait_cut_new(struct drain *d, struct dict *dict, uint64_t max_ns, bool *oom);
void wait_cut_free(struct wait_cut *w);
DEFINE_CLEANUP(struct wait_cut *, wait_cut_freep, wait_cut_free)

/* 0 or an error of the drain. */
int wait_cut_boundary(struct wait_cut *w, bool after, struct err *e);
/*
 * `*window`: what the off-CPU profile gained; `*open`: waits that were cut at its begin (NULL: none), and
 * then those cut at its end. `last`: the run has ended, waits that go on are in the profile already.
 * `settle` may be NULL. 0 or -ENOMEM.
 */
int wait_cut(struct wait_cut *w, struct ingest *in, struct profile **window, struct profile **open, bool last,
	     wait_settle_fn settle, struct err *e);

/*
 * A thread may have other labels at the end of a wait than when it was cut: it was given a name meanwhile, or executed a program. Then
 * what is to be taken off has less than nothing, and the end of the wait, elsewhere, too much. So that windows add up, it is taken off
 * the thread's samples with other labels; in the last window off any of the thread's. Of threads that have no number nothing is known.
 * 0 or -ENOMEM. (Of wait_cut(), here for its test.)
 */
int wait_cut_make_up(struct profile *p, bool last);

#endif
