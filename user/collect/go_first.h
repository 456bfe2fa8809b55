/*
 * This thread before all that is not real-time itself, for what must not come late on a busy machine:
 * while it waits for a CPU, probes stay in place and cost their traps. It only may be with CAP_SYS_NICE;
 * without, it stays as it is.
 */
#ifndef MEMSCOPE_COLLECT_GO_FIRST_H
#define MEMSCOPE_COLLECT_GO_FIRST_H

/* Returns what go_back() is to be told. Threads that are made meanwhile go first, too. */
struct go_first {
	int policy, priority; /* as it was; policy -1: nothing was changed */
};
struct go_first go_first(void);
void go_back(const struct go_first *was);

#endif
