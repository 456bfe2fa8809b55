/*
 * Wait sampling for threads that switch often (bpf/wait_sampler.bpf.h): finds them, reads their
 * records, and keeps the cost of stack samples within the budget.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_WAIT_SAMPLER_H
#define MEMSCOPE_COLLECT_OVERHEAD_WAIT_SAMPLER_H

#include "collect/session/bpf_session.h"

struct wait_sampler;

/* -EOPNOTSUPP: not on this kernel, or not in this session (session_opts.wait_sampler). */
int wait_sampler_new(struct session *s, struct wait_sampler **ret_sampler, struct err *e);
void wait_sampler_free(struct wait_sampler *b);
DEFINE_CLEANUP(struct wait_sampler *, wait_sampler_freep, wait_sampler_free)

/* Calls `each` with the struct ms_sampled_thread of all sampled threads. 0 or -errno. */
int wait_sampler_each(struct wait_sampler *b, session_record_fn each, void *ctx);

/* Samples waits from now on, and not only once capturing every stack costs too much. */
void wait_sampler_begin(struct wait_sampler *b);
/* Stack samples of waits may cost `max_percent` of one CPU. */
void wait_sampler_limit(struct wait_sampler *b, double max_percent);
/* The measured cost of a stack sample. */
void wait_sampler_sample_costs(struct wait_sampler *b, double look_ns);
/* The cost of stack samples in about the last second, percent of one CPU; and of one, as assumed. */
double wait_sampler_percent(const struct wait_sampler *b);
double wait_sampler_sample_ns(const struct wait_sampler *b);
/* Call it several times a second. Counters as in stats.def, since the run began. */
void wait_sampler_tick(struct wait_sampler *b, uint64_t now_ns, uint64_t switches, uint64_t wait_sampler_switches,
	       uint64_t looks);
/* At each wait site of a thread, about one wait in so much time is sampled; 0: every wait is. */
uint64_t wait_sampler_gap_ns(const struct wait_sampler *b);

/*
 * The arithmetic of the gap. `recent`: the cost of stack samples in about the last second, percent
 * of one CPU. The gap grows while that exceeds the limit, and shrinks again when it is much less.
 * Once there is a gap it stays. Zero-initialise, set the first two.
 */
struct sample_gap {
	double max_percent, look_ns;
	uint64_t gap_ns;
	uint64_t last_ns, changed_ns, last_looks;
	double recent; /* moving average, percent, time constant one second */
};

/* Measured on Linux 6.18 in a virtual machine: a switch whose stacks are walked
 * (tests/bench/bench.py). */
#define LOOK_USUAL_NS 3500

#define SAMPLE_GAP_MIN_NS 1000000ULL
#define SAMPLE_GAP_MAX_NS 256000000ULL

void sample_gap_tick(struct sample_gap *g, uint64_t now_ns, uint64_t looks);

#endif
