/*
 * Allocations in a run: what the files of this folder know of each other; to the rest of a run they are
 * one component, and struct alloc_state (run.h) is what it says of itself.
 *
 *   exact     every call, by probes: alloc_table.h adds up what becomes of them; mappings beside them.
 *             Or recorded in the process itself, by the injected library
 *   bursts    every call, for a moment now and then
 *   sampled   what a sampler in the target reports
 *
 * alloc.c decides which, by what a look at the call rate and --max-overhead say, and alone changes it; alloc_report.c
 * says what came of it.
 */
#ifndef MEMSCOPE_RUN_ALLOC_ALLOC_H
#define MEMSCOPE_RUN_ALLOC_ALLOC_H

#include "analyse/sample_sites.h"
#include "analyse/sites.h"
#include "base/clock.h"
#include "collect/overhead/exact_limiter.h"
#include "collect/overhead/sample_throttle.h"
#include "collect/overhead/syscall_watch.h"
#include "collect/probes/sample_probes.h"
#include "collect/stream/alloc_table.h"
#include "collect/stream/mappings.h"
#include "collect/stream/samples.h"
#include "inject/inject.h"
#include "model/estimate.h"
#include "run/component.h"
#include "run/pipeline.h"
#include "run/targets.h"

struct alloc_tier_ops;
struct run_bursts;
struct run_live;
struct run_output;
struct burst_settled;
struct search;

/* A process that the library was put into. */
struct injection {
	struct injection *next;
	pid_t pid;
	struct injected *in; /* NULL: no more */
	struct inject_counts counts;
	bool due; /* it has mapped something since */
	/* Every call is recorded there: */
	int area_fd;
	struct inprocess *inprocess;
	bool replaced; /* it runs another program */
};

/* The highest points of process images, each its own. */
struct alloc_peak {
	uint32_t images; /* that held anything                 */
	int64_t bytes;   /* sum                                */
	uint64_t at_ns;  /* of the last image; CLOCK_MONOTONIC  */
};

enum { ALLOC_ROWS = 10 };

struct alloc {
	struct run *run;
	double calls_per_s, cost_percent; /* by the look at the call rate; 0: there was none */
	double limit_percent;             /* of --max-overhead: what allocations may cost now */
	char reason[400];                 /* why it is this tier; ""                          */
	bool may_sample;                  /* the programs for samplers are loaded             */
	bool samples_first;               /* and used without a look at the call rate         */

	/* Every call. */
	struct alloc_probes *probes;
	struct alloc_table *table;
	struct exact_limiter *limiter; /* NULL: no limit, or not every call is traced      */
	struct mappings *mappings;     /* NULL: system calls are not traced                */
	struct syscall_watch syscalls; /* how many there are, while they are               */
	struct run_bursts *bursts;     /* NULL: none were taken                            */
	struct run_live *live;         /* NULL: what lives is not looked for in bursts     */
	struct search *search;         /* while functions without names are looked for    */
	char unfound[160];             /* why an allocator's functions were not found; "" */
	bool unnamed;                  /* there is one whose functions have no names, and are not known */
	double trap_ns;                /* what a hit costs beside its program              */
	struct alloc_peak peak;        /* of all images                                    */
	uint64_t sizes[ALLOC_SIZES];
	bool sweeping, ended_since_sweep;
	run_block_fn list_fn; /* while live blocks are listed */
	void *list_ctx;
	uint64_t next_sweep_ns;
	uint64_t gap_ns;                  /* forked children that ran before their probes     */
	uint32_t gap_children, gap_ended; /* … and those that ended before                    */
	uint64_t late_ns;                 /* libraries that were mapped before theirs         */
	uint32_t late_files;

	/* Samples. */
	struct sample_probes *sample_probes;
	struct samples *samples;
	struct sample_throttle sample_throttle;
	struct sample_probes_stats sampler;
	char sampler_advice[512]; /* a sampler there is not listened to: a sentence; "" */
	char sampler_name[512];
	char library[512];    /* libmemscope-alloc.so, where it was looked for     */
	char *preload_before; /* LD_PRELOAD as memscope got it                     */
	bool preloaded;
	struct injection *injections; /* that are in force                                 */
	bool injected;                /* there was one                                     */
	bool objects_seen;            /* of CPython, by its hooks, in some process …       */
	bool objects_unseen;          /* … and not in another                              */
	uint32_t unrecorded_children;
	uint64_t recorded_before; /* calls, when the cost was last asked for           */
	uint64_t added_ns;        /* when estimates were last put into the profiles    */
	struct estimate sampled, sampled_live;

	/* Of the summary. */
	struct site_row sites[ALLOC_ROWS], live_sites[ALLOC_ROWS];
	struct site_row mapped[SUMMARY_FEW_SITES], live_mapped[SUMMARY_FEW_SITES];
	struct summary_sites more_sites;
};

