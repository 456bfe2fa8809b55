/*
 * What the tracepoints of system calls cost, while they are attached: every system call of every process
 * on the host goes the kernel's slow way then, and runs two programs. How many calls there are is
 * counted in looks of at least 20 ms, the first at once, then one in each second: for that long the
 * kernel counts the runs of its programs (BPF_ENABLE_STATS).
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_SYSCALL_WATCH_H
#define MEMSCOPE_COLLECT_OVERHEAD_SYSCALL_WATCH_H

#include "collect/session/bpf_session.h"

/* A system call that does nothing, with the two programs and without: 100 to 150 ns (Linux 6.18,
 * virtual machine). */
#define SYSCALL_NS 120.0

/* Zero-initialise. */
struct syscall_watch {
	int stats_fd; /* 0: no look is under way */
	uint64_t begun_ns, next_ns, runs;
};

/* Begins and ends looks. true: one has ended; *ret_per_s is the rate of calls that it saw. */
bool syscall_watch_tick(struct syscall_watch *w, const struct session *s, uint64_t now_ns,
			double *ret_per_s);
/* Ends a look without a result. */
void syscall_watch_fini(struct syscall_watch *w);

/* The cost of so many calls, percent of one CPU. */
double syscalls_percent(double per_s);

#endif
