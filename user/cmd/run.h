/*
 * The assembly line of one run: builds the rooms, joins them, and takes them apart again.
 *
 *   sideband ─► proc_table ─┐
 *   BPF maps ─► drain ─► ingest ─► profiles ─► symbolize ─► files, summary
 *
 * record.c says what is wanted, run.c does it, run_output.c writes it down.
 */
#ifndef MEMSCOPE_CMD_RUN_H
#define MEMSCOPE_CMD_RUN_H

#include "analyse/bands.h"
#include "analyse/sample_sites.h"
#include "analyse/summary.h"
#include "analyse/trend.h"
#include "base/err.h"
#include "cmd/group.h"
#include "collect/alloc_probes.h"
#include "collect/alloc_table.h"
#include "collect/drain.h"
#include "collect/exact_watch.h"
#include "collect/governor.h"
#include "collect/ingest.h"
#include "collect/launch.h"
#include "collect/mappings.h"
#include "collect/sample_probes.h"
#include "collect/samples.h"
#include "collect/sideband.h"
#include "collect/sources.h"
#include "collect/stats.h"
#include "collect/thinner.h"
#include "base/tree.h"
#include "proc/proc_mem.h"
#include "render/trend_csv.h"

enum alloc_mode { ALLOC_AUTO, ALLOC_EXACT, ALLOC_SAMPLED, ALLOC_SLICES, ALLOC_OFF };
enum waits_mode { WAITS_AUTO, WAITS_EXACT, WAITS_SAMPLED };

struct run_config {
	pid_t *pids;             /* asked for; none with `all` or `command` */
	uint32_t n_pids;
	bool all;
	struct group *groups;    /* -c, -G: their members are watched; `pids` are those that are there */
	uint32_t n_groups;
	const struct cgroup_mounts *mounts; /* with `groups`                 */
	char **command;          /* argv of -- CMD, or NULL                  */
	double duration_s;       /* 0: until a signal or the target's end    */
	double delay_s;          /* before anything is attached              */
	uint32_t hz;
	bool sources[MS_N_SOURCES];
	enum alloc_mode alloc;
	bool alloc_asked;        /* allocations were asked for by name       */
	uint64_t alloc_rate;     /* ALLOC_SAMPLED of a command, or injected: mean bytes between samples */
	bool inject;             /* ALLOC_SAMPLED: put the library into running processes */
	bool file_scope;
	bool python_objects;     /* ALLOC_EXACT: CPython's allocator of objects as well   */
	double max_overhead;     /* % of one CPU                             */
	bool children, user_stacks, kernel_stacks;
	pid_t tid;
	bool *cpus;
	uint32_t n_cpus;
	double interval_s;
	uint32_t mem_mb;
	bool quiet, verbose, json, no_demangle;
	const char *by;          /* label at the root of stacks, NULL: none   */
	const char *dir;         /* where the files go; exists; NULL: run_facts() alone */
	enum waits_mode waits;
	uint64_t wait_min_ns, wait_max_ns; /* off-CPU: waits that are told with their stacks; 0: no bound */
	double every_s;          /* a window of profiles every so many seconds; 0: one of all */
	struct keep keep;        /* which of them stay                       */
	struct tree *tree;       /* with every_s: where they are made        */
	const char *stamp;       /* of trend and summary, which stay beside those of other runs; or NULL */
};

/* What the events of memory came to, and what /proc says, of processes that were there all the time. */
struct growth_check {
	uint32_t processes;
	int64_t told_bytes, rss_bytes;
};

/* The highest points of process images, each its own. */
struct alloc_peak {
	uint32_t images;         /* that held anything                       */
	int64_t bytes;           /* sum                                      */
	uint64_t at_ns;          /* of the last image; CLOCK_MONOTONIC        */
};

/* A process that is watched, known to user space. */
struct watched;
struct run_unwind;
struct windows;
struct run_slices;
struct grower;
struct holders;
/* Code in which stacks came to be not complete. */
struct gap;
/* A process image that allocated. */
struct image;
/* A stack that waits to be walked. */
struct pending;
/* What the programs take. */
struct costs;
/* Which processes are in which containers. */
struct run_containers;

struct run {
	const struct run_config *cfg;
	struct dict *dict;
	struct proc_table *procs;
	struct sideband *sideband;
	uint64_t records_lost;     /* of it, when it was last read */
	struct session *session;
	struct drain *drain;
	struct ingest *ingest;
	struct alloc_table *alloc_table; /* NULL: calls are not traced */
	struct alloc_probes *probes;
	struct sample_probes *sample_probes;
	struct samples *samples;
	struct mappings *mappings; /* NULL: system calls are not traced */
	struct launch *launch;
	struct run_unwind *unwind; /* NULL: user stacks by frame pointer */
	struct run_containers *containers;
	struct proc_mem *mem;
	struct trend_csv *trend;
	struct profile *profiles[N_PROFILE_KINDS];
	struct ingest_profiles ingest_profiles;
	struct windows *windows; /* NULL: the run is one                    */
	struct run_waits *waits; /* NULL: all waits are looked at           */
	struct watched *targets;
	struct exact_watch *exact_watch; /* NULL: no limit, or not every call is traced */

	int epoll_fd, signal_fd, timer_fd;
	uint32_t live_targets;   /* asked for, not ended                     */
	uint32_t n_members;      /* of control groups, all that were met     */
	uint32_t n_oom;          /* … that were killed because memory ran out */
	bool members_due;        /* some are to be named by the kernel       */
	uint64_t next_look_ns, next_renew_ns;
	uint64_t end_ns;         /* CLOCK_MONOTONIC                           */
	int64_t start_wall_ns;
	uint64_t next_forget_ns, next_sweep_ns;
	bool sweeping, ended_since_sweep;
	uint64_t next_drain_ns, drain_every_ns, next_trend_ns;
	enum run_end ended;
	char end_detail[128];
	int child_status;
	bool child_ended;