/* What a tier does at the moments of component.h; all may be NULL. */
struct alloc_tier_ops {
	void (*process)(struct alloc *al, const struct process_event *event);
	void (*tick)(struct alloc *al, uint64_t now_ns);
	void (*drained)(struct alloc *al, uint64_t now_ns);
	double (*percent)(struct alloc *al, const struct cost_window *w);
	void (*limit)(struct alloc *al, double percent);
	int64_t (*live_bytes)(struct alloc *al);
	double (*total_bytes)(struct alloc *al);
	/* Estimates so far into the profiles. `boundary`: what was seen before this moment is settled. */
	int (*add)(struct alloc *al, bool boundary);
	bool adds_rows; /* for every row of the series, too */
	/* Of a profile of a stretch of time: what is live, and what the estimates are worth. */
	int (*snapshot)(struct alloc *al, struct profile_since *since, struct profile_now *now);
	void (*closing)(struct alloc *al);
	/* As in struct alloc_state. */
	int (*blocks)(struct alloc *al, run_block_fn fn, void *fn_ctx, struct err *e);
	const struct site_key *(*site)(struct alloc *al, const struct drain_block *block);
	int (*finish)(struct alloc *al, struct err *e);
	void (*report)(struct alloc *al, struct summary_alloc *to);
};
extern const struct alloc_tier_ops exact_ops, inprocess_ops, bursts_ops, sampled_ops;

/* --- alloc.c --- */

/* The tier changes; tracing ends at `ns`. What struct alloc_state says follows from these. */
void alloc_set_tier(struct alloc *al, enum alloc_tier tier);
void alloc_begun(struct alloc *al);
void alloc_ended(struct alloc *al, uint64_t ns);
/* An estimate has become known, for the series. */
void alloc_tell(const struct alloc *al, const stack_id *stack, double bytes, uint64_t from_ns,
		uint64_t to_ns);
/* Gathered now: every call; in bursts; by a sampler. */
bool alloc_is(const struct alloc *al, enum alloc_tier tier);
/* Probes of calls follow processes and what they map. */
bool alloc_probing(const struct alloc *al);
/* Has the memory of this image gone? `ctx`: the component. */
bool alloc_image_gone(void *ctx, const struct proc_id *proc);
/* The errors of estimates that ingest_estimate() has added: of blocks and bytes allocated, and live; NULL:
 * nothing of those. 0 or -errno. */
int alloc_add_errors(struct alloc *al, stack_id stack, labels_id labels,
		     const struct value_error allocated[2], const struct value_error live[2]);
/* Notes what could not be probed; before the probes are released. */
void alloc_say_failed(struct alloc *al);
/* Of the tier that is or was in force; NULL: none, nothing is gathered. */
const struct alloc_tier_ops *alloc_ops(const struct alloc *al);

/* --- alloc_report.c --- */

/* As component.h has them. */
void alloc_report(void *self, struct run_summary *s);
bool alloc_cost_report(void *self, const struct program_cost *program, const struct run_summary *s,
		       struct summary_cost *ret_cost);
int alloc_write(void *self, struct run_output *to, struct err *e);
/*
 * In report(): intervals of the sites allocated by, or of those that hold what is `live`, and of the total, by the
 * errors that the profile carries. A total of more than the profile has keeps what it has.
 */
void alloc_site_intervals(struct alloc *al, bool live, struct summary_alloc *a);

/* --- exact.c --- */

/* The table of what becomes of allocations; before the gate opens. */
int exact_open(struct alloc *al, struct err *e);
/* The line of model/about.h that says when most was in use. */
const char *exact_peak_line(const struct alloc *al, char *buf, size_t size);
int exact_start(struct alloc *al, struct err *e);
/* A process of which the kernel said something, whether calls are traced always or in bursts. */
void probes_process(struct alloc *al, const struct process_event *event);

/* What the table of sites calls. */
struct alloc_table_fns exact_table_fns(struct alloc *al);

/* --- inprocess.c: ALLOC_TIER_EXACT without probes --- */

bool inprocess_wanted(const struct run_config *cfg);
int inprocess_open(struct alloc *al, struct err *e);
/* The library is in the processes, and the gate is open. */
/* The command, which begins now, or runs already: see component.h. */
int inprocess_entered(struct alloc *al, pid_t pid, bool held, struct err *e);
int inprocess_start(struct alloc *al, struct err *e);
/* What was recorded so far; no more is recorded. */
void inprocess_totals(struct alloc *al);
void inprocess_stop(struct alloc *al);
void inprocess_cost(struct alloc *al, struct summary_cost *ret_cost);
void inprocess_close(struct alloc *al);

/* --- bursts.c --- */

