/*
 * What calls seen in short slices of time say of the whole run: calls and bytes by row (a stack of a
 * thread), with a 95 % interval of the bytes.
 *
 * A slice is a stretch of time in which every call is seen, and made slower by being seen. A thread
 * that was on a CPU for C of a slice of L and made n calls, each slower by c, did only C - n c of its
 * own work in it. The slice stands for the interval D around it, half way to its neighbours. So a call
 * of that thread weighs
 *
 *   D/L * C/(C - n c) * s
 *
 * where s makes it add up to what is known: the CPU time that the thread really had, outside of
 * slices too, over what slices say that it had. That one factor is right for threads that compute all the
 * time, for those that wait for a CPU, and for those that others pace: these make as many calls however
 * slow each is, and it shows in their CPU time. s is taken over a block of slices that follow each
 * other.
 *
 * Where much of a slice is lost (a program that lives in its allocator), C - n c is a small difference
 * of large numbers. Slices alike in what part was lost are then taken together over the block: the CPU
 * time that they stand for over their own work. What is left of C is never taken to be less than calls
 * can take at all.
 *
 * How wrong c may be is a part of the interval, of its own: the same calls, weighed for a c that is larger
 * and smaller by `call_sure`. What is said is in the middle of the two, by ratio: where little is left,
 * what c says of it may be nothing.
 *
 * The other part is from how slices differ: within a block, the squares of what each slice says beyond
 * its share of the CPU time. Those deviations are kept in SLICE_GROUPS sums, by the slice's place in
 * the block, so that they add up over rows as bytes do, whatever rows have in common.
 *
 * Intervals hold the truth in 93 to 97 % of simulated runs (tests/unit/analyse/slices.c).
 */
#ifndef MEMSCOPE_ANALYSE_SLICES_H
#define MEMSCOPE_ANALYSE_SLICES_H

#include "base/cleanup.h"
#include "model/estimate.h"

#include <stdint.h>

#define SLICE_GROUPS 16

struct slice_span {
	uint64_t open_ns, close_ns; /* every call in between was seen   */
	double call_ns;             /* by how much each was slower       */
	double call_sure;           /* which may be off by so much, ns   */
};

/* CPU time that a thread had had when the slice was opened, and closed. */
struct slice_cpu {
	uint32_t thread;
	uint64_t open_ns, close_ns;
};

/* Calls of one row in one slice. `row` is dense: 0, 1, 2 …; `thread` is any number. */
struct slice_calls {
	uint32_t row, thread;
	uint64_t calls, bytes;
};

/* Two are added by adding each member. */
struct slice_estimate {
	uint64_t seen_calls, seen_bytes;
	double calls, bytes;
	double low_bytes, high_bytes;   /* `bytes` if a call's cost were other   */
	double group[SLICE_GROUPS];     /* deviations, bytes                     */
};

struct slices;

/* What the first slice stands for begins at `from_ns`. NULL when out of memory. */
struct slices *slices_new(uint64_t from_ns);
void slices_free(struct slices *s);
DEFINE_CLEANUP(struct slices *, slices_freep, slices_free)

/*
 * The next slice: its calls, and the CPU times of `n_cpus` threads, by thread; a thread that is missing
 * there is taken to be on a CPU all the time. Both are copied. 0 or -ENOMEM.
 */
int slices_add(struct slices *s, const struct slice_span *span, const struct slice_calls *calls,
	       uint32_t n, const struct slice_cpu *cpus, uint32_t n_cpus);
/* CPU times at `from_ns`; before the first slice. Those of threads that it does not name were 0. */
int slices_begin(struct slices *s, const struct slice_cpu *cpus, uint32_t n_cpus);
/*
 * There are no more; what the last one stands for ends at `to_ns`, when CPU times were `cpus`. 0 or
 * -ENOMEM.
 */
int slices_finish(struct slices *s, uint64_t to_ns, const struct slice_cpu *cpus, uint32_t n_cpus);

/* Of what is settled: all after slices_finish(), else all but the last blocks. */
const struct slice_estimate *slices_row(const struct slices *s, uint32_t row);
const struct slice_estimate *slices_total(const struct slices *s);

struct slice_facts {
	uint32_t slices;
	uint64_t covered_ns; /* their length in all */
};
void slices_facts(const struct slices *s, struct slice_facts *ret_facts);

void slice_estimate_merge(struct slice_estimate *to, const struct slice_estimate *from);
/* 95 %, of the bytes, of so many slices in all. Never below what was seen. */
struct interval slice_interval(const struct slice_estimate *est, uint32_t slices);

#endif
