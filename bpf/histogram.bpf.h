/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histograms of durations, by powers of two. */
#ifndef MEMSCOPE_HISTOGRAM_BPF_H
#define MEMSCOPE_HISTOGRAM_BPF_H

/* In which part: [2^(i + MS_SYSCALL_FIRST), twice that) ns, the first and the last without an end. */
static __always_inline __u32 histogram_part(__u64 ns)
{
	__u32 e = 0;

	for (__u32 step = 32; step; step /= 2)
		if (ns >> (e + step))
			e += step;
	e = e < MS_SYSCALL_FIRST ? 0 : e - MS_SYSCALL_FIRST;
	return e < MS_SYSCALL_PARTS ? e : MS_SYSCALL_PARTS - 1;
}

#endif
