/*
 * Estimates of all calls of a run from the calls seen in short bursts: calls and bytes by row (a
 * stack of a thread), with a 95 % interval of the bytes.
 *
 * In a burst every call is seen, and slowed by being seen. A thread that was on a CPU for C of a
 * burst of length L and made n calls, each slowed by c, did only C - n c of its own work in it. The
 * burst represents the interval D around it, half way to its neighbours. So a call of that thread
 * weighs
 *
 *   D/L * C/(C - n c) * s
 *
 * where s makes the weights add up to what is known: the thread's true CPU time, outside of bursts
 * too, over its CPU time as estimated from bursts. That one factor is right for threads that always
 * compute, for those that wait for a CPU, and for those paced by others: the latter make as many
 * calls however slow each is, and that shows in their CPU time. s is computed over a block of
 * consecutive bursts.
 *
 * Where much of a burst is lost (an allocation-heavy program), C - n c is a small difference of
 * large numbers. Bursts with similar losses are then pooled over the block: the CPU time that they
 * represent over their own work. What is left of C is never assumed to be less than the calls
 * themselves need.
 *
 * The interval has two parts. One is the error of c: the same calls are weighed with c larger and
 * smaller by `call_sure`. The estimate is the geometric mean of the two, because where little of C
 * is left, one of them may be meaningless.
 *
 * The other part is the variation between bursts: within a block, the squares of each burst's
 * deviation from its share of the CPU time. The deviations are kept in BURST_GROUPS sums, by the
 * burst's place in the block, so that they add up over rows as bytes do, however rows are
 * correlated.
 *
 * Intervals hold the truth in 93 to 97 % of simulated runs (tests/unit/analyse/bursts.c).
 */
#ifndef MEMSCOPE_ANALYSE_BURSTS_H
#define MEMSCOPE_ANALYSE_BURSTS_H

#include "base/cleanup.h"
#include "model/estimate.h"
#include "model/value_error.h"

#include <stdint.h>

#define BURST_GROUPS ERROR_GROUPS

struct burst_span {
	uint64_t open_ns, close_ns; /* every call in between was seen   */
	double call_ns;             /* by how much each was slowed       */
	double call_sure;           /* the error of that, ns             */
	uint32_t no;                /* by which it is named when settled */
};

/* A thread's CPU time so far, when the burst was opened, and closed. */
struct burst_cpu {
	uint32_t thread;
	uint64_t open_ns, close_ns;
};

/* Calls of one row in one burst. `row` is dense: 0, 1, 2 …; `thread` is any number. */
struct burst_calls {
	uint32_t row, thread;
	uint64_t calls, bytes;
};

/* Two are added by adding each member. */
struct burst_estimate {
	uint64_t seen_calls, seen_bytes;
	double calls, bytes;
	double low_bytes, high_bytes;   /* `bytes` at the bounds of a call's cost*/
	double group[BURST_GROUPS];     /* deviations, bytes                     */
};

struct bursts;

/* The interval of the first burst begins at `from_ns`. NULL when out of memory. */
struct bursts *bursts_new(uint64_t from_ns);
void bursts_free(struct bursts *s);
DEFINE_CLEANUP(struct bursts *, bursts_freep, bursts_free)

/*
 * The next burst: its calls, and the CPU times of `n_cpus` threads, by thread; a missing thread is
 * assumed to be on a CPU all the time. Both are copied. 0 or -ENOMEM.
 */
int bursts_add(struct bursts *s, const struct burst_span *span, const struct burst_calls *calls,
	       uint32_t n, const struct burst_cpu *cpus, uint32_t n_cpus);
/* CPU times at `from_ns`; before the first burst. Missing threads had none. */
int bursts_begin(struct bursts *s, const struct burst_cpu *cpus, uint32_t n_cpus);
/*
 * After the last burst; its interval ends at `to_ns`, when CPU times were `cpus`. 0 or -ENOMEM.
 */
int bursts_finish(struct bursts *s, uint64_t to_ns, const struct burst_cpu *cpus, uint32_t n_cpus);

/*
 * A boundary at `ns`, when CPU times were `cpus`: what was seen before it is settled, so that what comes
 * later adds to it and changes nothing. With fewer than BURST_GROUPS bursts since the last boundary it does
 * nothing: the ratio `s` of so few would be biased. They are settled at the next one. 0 or -ENOMEM.
 */
int bursts_cut(struct bursts *s, uint64_t ns, const struct burst_cpu *cpus, uint32_t n_cpus);

/* Called for each row of each burst as it is settled. */
struct burst_settled {
	uint32_t row, thread, no;
	double calls, bytes;     /* of the interval that the burst represents       */
	double weight;           /* what a call of the row, of that thread, stands for */
	uint64_t from_ns, to_ns; /* that interval                                   */
};
typedef void (*bursts_settled_fn)(void *ctx, const struct burst_settled *settled);
void bursts_on_settled(struct bursts *s, bursts_settled_fn fn, void *ctx);

/* Settled estimates: all after bursts_finish(), before that all but the last blocks. */
const struct burst_estimate *bursts_row(const struct bursts *s, uint32_t row);
const struct burst_estimate *bursts_total(const struct bursts *s);

struct burst_facts {
	uint32_t bursts;
	uint64_t covered_ns; /* their length in all */
	uint32_t settled;    /* of the bursts       */
	uint64_t settled_covered_ns, settled_to_ns;
};
void bursts_facts(const struct bursts *s, struct burst_facts *ret_facts);

void burst_estimate_merge(struct burst_estimate *to, const struct burst_estimate *from);
/* What came since: `part` was in it at an earlier time. */
void burst_estimate_less(struct burst_estimate *from, const struct burst_estimate *part);
/* The same for a profile: of its bytes, and of its calls, which vary as the bytes of the row do. */
void burst_errors(const struct burst_estimate *est, struct value_error *ret_calls,
		  struct value_error *ret_bytes);
/* 95 % interval of the bytes, from so many bursts. Never below the bytes seen. */
struct interval burst_interval(const struct burst_estimate *est, uint32_t bursts);

#endif
