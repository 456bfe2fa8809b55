/*
 * Where a value belongs, when the leaf of the stack is only the messenger.
 *
 * The leaf of an allocation is always malloc, the leaf of a wait always schedule(). The site is
 * the function that asked: the leaf-most user frame that is no allocator or C library wrapper
 * (malloc, operator new, std::allocator…, poll, pthread_cond_wait; sites.c lists them). For waits
 * the kernel part of the stack says what was waited for.
 */
#ifndef MEMSCOPE_ANALYSE_SITES_H
#define MEMSCOPE_ANALYSE_SITES_H

#include "model/profile.h"

/* What a thread waits for, as the kernel functions on its stack tell. */
enum wait_kind {
	WAIT_OTHER,
	WAIT_TIMER,    /* asleep until a time                        */
	WAIT_EVENTS,   /* poll, select, epoll, io_uring: for any of many */
	WAIT_SOCKET,
	WAIT_PIPE,
	WAIT_LOCK,     /* futex: a mutex, a condition, a join         */
	WAIT_DISK,     /* block I/O, writeback, a file system's journal */
	WAIT_MEMORY,   /* a page fault, reclaim, swap                  */
	WAIT_CHILD,    /* another process to end                       */
	WAIT_SIGNAL,   /* stopped, paused, sigwait                     */
	WAIT_TERMINAL,
	N_WAIT_KINDS,
};

/* "disk", "a lock (futex)": fits after "waiting for". */
const char *wait_kind_text(enum wait_kind k);
/* From the kernel functions of one stack, leaf first. */
enum wait_kind wait_kind_of(const char *const *kernel_functions, uint32_t n);

struct site_row {
	const char *function;  /* the site; "" when the stack has no user frame; borrowed from the dict */
	const char *module;    /* base name of its image, "" when unknown                    */
	const char *leaf;      /* the messenger: malloc; the kernel function waited in         */
	enum wait_kind wait;   /* waits only                                                  */
	int64_t value;         /* of the type asked for                                       */
	int64_t count;         /* of the count type, 0 when there is none                     */
};

/*
 * At most `cap` rows by value, largest first, ties by name; rows with value 0 are left out.
 * `type` is the value, `count_type` the count shown beside it or -1.
 * Returns the number of rows, or -ENOMEM.
 */
int sites_allocations(const struct profile *p, uint32_t type, int count_type,
		      struct site_row *out, uint32_t cap);
int sites_waits(const struct profile *p, uint32_t type, int count_type, struct site_row *out,
		uint32_t cap);

/* The part of type `type` whose leaf is an allocator or C library memory function; for verdicts. */
int64_t sites_allocator_value(const struct profile *p, uint32_t type);

#endif
