/*
 * Duty cycles: a thread that attaches a source's programs in randomly drawn slices of the time and takes them off between them. The
 * estimator, and why it is unbiased, is in bpf/slices.h.
 *
 * A program that returns at once costs each switch some 0.1 us all the same, and one that is not attached costs nothing; attaching and
 * detaching rewrites the kernel's code, which takes 0.1 ms on some machines and 8 ms on others (tests/bench/README.md). So what that
 * takes is measured, and where the events of a stratum cost less, programs stay attached between slices and return at once.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_SLICES_H
#define MEMSCOPE_COLLECT_OVERHEAD_SLICES_H

#include "collect/session/bpf_session.h"

#define SLICES_SHIFT_MAX 8 /* 1/256 of the time */
#define STRATUM_NS       2000000000ULL

struct slices;

/* All of the time, until slices_shift(). The gate is open. -EOPNOTSUPP: not this source, on this kernel. */
int slices_new(struct session *s, enum source source, struct slices **ret_slices);
/* The last slice ends, and the source stays as it is. */
void slices_stop(struct slices *s);
void slices_free(struct slices *s);
DEFINE_CLEANUP(struct slices *, slices_freep, slices_free)

/* From the next stratum on: attached in 1 of 2^shift of the time. */
void slices_shift(struct slices *s, uint32_t shift);
uint32_t slices_shift_now(const struct slices *s);

/* For how long its events were counted, up to now. */
uint64_t slices_open_ns(const struct slices *s);

/* How often its programs would run in a second, and what one takes that returns at once, as far as is known. */
void slices_runs(struct slices *s, double runs_per_s, double each_ns);
/* For how long they stayed attached and returned at once, up to now. */
uint64_t slices_rest_ns(const struct slices *s);
/* Does staying attached, `each_ns` for a run, cost less than `pair_ns` of CPU time, to attach and detach, in each stratum? 0: not measured yet. */
bool slices_rest_pays(double runs_per_s, double each_ns, uint64_t pair_ns);

struct slices_stats {
	uint64_t strata,
		missed; /* in which it was to be attached in one slice; … of those, in which it was not */
	uint64_t wanted_ns, open_ns; /* of all time; of that, in slices */
	uint32_t most;               /* largest shift so far */
};
void slices_stats(const struct slices *s, struct slices_stats *ret_stats);

/*
 * The slice of a stratum that begins at `begin_ns`, by a number drawn uniformly from 64 bits: its cell is one of 2^shift, each
 * with the same chance.
 */
uint64_t slice_begin_ns(uint64_t begin_ns, uint32_t shift, uint64_t random);

#endif
