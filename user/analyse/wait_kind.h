/*
 * What a thread waits for, by the kernel functions on its stack: one table of function names in
 * wait_kind.c.
 */
#ifndef MEMSCOPE_ANALYSE_WAIT_KIND_H
#define MEMSCOPE_ANALYSE_WAIT_KIND_H

#include <stdbool.h>

enum wait_kind {
	WAIT_OTHER,
	WAIT_TIMER,    /* asleep until a time                        */
	WAIT_EVENTS,   /* poll, select, epoll, io_uring: for any of many */
	WAIT_SOCKET,
	WAIT_PIPE,
	WAIT_LOCK,     /* futex: a mutex, a condition, a join         */
	WAIT_GIL,      /* the lock under which CPython executes: by the user part of the stack (sites.c) */
	WAIT_MONITOR,  /* of Java: to enter it, or to be notified there; likewise                          */
	WAIT_GVL,      /* the same of Ruby */
	WAIT_FILE_LOCK,
	WAIT_KERNEL_LOCK,  /* a mutex or semaphore of the kernel's own: often mmap_lock */
	WAIT_DISK,     /* block I/O, writeback, a file system's journal */
	WAIT_MEMORY,   /* a page fault, reclaim, swap                  */
	WAIT_CHILD,    /* another process to end                       */
	WAIT_SIGNAL,   /* paused, sigwait                              */
	WAIT_STOPPED,  /* by SIGSTOP, Ctrl-Z or a debugger             */
	WAIT_TERMINAL,
	N_WAIT_KINDS,
};

/* Never for lack of work, however long it lasts: somebody or something holds the thread up. */
bool wait_kind_is_hold_up(enum wait_kind k);
/* "disk", "a lock": fits after "waiting for". */
const char *wait_kind_text(enum wait_kind k);
/* The word in JSON: "disk", "kernel-lock". */
const char *wait_kind_name(enum wait_kind k);
/* The kind for one kernel function; WAIT_OTHER for most. */
enum wait_kind wait_kind_of(const char *kernel_function);

#endif
