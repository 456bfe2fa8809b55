/* The clocks that memscope reads, each in ns. */
#ifndef MEMSCOPE_BASE_CLOCK_H
#define MEMSCOPE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC: the clock of bpf_ktime_get_ns() and of the perf records. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Since the Epoch. */
static inline int64_t wall_ns(void)
{
	return (int64_t)clock_ns(CLOCK_REALTIME);
}

/* CPU time of this thread. */
static inline uint64_t thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

#endif
