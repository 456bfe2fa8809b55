/*
 * Which waits of a thread are looked at, and what the others count for. One source for the kernel and
 * the host.
 *
 * A wait counts for its place: for where its thread was in user space (pc, sp and system call, which are at hand),
 * and the stack that was found when a wait began there before. So long as that is the same one, and a
 * function that waits is called from one place mostly, all figures are exact. Of the waits at a place
 * one in 2^shift is looked at, by the throw of a coin, and each that begins long after the last look.
 * If it is found to have another stack, then 2^shift waits like it do, on average; so much is moved
 * from the one to the other by user space. That estimate is unbiased whatever stack was expected,
 * because the coin knows nothing of the wait, and what is looked at for certain stands for itself:
 *
 *	stack s:  Σ d of waits expected to have s  +  Σ w d of those found there unexpectedly
 *						   -  Σ w d of those expected there, found elsewhere
 *
 * (the difference estimator of survey sampling). It moves time between stacks of one thread alone: what
 * the thread waited in all stays as it was. A rare place is looked at each time.
 */
#ifndef MEMSCOPE_PLACES_H
#define MEMSCOPE_PLACES_H

#include "abi.h"

#define PLACE_STALE     8  /* gaps without a look after which a wait is looked at for certain */
#define PLACE_SHIFT_MAX 16
#define PLACE_SURE_MAX  30
#define PLACE_SURER     2  /* a third of the waits having the stack is enough to go on expecting it */
#define PLACES_REPLACED 64 /* places that may go in one gap before fewer are told apart */

#define PLACE_FN static inline __attribute__((always_inline))

/* xorshift64 */
PLACE_FN __u64 busy_random(struct ms_busy *b)
{
	__u64 x = b->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	b->random = x;
	return x;
}

/* The place of the present wait. */
PLACE_FN struct ms_place *place_of(struct ms_busy *b)
{
	return &b->places[b->place % MS_PLACES];
}

/* One that is there, else the one of two that was looked at earlier. */
PLACE_FN __u32 place_find(const struct ms_busy *b, __u64 where)
{
	__u32 i = (where >> 40) % MS_PLACES, j = i ^ 1;

	if (b->places[i].where == where)
		return i;
	if (b->places[j].where == where)
		return j;
	return b->places[i].looked_ns <= b->places[j].looked_ns ? i : j;
}

/* A wait begins there. Is it to be looked at? */
PLACE_FN int place_enter(struct ms_busy *b, __u64 where, __u64 clock_ns, __u64 gap_ns)
{
	struct ms_place *p;

	b->place = place_find(b, where);
	b->moved = 0;
	p = place_of(b);
	return p->where != where || clock_ns - p->looked_ns >= PLACE_STALE * gap_ns ||
	       !(busy_random(b) >> 8 & ((1ULL << p->shift % 32) - 1));
}

/* Waits there are expected to have the stack of the present one. */
PLACE_FN void place_expect(struct ms_place *p, const struct ms_busy *b, __u32 as_gen)
{
	p->user = b->user;
	p->kernel = b->kernel;
	p->as_gen = as_gen;
	p->sure = 0;
}

/* Where more places come and go than one in 64 in a gap, they are told apart less: stacks of coroutines
 * are at more addresses than can be kept. */
PLACE_FN void place_replace(struct ms_busy *b, __u64 clock_ns, __u64 gap_ns)
{
	if (clock_ns - b->replaced_ns > gap_ns) {
		b->replaced_ns = clock_ns;
		b->replaced = 0;
	}
	if (++b->replaced <= PLACES_REPLACED || b->coarse == 2)
		return;
	b->replaced = 0;
	b->coarse++;
}

/*
 * It was looked at: its stack is b->user and b->kernel. A place that was another's is empty. All waits are
 * looked at first, then half as many as before as long as they are closer than the gap.
 */
PLACE_FN void place_looked(struct ms_busy *b, __u64 where, __u32 as_gen, __u64 clock_ns, __u64 gap_ns)
{
	struct ms_place *p = place_of(b);
	__u64 since_ns = clock_ns - p->looked_ns;

	p->looked_ns = clock_ns;
	if (p->where != where) {
		if (p->where)
			place_replace(b, clock_ns, gap_ns);
		place_expect(p, b, as_gen);
		p->where = where;
		p->shift = 0;
		return;
	}
	b->weight = since_ns >= PLACE_STALE * gap_ns ? 0 : p->shift;
	b->moved = p->user.lo != b->user.lo || p->user.hi != b->user.hi ||
		   p->kernel.lo != b->kernel.lo || p->kernel.hi != b->kernel.hi;
	if (!b->moved) {
		p->as_gen = as_gen;
		if (p->sure < PLACE_SURE_MAX)
			p->sure += PLACE_SURER;
	}
	if (since_ns < gap_ns / 2 && p->shift < PLACE_SHIFT_MAX)
		p->shift++;
	else if (since_ns > 2 * gap_ns && p->shift)
		p->shift--;
}

/* A wait there had another stack than expected. false: expect that one from now on. */
PLACE_FN int place_doubt(struct ms_place *p)
{
	if (!p->sure)
		return 0;
	p->sure--;
	return 1;
}

/* A wait ended after `ns`, of which it could have run for the last `runnable_ns`. */
PLACE_FN void place_leave(struct ms_busy *b, __u64 ns, __u64 runnable_ns)
{
	struct ms_place *p = place_of(b);

	if (b->state == MS_RUN_BLOCKED) {
		p->blocked++;
		p->blocked_ns += ns - runnable_ns;
	}
	if (runnable_ns) {
		p->runnable++;
		p->runnable_ns += runnable_ns;
	}
}

#endif
