/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Wait sites: which waits of a sampled thread have their stack captured, and which stack the others
 * are attributed to. One source for the kernel and the host.
 *
 * A wait site is where the thread was in user space: pc, sp and system call, which are at hand
 * without reading memory. A wait is attributed to the stack last seen at its site. While that stack
 * stays the same, and a function that waits is called from one site mostly, all figures are exact.
 * One wait in 2^shift has its stack sampled, at random, and so has every wait that begins long
 * after the site's last sample. If the sampled stack differs from the expected one, 2^shift waits
 * like it do, on average, and user space reassigns that much from the expected stack to the sampled
 * one. The estimate is unbiased whichever stack was expected, because the random draw does not
 * depend on the wait, and a wait sampled with certainty has weight 1:
 *
 *	stack s:  Σ d of waits expected to have s  +  Σ w d of those sampled with s unexpectedly
 *						   -  Σ w d of those expected to have s and sampled
 *						      with another
 *
 * (the difference estimator of survey sampling). Time moves between stacks of one thread only; the
 * thread's total wait time does not change. At a rarely used site every wait is sampled.
 */
#ifndef MEMSCOPE_WAIT_SITES_H
#define MEMSCOPE_WAIT_SITES_H

#include "abi.h"

#define WAIT_SITE_STALE     8  /* gaps without a sample: the next wait is sampled for certain */
#define WAIT_SITE_SHIFT_MAX 16
#define WAIT_SITE_SURE_MAX  30
#define WAIT_SITE_SURER     2  /* the expected stack stays while a third of the waits have it */
#define WAIT_SITES_REPLACED 64 /* replacements per gap that make sites coarser */

#define WAIT_SITE_FN static inline __attribute__((always_inline))

/* xorshift64 */
WAIT_SITE_FN __u64 wait_sampler_random(struct ms_sampled_thread *b)
{
	__u64 x = b->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	b->random = x;
	return x;
}

/* The site of the present wait. */
WAIT_SITE_FN struct ms_wait_site *wait_site_of(struct ms_sampled_thread *b)
{
	return &b->sites[b->site % MS_WAIT_SITES];
}

/* The slot that holds this site; else the one of its two slots that was sampled less recently. */
WAIT_SITE_FN __u32 wait_site_find(const struct ms_sampled_thread *b, __u64 where)
{
	__u32 i = (where >> 40) % MS_WAIT_SITES, j = i ^ 1;

	if (b->sites[i].where == where)
		return i;
	if (b->sites[j].where == where)
		return j;
	return b->sites[i].sampled_ns <= b->sites[j].sampled_ns ? i : j;
}

/* A wait begins there. Is its stack to be sampled? */
WAIT_SITE_FN int wait_site_enter(struct ms_sampled_thread *b, __u64 where, __u64 clock_ns,
				 __u64 gap_ns)
{
	struct ms_wait_site *p;

	b->site = wait_site_find(b, where);
	b->reassigned = 0;
	p = wait_site_of(b);
	return p->where != where || clock_ns - p->sampled_ns >= WAIT_SITE_STALE * gap_ns ||
	       !(wait_sampler_random(b) >> 8 & ((1ULL << p->shift % 32) - 1));
}

/* From now on waits at this site are expected to have the stack of the present one. */
WAIT_SITE_FN void wait_site_expect(struct ms_wait_site *p, const struct ms_sampled_thread *b,
				   __u32 as_gen)
{
	p->user = b->user;
	p->kernel = b->kernel;
	p->as_gen = as_gen;
	p->sure = 0;
}

/* When more than WAIT_SITES_REPLACED sites are replaced within a gap, fewer are distinguished:
 * coroutines wait with more stack pointers than there are slots. */
WAIT_SITE_FN void wait_site_replace(struct ms_sampled_thread *b, __u64 clock_ns, __u64 gap_ns)
{
	if (clock_ns - b->replaced_ns > gap_ns) {
		b->replaced_ns = clock_ns;
		b->replaced = 0;
	}
	if (++b->replaced <= WAIT_SITES_REPLACED || b->coarse == 2)
		return;
	b->replaced = 0;
	b->coarse++;
}

/*
 * The wait was sampled: its stack is b->user and b->kernel. If the slot held another site, that
 * one's waits have been sent already. At a new site all waits are sampled; the probability is then
 * halved as long as samples are closer together than the gap.
 */
WAIT_SITE_FN void wait_site_sampled(struct ms_sampled_thread *b, __u64 where, __u32 as_gen,
				    __u64 clock_ns, __u64 gap_ns)
{
	struct ms_wait_site *p = wait_site_of(b);
	__u64 since_ns = clock_ns - p->sampled_ns;

	p->sampled_ns = clock_ns;
	if (p->where != where) {
		if (p->where)
			wait_site_replace(b, clock_ns, gap_ns);
		wait_site_expect(p, b, as_gen);
		p->where = where;
		p->shift = 0;
		b->drawn = 1;
		return;
	}
	b->weight = since_ns >= WAIT_SITE_STALE * gap_ns ? 0 : p->shift;
	b->drawn = 1u << b->weight % 32;
	b->reassigned = p->user.lo != b->user.lo || p->user.hi != b->user.hi ||
		   p->kernel.lo != b->kernel.lo || p->kernel.hi != b->kernel.hi;
	if (!b->reassigned) {
		p->as_gen = as_gen;
		if (p->sure < WAIT_SITE_SURE_MAX)
			p->sure += WAIT_SITE_SURER;
	}
	if (since_ns < gap_ns / 2 && p->shift < WAIT_SITE_SHIFT_MAX)
		p->shift++;
	else if (since_ns > 2 * gap_ns && p->shift)
		p->shift--;
}

/* A wait there had another stack than expected. false: expect that stack from now on. */
WAIT_SITE_FN int wait_site_is_sure(struct ms_wait_site *p)
{
	if (!p->sure)
		return 0;
	p->sure--;
	return 1;
}

/* A wait ended after `ns`; for the last `runnable_ns` of it the thread was runnable. */
WAIT_SITE_FN void wait_site_leave(struct ms_sampled_thread *b, __u64 ns, __u64 runnable_ns)
{
	struct ms_wait_site *p = wait_site_of(b);

	if (b->state == MS_RUN_BLOCKED) {
		p->blocked += 1ULL << b->shift % 32;
		p->blocked_ns += ns - runnable_ns;
	}
	if (runnable_ns) {
		p->runnable += 1ULL << b->shift % 32;
		p->runnable_ns += runnable_ns;
	}
}

#endif