/* From now on in bursts, with the probes that there are; they stand for all since `from_ns`. */
int bursts_start(struct alloc *al, uint64_t from_ns, struct err *e);
/* Around the exchange of the totals: which bursts are over; their totals have been read. */
void bursts_flip(struct alloc *al);
void bursts_read(struct alloc *al);
enum drain_says bursts_on_calls(void *ctx, const void *calls, const void *more);
void bursts_close(struct alloc *al);
enum drain_says bursts_on_result(void *ctx, const void *result, const void *more);
/* Each stack of a thread that was seen, and whose it is. */
/* Whose CPU time it is that stands for that of a thread: its own, or the process's. */
uint32_t bursts_timed(const struct alloc *al, pid_t pid, uint32_t tid);
typedef void (*bursts_row_fn)(void *ctx, uint32_t row, pid_t pid, const struct event_key *key);
void bursts_each_row(struct alloc *al, bursts_row_fn fn, void *ctx);
/* All weights may be off by one factor, the error of what tracing a call costs; after the last calls are settled. */
void bursts_weight_range(const struct alloc *al, double *ret_low, double *ret_high);

/* --- behaviour.c --- */

/*
 * Before the run begins: the allocation functions of an allocator in the targets that has no symbols. Takes ten
 * seconds at most, and no time where there is none. Returns how many are probed from now on.
 */
int behaviour_find(struct alloc *al);
enum drain_says behaviour_on_call(void *ctx, const void *call, const void *more);

/* --- live.c --- */

/* Is what lives looked for, if calls are traced in bursts? */
bool live_wanted(const struct run_config *cfg);
/* Before the first burst: what is in use already. */
int live_begin(struct alloc *al, struct err *e);
/* A call of a burst has made a block; `row` as in bursts_each_row(). */
void live_result(struct alloc *al, uint32_t row, const struct drain_result *result);
/* Do returns take so much of a burst that they are traced in bursts of their own? As the look at the call
 * rate says. */
bool live_apart(const struct alloc *al);
/* In a burst with returns so many calls were seen, and the returns of so many. */
void live_returns(struct alloc *al, uint64_t calls, uint64_t results);
/* What calls of a burst stand for, about, before that is settled; and then. */
void live_guess(struct alloc *al, double calls, double stand_for);
void live_settled(struct alloc *al, uint32_t burst, uint32_t thread, pid_t pid, double weight);
void live_process_event(struct alloc *al, const struct process_event *event);
/* A row of the series; the last look; the heap profile, after the last calls are settled. */
void live_row(struct alloc *al, uint64_t now_ns);
void live_closing(struct alloc *al);
void live_finish(struct alloc *al);
void live_report(struct alloc *al, struct summary_alloc *to);
int live_write(struct alloc *al, struct run_output *to, struct err *e);
void live_free(struct alloc *al);

/* --- mappings.c --- */

/* Every allocation is traced from now on, and mappings with them; no more. */
int mappings_begin(struct alloc *al, struct err *e);
void mappings_end(struct alloc *al);
/* Unless every call is asked for: gives up, and says so, where there are too many system calls. */
void mappings_tick(struct alloc *al, uint64_t now_ns);
enum drain_says mappings_on_record(void *ctx, const void *record, const void *more);
/* What images that ended had mapped goes. */
void mappings_forget(struct alloc *al);
/* Into the profile; after ingest_finish(). */
int mappings_finish(struct alloc *al, struct err *e);
void mappings_report(struct alloc *al, struct summary_mappings *to);

/* --- sampled.c --- */

/* Before and after a command is started: memscope's library is in its environment. */
int sampled_preload(struct alloc *al, struct err *e);
void sampled_preloaded(struct alloc *al);
int sampled_start(struct alloc *al, struct err *e);
/* Exact tracing was declined: listens to a sampler, where the process has one. */
int sampled_instead(struct alloc *al, struct err *e);
enum drain_says sampled_on_record(void *ctx, const void *record, const void *more);
/* Detaches, and notes what could not be heard. */
void sampled_stop(struct alloc *al);
void sampled_free(struct alloc *al);

/* --- inject.c --- */

/* One more, in process `pid`; `held`: the command, at its first instruction. */
int injection_begin(struct alloc *al, pid_t pid, bool held, struct err *e);
/* With --inject: the library is in the processes asked for, and does nothing yet. */
int injections_begin(struct alloc *al, struct err *e);
/* Samples are listened to, or calls recorded: let there be some. */
int injections_hook(struct alloc *al, struct err *e);
/* `pid` has mapped something, which is heeded at the next tick. */
void injections_look(struct alloc *al, pid_t pid);
void injections_tick(struct alloc *al);
void injections_end(struct alloc *al);
void injections_free(struct alloc *al);

#endif
