/*
 * Who ended waits: the profile `wakers` (run/sources/wakers.c) by where threads waited and by whose function ended it.
 */
#ifndef MEMSCOPE_ANALYSE_WAKERS_H
#define MEMSCOPE_ANALYSE_WAKERS_H

#include "analyse/sites.h"

/* Frames that stand between a wait and who ended it, and for wakers that are no thread. */
#define WAKERS_MARK      "[woken by]"
#define WAKERS_INTERRUPT "[interrupt]"
#define WAKERS_UNKNOWN   "[unknown]"

struct waker_row {
	struct site_row wait;      /* where; value and count: blocked ns, wake-ups               */
	const char *waker;         /* the name of the thread that ended it; a WAKERS_… of above  */
	const char *by, *by_module; /* its own function that did it, or the kernel's where it has no user stack */
};

/* Blocked time by who ended it, ns. */
struct waker_sums {
	int64_t total_ns, interrupt_ns, unknown_ns;
	int64_t other_ns; /* by threads of other processes and of the kernel: without a user stack */
};

/*
 * Rows of waits that threads ended, longest first, at most `cap`, and their number, or -ENOMEM. `p` has value types
 * wakeups/count and blocked/nanoseconds. Names borrow from its dict.
 */
int wakers_rank(const struct profile *p, struct waker_row *out, uint32_t cap, struct waker_sums *ret_sums);

#endif
