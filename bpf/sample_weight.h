/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one on-CPU sample stands for: the time since the event last fired on its CPU, whoever ran there
 * then. One source for the kernel and the host.
 *
 * The period changes all the time (collect/session/dither.h), and with each change the event starts anew:
 *
 *	fired    fired    fired  │re-armed     fired        fired
 *	  ├── p ───┼── p ───┼─ r ┼──── q ────────┼──── q ─────┤
 *	           weighs p  p        weighs r + q   weighs q
 *
 * So nothing of a CPU's time is lost or counted twice, and because the moments know nothing of who runs,
 * what a stack is given is right on average. Time of the idle CPU counts as well: the event fires there
 * too, and is then nobody's sample.
 */
#ifndef MEMSCOPE_SAMPLE_WEIGHT_H
#define MEMSCOPE_SAMPLE_WEIGHT_H

#include "abi.h"

/*
 * Two of the longest periods: more than lies between two firings, unless the machine stood still or the
 * kernel held the event back (kernel.perf_event_max_sample_rate). `*last_ns` 0: it fires for the first
 * time.
 */
static inline __attribute__((always_inline)) __u64 sample_weight_ns(__u64 *last_ns, __u64 now_ns,
								     __u64 mean_ns)
{
	__u64 most = 2 * mean_ns * MS_PERIOD_MOST_PERCENT / 100, ns = now_ns - *last_ns;

	if (!*last_ns)
		ns = mean_ns;
	*last_ns = now_ns;
	return ns < most ? ns : most;
}

#endif
