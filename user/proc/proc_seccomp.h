/* Whether a process is under seccomp, and under how many filters: as /proc has it. */
#ifndef MEMSCOPE_PROC_PROC_SECCOMP_H
#define MEMSCOPE_PROC_PROC_SECCOMP_H

#include <stdint.h>
#include <sys/types.h>

/* A thread's mode (SECCOMP_MODE_…), and how many filters it is under; where the kernel does not say (before 5.9): 1. */
int proc_seccomp(pid_t pid, pid_t tid, uint32_t *ret_filters);
/* What each thread of a process is under at least; 0: none. */
uint32_t proc_seccomp_least(pid_t pid);

#endif
