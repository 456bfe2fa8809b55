/*
 * Runs this thread before all that is not real-time, for work that must not be late on a busy
 * machine: while it waits for a CPU, probes stay in place and cost their traps. Needs CAP_SYS_NICE;
 * without it nothing changes.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_REALTIME_H
#define MEMSCOPE_COLLECT_OVERHEAD_REALTIME_H

/* Returns what realtime_end() needs. Threads started in between are real-time, too. */
struct realtime {
	int policy, priority; /* as it was; policy -1: nothing was changed */
};
struct realtime realtime_begin(void);
void realtime_end(const struct realtime *was);

#endif
