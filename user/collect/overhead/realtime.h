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


/*
 * Runs this thread before others that are not real-time, for as much as it asks for: a loop that empties the kernel's rings, which
 * overflow while it waits for a CPU. Threads and processes that it starts meanwhile are as they would be without. Needs
 * CAP_SYS_NICE, as above.
 */
struct prompt {
	int policy, nice; /* as it was; policy -1: nothing was changed */
};
struct prompt prompt_begin(void);
void prompt_end(const struct prompt *was);

#endif
