/*
 * Where a thread may be made to call into the C library: not while it may hold a lock that the call
 * takes.
 *
 * The called function, pthread_create(), takes the allocator's locks and those of the list of
 * threads and of thread-local storage. So a thread is borrowed only in a system call that programs
 * wait in (a read, a poll, a condition variable …), with its stack known from there to its
 * beginning, and with no frame on it of the dynamic linker, an allocator or a signal handler.
 * Frames of the C library may only be of functions that hold none of those locks while they wait.
 *
 * A thread that computes, or makes system calls without the C library, may be borrowed at any instruction
 * of the program: then no frame is of the C library but those that it was started by, and it is on the stack
 * that it was started with.
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
