/*
 * What goroutines wait for, and which of it holds the program up.
 *
 * The runtime says why each one waits ("IO wait", "chan receive", "semacquire"). What that means:
 *
 *   a mutex              sync.Mutex, sync.RWMutex, a file's own: what another goroutine holds
 *   a socket             IO wait for a connection that the program has made; and the goroutine for which net/http waits there
 *   a connection         database/sql has none left
 *   another goroutine    channels, select, conditions, WaitGroup: what that one does is the answer
 *   nothing              timers, connections of clients, readers that hand on what comes: new work
 */
#ifndef MEMSCOPE_ANALYSE_GOROUTINES_H
#define MEMSCOPE_ANALYSE_GOROUTINES_H

#include "analyse/sites.h"

/* Goroutines with one stack that were for one reason where they are. */
struct goroutine_stack {
	stack_id stack;
	const char *reason, *peer; /* peer "": none is known */
	bool waits;                /* for something other than a processor */
	int64_t now, time_ns, waits_n, longest_ns;
};

struct goroutine_row {
	struct site_row at;        /* value: time there; count: stops, there or elsewhere; wait and role by the reason */
	const char *reason, *peer;
	const char *lock;          /* role WAIT_ROLE_MUTEX: "a sync.Mutex"; else "" */
	bool own;                  /* `at` is a function of the program, not of a library */
	bool waits;
	int64_t now;               /* at the end of the run */
	int64_t longest_ns;        /* at least              */
};

/* Does something hold them up, in a function of the program: a lock, a peer? Else new work does, or another goroutine, or they do not wait. */
bool goroutines_held_up(const struct goroutine_row *row);

/*
 * Rows of those that are held up, of others that wait, of those that do not; of each by time; at most `cap`; how many they are, or -ENOMEM. Names borrow from the
 * dict, reasons and peers from `stacks`.
 */
int goroutines_rank(struct dict *d, const struct goroutine_stack *stacks, uint32_t n,
		    struct goroutine_row *out, uint32_t cap);

#endif
