/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Duty cycles: a source whose mere attachment costs too much is attached for a part of the time only, and what it gathers then
 * stands for all of it. One source for the kernel and the host.
 *
 * Time is divided into strata of equal length, and each stratum into 2^shift cells. The source is attached in one cell of each
 * stratum, its slice, which is drawn at random:
 *
 *	│ stratum            │ stratum            │ stratum            │
 *	│    ███             │             ███    │  ███               │
 *	0         T - slices' clock -T           2T                   3T
 *
 * Every moment is in a slice with probability 2^-shift exactly, whatever the load does and however periodic it is: a load cannot
 * know the draw. So the time that threads spend in a state within slices, times 2^shift, is an unbiased estimate of all of
 * their time in it (Horvitz and Thompson), and so is the number of waits that end in slices.
 *
 * The weight is applied to each value when it comes about, by the clock by which waits are measured: it stands still between slices
 * and goes 2^shift times faster in them. At a stratum's end it shows the time of day again:
 *
 *	clock(t) = at + (t - from) * 2^shift     from <= t <= until, the slice
 *
 * A wait's length by that clock is the estimate of its length. It may reach over many slices, of other weights too: each has its
 * share, and none is counted twice; what a thread was on and off CPUs adds up to the time that passed. A wait that begins and
 * ends between two slices is not seen, and those that are seen stand for it.
 *
 * What a thread did between slices shows in the kernel's count of its switches: where that has not changed since the thread was last
 * seen, it is in the same wait, or on its CPU still. Else what it was in ends with the last slice, and it is in another state from
 * this slice's begin on (offcpu.bpf.c: thread_resume()).
 *
 * Shift 0: all of the time is in slices, and the clock is CLOCK_MONOTONIC.
 */
#ifndef MEMSCOPE_SLICES_H
#define MEMSCOPE_SLICES_H

#include "abi.h"

/* Time by the slices' clock at `ns`, CLOCK_MONOTONIC. */
static inline __attribute__((always_inline)) __u64 slice_clock(const volatile struct ms_slice *s, __u64 ns)
{
	__u64 from = s->from_ns, until = s->until_ns;

	if (ns > until)
		ns = until;
	return s->at_ns + (ns > from ? (ns - from) << s->shift % 32 : 0);
}

static inline __attribute__((always_inline)) int slice_has(const volatile struct ms_slice *s, __u64 ns)
{
	return ns >= s->from_ns && ns < s->until_ns;
}

#endif