	/* Allocations. */
	enum alloc_tier tier;
	char alloc_reason[400];
	double calls_per_s, cost_percent;
	struct run_slices *slices; /* NULL: none were taken                         */
	struct thinner thinner;
	bool may_sample;         /* the programs for samplers are loaded          */
	bool samples_first;      /* and used without a look at what every call would cost */
	char sampler_advice[512]; /* a sampler there is not listened to: a sentence; "" */
	char library[512];       /* libmemscope-alloc.so, where it was looked for  */
	struct injection *injections; /* that are in force; run_inject.c              */
	bool injected;           /* there was one                                  */
	char *preload_before;    /* LD_PRELOAD as memscope got it                  */
	struct sample_probes_stats sampler;
	char sampler_name[512];
	struct estimate sampled, sampled_live;
	struct spread spread;
	struct costs *costs;     /* NULL: the kernel does not tell               */
	double trap_ns;          /* what a hit of an allocator's probe costs      */
	double for_allocs;       /* of --max-overhead: what tracing them may cost now */
	struct spread waits_spread; /* of the off-CPU profile's blocked time */
	uint64_t alloc_from_ns, alloc_to_ns;  /* CLOCK_MONOTONIC              */
	struct profile *sites;   /* what became of exact allocations; NULL: not traced */
	struct alloc_peak peak;  /* of all images                                */
	uint64_t sizes[ALLOC_SIZES];
	struct bands *bands;     /* NULL: not traced exactly                     */
	struct image *images;    /* whose bands they are                         */
	double leak_age_s;       /* how old a block must be to count as kept     */
	bool holding;            /* the command waits until probes are in place */
	uint64_t gap_ns;         /* forked children that ran before their probes */
	uint32_t gap_children;
	uint32_t gap_ended;      /* … and those that ended before                */
	uint64_t late_ns;        /* libraries that were mapped before theirs     */
	uint32_t late_files;
	uint32_t children;       /* that were forked in the run and are watched  */

	struct mem_sample first_mem, last_mem;
	struct trend own_memory; /* mem_sample.own_kb, one per row of trend.csv */
	int64_t peak_rss_kb;
	struct grower *growers;
	struct growth_check growth;
	struct holders *holders; /* where RSS is; NULL: it is not asked     */
	uint64_t next_memory_sweep_ns;
	bool mem_known;

	/* Stacks that wait to be walked here, and what became of those that were. */
	struct pending *pending;
	uint64_t pending_bytes;
	uint64_t finished[MS_N_SOURCES][MS_N_VERDICTS];

	struct gap *gaps;

	char **cmdlines;  /* of the targets that were named by pid, as the run began */
	char *notes[64];
	bool missing[64];        /* this note says that something asked for was unavailable */
	uint32_t n_notes;
	bool oom;                /* something gathered did not fit in memory   */
	bool partial;            /* something asked for was unavailable       */
};

/* Everything from here to the end of the run. On an error, what was gathered is still in *r. */
int run_begin(struct run *r, const struct run_config *cfg, struct err *e);
int run_loop(struct run *r, struct err *e);
/* Closes the gate, takes everything out, detaches. */
int run_end(struct run *r, struct err *e);
void run_free(struct run *r);

/* A sentence for the summary; `missing`: something asked for was unavailable (exit status 3). */
void run_note(struct run *r, bool missing, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The pid that a control group's member has in its own namespace; 0: not known, or the same. */
pid_t run_ns_pid(struct run *r, pid_t pid);

/* With -v, on stderr. */
void run_say(const struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A second signal has come: names and pictures that are not there yet are left out. */
bool run_in_a_hurry(void);

/* Where stacks came to be not complete, the worst first. */
void run_gap_facts(struct run *r, struct run_summary *to);
/* What became of exact allocations; `rows` must outlive `to`. */
void run_site_facts(struct run *r, struct summary_sites *rows, struct summary_alloc *to);
/* What is known of sampled allocations; strings live as long as the run. */
void run_sampled_facts(struct run *r, struct summary_alloc *to);
/* What slices came to: into *to, and the intervals of `sites`, to->n_sites of them. */
void run_slices_facts(struct run *r, struct summary_alloc *to, struct site_row *sites);
/* What was mapped by system calls. */
void run_mappings_facts(const struct run *r, const uint64_t *stats, struct site_row *sites,
			struct site_row *live_sites, uint32_t n, struct summary_mappings *to);
/* Stacks that grow and keep: into to->leaks, which live as long as the run. */
void run_leak_facts(struct run *r, struct summary_alloc *to);
/* Where RSS is, and what was there before the run. */
void run_ledger_facts(struct run *r, struct run_summary *to);
/* What the programs cost; after what is known of allocations. */
void run_cost_facts(struct run *r, struct run_summary *to);
/* What became of the unwind tables; strings live as long as the run. */
void run_unwind_facts(struct run *r, struct run_summary *to);

/* Names and facts, and no file: calls `fn` once, whose `s` lives until it returns. */
int run_facts(struct run *r, void (*fn)(void *ctx, const struct run_summary *s), void *ctx,
	      struct err *e);

/* Names, files, summary. 0, or -errno when a file could not be written (the others are). */
int run_write(struct run *r, struct err *e);

#endif
