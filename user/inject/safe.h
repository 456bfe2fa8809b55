/*
 * Where a thread may be made to call into the C library: not within what the call takes locks of.
 *
 * What is called, pthread_create(), takes the allocator's locks and those of the list of threads and of
 * thread-local storage. So a thread is asked only when it is in a system call that a program
 * waits in (a read, a poll, a condition variable …), its stack is known from there to its beginning, and
 * nothing on it is the dynamic linker's, an allocator's or a signal handler's. The C library
 * may be on it only with functions that hold none of those locks while they wait.
 */
#ifndef MEMSCOPE_INJECT_SAFE_H
#define MEMSCOPE_INJECT_SAFE_H

#include "inject/remote.h"

struct safe;

/* Reads what `pid` maps. -errno with a sentence. */
int safe_new(pid_t pid, int mem_fd, struct safe **ret_safe, struct err *e);
void safe_free(struct safe *s);

/* 0, or -EAGAIN: not there, and why. */
int safe_check(struct safe *s, const struct remote *thread, struct err *e);

#endif
