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

/* Calls `each` with the kernel's records of all sampled threads (for drain.c). 0 or -errno. */
int wait_sampler_each(struct wait_sampler *b, session_record_fn each, void *ctx);

/* Samples waits of every thread that waits more often than the gap allows samples, and not only
 * once capturing every stack costs too much. */
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
/* At each wait site of a sampled thread, about one wait in so much time is sampled. */
uint64_t wait_sampler_gap_ns(const struct wait_sampler *b);
/* Whether any threads are sampled now. */
bool wait_sampler_any(const struct wait_sampler *b);
/* Whether some may be whose waits alone are no flood: capturing every stack was given up. */
bool wait_sampler_begun(const struct wait_sampler *b);

/*
 * The arithmetic of which threads are sampled, and of the gap.
 *
 * The kernel's programs make a thread sampled by themselves, within 10 ms, when its stacks alone
 * would take half of the limit, or, once there is a gap, when it waits more often than the gap allows
 * samples. So a flood costs as little in its first second as later. What many slower threads cost
 * together is noticed here.
 *
 * `recent`: the cost of stack samples in about the last second, percent
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
/* Switches of a thread within 10 ms that make it sampled. */
uint32_t sample_gap_often(const struct sample_gap *g);

#define OFTEN_LEAST 4 /* a thread that only runs now and then may still wait a few times in a row */

#endif
