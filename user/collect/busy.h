/*
 * Threads that switch often (bpf/busy.bpf.h): finds them, reads what is known of them, and keeps what
 * looking at waits costs within the budget.
 */
#ifndef MEMSCOPE_COLLECT_BUSY_H
#define MEMSCOPE_COLLECT_BUSY_H

#include "collect/bpf_session.h"

struct busy;

/* -EOPNOTSUPP: not on this kernel, or not of this session (session_opts.busy). */
int busy_new(struct session *s, struct busy **ret_busy, struct err *e);
void busy_free(struct busy *b);
DEFINE_CLEANUP(struct busy *, busy_freep, busy_free)

/* Calls `each` with the struct ms_busy of all busy threads. 0 or -errno. */
int busy_each(struct busy *b, session_record_fn each, void *ctx);

/* The waits of busy threads are thinned from now on, and not only once looking at all costs too much. */
void busy_begin(struct busy *b);
/* `max_percent` of one CPU is what looking at waits may cost. */
void busy_limit(struct busy *b, double max_percent);
/* What a look costs: it has been measured. */
void busy_look_costs(struct busy *b, double look_ns);
/* What looking cost in the last second, about, in percent of one CPU; if a look costs so much. */
double busy_percent(const struct busy *b);
double busy_look_ns(const struct busy *b);
/* To be called several times a second. Counters as in stats.def, since the run began. */
void busy_tick(struct busy *b, uint64_t now_ns, uint64_t switches, uint64_t busy_switches,
	       uint64_t looks);
/* Of the waits of one thread at one place one in so much time is looked at; 0: all are. */
uint64_t busy_gap_ns(const struct busy *b);

/*
 * The arithmetic of that. What looking cost in the last second, about, in percent of one CPU; the gap
 * grows while that is beyond the limit, and shrinks again when it is much less. Once there is one it
 * stays. Zero-initialise, set the first two.
 */
struct look_gap {
	double max_percent, look_ns;
	uint64_t gap_ns;
	uint64_t last_ns, changed_ns, last_looks;
	double recent; /* moving average, percent, time constant one second */
};

/* Measured on Linux 6.18 in a virtual machine: a switch whose stacks are walked (tests/bench/bench.py). */
#define LOOK_USUAL_NS 3500

#define LOOK_GAP_MIN_NS 1000000ULL
#define LOOK_GAP_MAX_NS 256000000ULL

void look_gap_tick(struct look_gap *g, uint64_t now_ns, uint64_t looks);

#endif
