/*
 * CPU time of processes at any moment, all threads together: for runs that trace no scheduler events, which
 * would say it by thread.
 *
 * By a perf event on each thread (a task clock, inherited by the threads that it makes): reading it brings it
 * up to date on whichever CPU the thread runs. A process's own CPU clock and schedstat are as of the last tick
 * for a thread that runs on another CPU, up to 4 ms ago: half of a burst.
 *
 * Adding and ending are one thread's, reading any thread's.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_PROCESS_TIMES_H
#define MEMSCOPE_COLLECT_OVERHEAD_PROCESS_TIMES_H

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct process_times;

struct process_time {
	uint32_t pid;
	uint64_t cpu_ns; /* since it was added */
};

/* NULL: out of memory. */
struct process_times *process_times_new(void);
void process_times_free(struct process_times *t);
DEFINE_CLEANUP(struct process_times *, process_times_freep, process_times_free)

/* From now on, unless it is there. One that cannot be timed (it has more than 512 threads, files are used up,
 * the kernel refuses) is not among those that are read. */
void process_times_add(struct process_times *t, pid_t pid);
/* It has ended: its time stays for two more reads, which may be the ends of a burst. */
void process_times_end(struct process_times *t, pid_t pid);
/* Those of all, `max` at most, in no order; how many. */
uint32_t process_times_read(struct process_times *t, struct process_time *ret_rows, uint32_t max);

#endif
