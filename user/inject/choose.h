/*
 * Which thread of a process is borrowed: one that waits in a system call that can be left, before one that
 * computes; and of those the one that would notice least.
 */
#ifndef MEMSCOPE_INJECT_CHOOSE_H
#define MEMSCOPE_INJECT_CHOOSE_H

#include "inject/remote.h"

/* What is to be done in it. */
struct errand {
	pid_t pid;
	int mem_fd;        /* /proc/PID/mem                             */
	bool exact, memfd; /* as filters_check() asks about them */
};

/*
 * Stops it: remote_release() lets it go. -EAGAIN and why: none could be had within 5 s; -EPERM and why: the
 * seccomp filters of all of them are in the way; -ESRCH: the process has ended. Not to be used by two threads.
 */
int choose_thread(const struct errand *errand, struct remote *ret_thread, struct err *e);

/* The first thread is under seccomp filters. */
bool choose_is_filtered(pid_t pid);

#endif
