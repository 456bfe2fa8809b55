/*
 * What one run found, as facts, and what to make of it.
 *
 * The components of a run fill in struct run_summary (report() in run/component.h), and run/output/files.c
 * what is of the run as a whole; render/summary/ shows it; summary_verdict() concludes. All pointers are
 * borrowed and must outlive the struct. A zeroed struct is a valid summary of a run that found nothing: what
 * is not filled in is not shown.
 * Percentages are computed here and in render/, never passed in.
 */
#ifndef MEMSCOPE_ANALYSE_SUMMARY_H
#define MEMSCOPE_ANALYSE_SUMMARY_H

#include "analyse/alloc_threads.h"
#include "analyse/by_label.h"
#include "analyse/by_process.h"
#include "analyse/counts.h"
#include "analyse/events.h"
#include "analyse/gc_counts.h"
#include "analyse/gc_time.h"
#include "analyse/goroutines.h"
#include "analyse/io_waits.h"
#include "analyse/ledger.h"
#include "analyse/locks.h"
#include "analyse/nameless.h"
#include "analyse/run_delays.h"
#include "analyse/sites.h"
#include "analyse/syscalls.h"
#include "analyse/task_waits.h"
#include "analyse/top.h"
#include "analyse/trend.h"
#include "analyse/trend_shape.h"
#include "analyse/wakers.h"
#include "analyse/workload.h"
#include "model/alloc_site.h"
#include "model/source.h"

#include <sys/types.h>

/* Fewer on-CPU samples than this are called few: 1,000 give a 10 % function ± 2 points. */
#define SUMMARY_FEW_SAMPLES 1000

enum run_target { RUN_PROCESSES, RUN_COMMAND, RUN_HOST, RUN_GROUPS };
enum run_end {
	RUN_END_UNKNOWN,
	RUN_END_DURATION,     /* -d is over                     */
	RUN_END_SIGNAL,       /* Ctrl-C, SIGTERM, SIGHUP         */
	RUN_END_TARGET,       /* the process or command ended    */
	RUN_END_ERROR,        /* `end_detail` says which         */
	RUN_END_MEMORY,       /* of a service: its own memory reached its limit; another run follows */
	RUN_END_AGAIN,        /* of a service: another run follows, for what `end_detail` says */
};

struct summary_process {
	pid_t pid;
	const char *comm, *exe, *cmdline;  /* arguments joined by spaces; NULL when unknown */
	pid_t ns_pid;         /* in its own pid namespace; 0: unknown, or the same */
};

/* A control group whose members were profiled: RUN_GROUPS. */
struct summary_group {
	const char *path;     /* of the control group                             */
	const char *name, *id, *engine, *image; /* of a container; NULL: none, or unknown */
	const char *pod, *namespace; /* … of Kubernetes; NULL: of none            */
	uint32_t restarts;    /* times it was made anew during the run            */
	bool was_gone;        /* was not there for some of the run                */
	int64_t gone_ns;      /* for so long before the end; 0: was there         */
};

/* Growth beside the work of the targets. */
struct summary_workload {
	const char *name;     /* of the series                                    */
	bool own;             /* CPU time or allocations, which are always known  */
	bool counter;         /* else a level: entries, sessions                  */
	const struct point *points; /* wall clock in seconds, value                */
	uint32_t n_points;
	double begin_s;       /* when the run began, by that clock                 */
	struct workload_fit fit;
};

enum source_state { SOURCE_NOT_ASKED, SOURCE_OK, SOURCE_UNAVAILABLE };

/* On-CPU, off-CPU, allocations, growth, trend: one row each, in that order. */
struct summary_source {
	const char *name;         /* "oncpu", "offcpu", "alloc", "growth", "trend"        */
	enum source_state state;
	const char *why;          /* one sentence when unavailable                       */
};

/* A file or peer for which threads were seen blocked, by the system call that they were in. */
struct summary_endpoint {
	char name[160];       /* a path; "127.0.0.1:5432"                                 */
	bool peer;            /* of a connection that the target has made                */
	uint32_t seen;        /* times; the same thread may be seen again in one wait     */
};

/* Who is asked by the targets, over connections that they have made (proc/requests.h). */
struct summary_peer {
	char name[64];        /* "127.0.0.1:5432"                                         */
	uint32_t looks;       /* at which a request to it was outstanding …               */
	uint32_t for_inbound; /* … for one that waited in the targets                     */
	uint64_t requests;    /* outstanding, summed over looks                           */
	double age_ms;        /* mean of those: half of what an answer takes             */
	uint32_t oldest_ms, answers; /* answers: seen to have come between looks         */
};

enum alloc_tier {
	ALLOC_TIER_OFF,           /* not asked for                                       */
	ALLOC_TIER_EXACT,
	ALLOC_TIER_SAMPLED,       /* estimates, with intervals                           */
	ALLOC_TIER_BURSTS,        /* every call in bursts: the same; none of what lives */
	ALLOC_TIER_DECLINED,      /* auto looked, and it would cost too much             */
};

/* 95 %, of bytes, by so many samples. */
struct summary_push_store {
	const char *store;            /* "pyroscope at http://…"                        */
	int64_t spooled, pushed, pushed_bytes, retries; /* of this run; profiles, requests */
	int64_t waiting, waiting_bytes; /* now, those of earlier runs too                */
	int64_t failing_since_ns;     /* Unix time; 0: it does not                      */
	int64_t cpu_ns;
	struct summary_push_drop {
		const char *why;      /* "refused", …                                   */
		int64_t n;
	} dropped[8];
	uint32_t n_dropped;
};

struct summary_interval {
	int64_t low, high;
	uint64_t samples;
};

/* What growth is, held against the work of the program (leaks.h). */
enum growth_says {
	GROWTH_LEAK,      /* of work nothing is known, or nothing that helps            */
	GROWTH_LEAK_IDLE, /* whatever work is done                                     */
	GROWTH_LEAK_WORK, /* so much for each unit of a counter, the last as the first  */
	GROWTH_FOLLOWS,   /* no leak: as a level does, entries or sessions              */
	GROWTH_FILLS,     /* no leak: with work, but less and less for each unit         */
	GROWTH_STOPPED,   /* no leak: it grew, and has stayed since                     */
	GROWTH_REPLACES,  /* no leak: in all the process has no more than before       */
	N_GROWTHS,
};

/* A stack whose live memory grows and stays (live_series.h), or grew and has stayed; or the process's. */
#define SUMMARY_LEAKS 5
#define LEAK_POINTS   128
struct summary_leak {
	struct site_row site;
	int64_t live;                        /* bytes at the end                           */
	double slope, slope_low, slope_high; /* bytes a second, 95 % interval               */
	double r2, since_s;                  /* of the line; where it begins, or where growth ended */
	double changed;                      /* bytes: the last level less the first        */
	double survived, age_s;              /* of blocks of that age and older: part kept   */
	double sampled, ended, sampled_age_s; /* as in struct leak; 0: not by ages          */
	bool held_known;                     /* what is in use in all, and … */
	double held_grew;                    /* … what it is more than at first, bytes      */
	enum growth_says says;
	const struct summary_workload *work; /* what it was held against; NULL: nothing    */
	struct workload_fit fit;
	bool of_rate;                        /* … against how fast that rises              */
	bool work_ended;                     /* GROWTH_STOPPED: and work did               */
	struct point points[LEAK_POINTS];    /* bytes; n_points of them                     */
	uint32_t n_points;
};

/* Of exact tracing, beside the sites by bytes. */
#define SUMMARY_SITES     10
#define SUMMARY_FEW_SITES 5
struct summary_sites {
	struct site_row peak[SUMMARY_SITES];  /* value: bytes live at the highest point, count: blocks */
	struct site_row calls[SUMMARY_FEW_SITES];     /* value: allocations, count: bytes          */
	struct site_row temporary[SUMMARY_FEW_SITES]; /* value: temporary, count: allocations      */
	struct thread_row threads[SUMMARY_FEW_SITES];
	uint32_t n_peak, n_calls, n_temporary, n_threads, seen_threads;
};

/*
 * What was mapped by system calls outside of the allocator, while every allocation was traced: bytes of
 * address space, touched or not (collect/stream/mappings.h).
 */
struct summary_mappings {
	bool known;
	struct {
		uint64_t made, made_bytes, gone_bytes, live, live_bytes;
	} by[N_MEMORY_KINDS];
	uint64_t ended_bytes;         /* went with what ended                         */
	uint64_t failed;              /* calls                                        */
	uint64_t full;                /* mappings made and not followed               */
	const struct site_row *sites, *live_sites; /* by bytes made; by bytes there       */
	uint32_t n_sites, n_live_sites;
};

/* What lives, where only bursts are traced: by what the allocators' own structures say is in use. */
struct summary_live {
	bool known;               /* live_bytes, live_sites and leaks are estimates of it    */
	const char *why_not;      /* why not; NULL: not wanted                               */
	char allocators[96];      /* "glibc"                                                 */
	bool cached;              /* blocks in caches of threads count as in use            */
	uint32_t looks, failed_looks;
	int64_t look_ns;          /* CPU time of all of them                                 */
	uint64_t kept;            /* blocks that were seen and may be in use                 */
	uint64_t reused;          /* addresses seen again, so that the earlier block had ended */
	uint64_t unknown;         /* questions that a look could not answer                  */
	int64_t before_bytes;     /* in use since before the bursts, usable sizes            */
	int64_t objects_bytes;    /* CPython's objects in use, of which nothing else is known */
};

struct summary_alloc {
	enum alloc_tier tier;
	const char *reason;       /* one sentence: why declined or off, how to force it   */
	double calls_per_s;       /* measured in the first burst; 0 unknown               */
	double cost_percent;      /* estimated cost of exact tracing, % of one CPU; 0 unknown */
	int64_t covered_from_ns, covered_to_ns;  /* since the start of the run             */
	uint64_t objects, bytes;            /* allocated                                  */
	uint64_t freed_objects, freed_bytes;
	uint64_t live_objects, live_bytes;  /* allocated in the run and not freed          */
	uint64_t failed;                    /* calls that returned NULL                    */
	uint64_t inherited_frees;           /* a child's free of its parent's block         */
	uint64_t earlier_frees;             /* of pre-existing blocks                */
	/* In use since before the run, by walking the allocator at its start and at its end; in the heap
	 * profile as [before attach], and in no other number here. */
	bool preexisting_known;
	uint64_t preexisting_objects, preexisting_bytes;
	uint64_t start_objects, start_bytes; /* all that was in use at the start           */
	uint64_t untracked;                 /* allocations dropped because the block table was full */
	bool objects_seen;                  /* CPython's small objects, which malloc does not see, by its hooks */
	bool unnamed;                       /* an allocator there has no symbols, and its functions were not found */
	/* ALLOC_TIER_EXACT; what the words mean: model/alloc_site.h */
	uint64_t temporary, cross_freed;    /* of freed_objects                            */
	uint64_t life_ns;                   /* sum over freed_objects                      */
	uint64_t lives[ALLOC_LIVES], sizes[ALLOC_SIZES];
	struct {
		uint32_t images;            /* process images, each at its own highest point */
		int64_t bytes;              /* what was live then, of what was allocated in the run */
		int64_t at_ns;              /* since the start of the run; of one image       */
		int64_t objects, on_stacks; /* blocks and bytes that stacks tell: several threads
					     * may blur that by what was in the making        */
	} peak;
	const struct summary_sites *more;   /* NULL: none                                  */
	/* ALLOC_TIER_SAMPLED: objects and bytes are estimates; earlier_frees, untracked are samples */
	const char *sampler;                /* who sampled: "libmemscope-alloc (preload)"     */
	int64_t rate;                       /* mean bytes between samples; 0 unknown         */
	struct summary_interval bytes_interval, live_interval;
	struct {
		bool known;         /* also of bursts, where live memory is                       */
		bool in_use; /* by the allocators' structures, whoever allocated it: no estimate    */
		int64_t bytes, low, high; /* most that was live of what was allocated in the run  */
		int64_t at_ns;      /* since the start of the run                                 */
	} live_peak;
	/* ALLOC_TIER_BURSTS: objects and bytes are estimates, with bytes_interval */
	struct {
		uint32_t n;
		int64_t from_ns;          /* since the start of the run, exact before; 0: from its start */
		int64_t covered_ns, span_ns; /* length of all; what they stand for            */
		uint64_t seen_calls, seen_bytes;
		double weight, weight_low, weight_high; /* by which seen bytes are multiplied */
		uint64_t hits;
		double trap_ns;           /* what a hit costs the target without its program  */
		int64_t target_ns, own_ns;  /* time lost by the target; CPU time of attaching */
		int64_t worst_ns, burst_ns; /* the costliest burst; what one may cost           */
		double cost_percent, limit_percent;  /* of one CPU                           */
	} bursts;
	struct summary_live live;
	uint64_t freed_samples;
	uint64_t unreported;                /* samples whose sampler does not report frees        */
	const struct site_row *sites;       /* by bytes allocated                           */
	uint32_t n_sites;
	const struct site_row *live_sites;  /* by bytes live                                */
	uint32_t n_live_sites;
	struct summary_mappings mappings;
	struct summary_leak leaks[SUMMARY_LEAKS]; /* the fastest first                      */
	uint32_t n_leaks;
	struct summary_leak no_leaks[SUMMARY_LEAKS]; /* of what grows and is none, and what grew */
	uint32_t n_no_leaks;
};

/* Pages first touched and released; of all that was profiled, children included. */
struct summary_growth {
	bool known;
	uint64_t resident_bytes[N_MEMORY_KINDS], returned_bytes[N_MEMORY_KINDS];
	uint64_t made_bytes;      /* copied by forks and set up by execs: in none of those   */
	int64_t ended_bytes;      /* of all that came, what went with processes and images that ended,
				   * about; < 0: they had released more than came */
	uint64_t on_stacks, returned_on_stacks;  /* what stacks stand for: estimates of those  */
	uint64_t collector_bytes; /* of on_stacks: by collectors of garbage (gc_time())      */
	uint64_t samples;         /* stacks                                                  */
	struct {
		uint32_t processes;   /* that were there from the first to the last; 0: none  */
		int64_t reported_bytes; /* resident less returned, of those                     */
		int64_t rss_bytes;    /* the change of their RSS, by /proc                    */
	} check;
	const struct site_row *sites, *returned_sites; /* by bytes; no counts             */
	uint32_t n_sites, n_returned_sites;
	/* Whose touching goes on, the fastest first: who touched a page first need not be who keeps it. */
	struct summary_leak growing[SUMMARY_LEAKS];
	uint32_t n_growing;
};

/*
 * What one source cost whoever was running, over the run: `events` times what its program took and the
 * way there and back (a trap, an interrupt, a tracepoint).
 */
#define SUMMARY_COSTS (N_SOURCES + 2) /* and process events, and pauses for censuses */
struct summary_cost {
	const char *name;         /* "on-CPU", …, "process events"           */
	uint64_t events;
	double program_ns, trap_ns;   /* each                                */
	int64_t ns;
};

struct summary_stacks {
	const char *source;       /* "oncpu", "offcpu", "alloc", "growth" */
	uint64_t complete, truncated, guessed, no_table, unreadable, lost;
};

/* Frames of interpreted languages. */
struct summary_langs {
	uint64_t processes;       /* whose runtime was found …                          */
	const char *name;         /* … the first: "CPython 3.11.2"                     */
	bool untested;            /* a version whose layout was never tried            */
	uint64_t unreadable;      /* processes whose runtime is of no known layout …   */
	const char *trouble;      /* … why, of the first                               */
	uint64_t left_out;        /* processes for which the kernel's table had no room */
	uint64_t named;           /* places in functions                                  */
	uint64_t gone, damaged;   /* frames whose code was freed, or was none, when it was to be named */
	uint64_t native;          /* events in the interpreter without any frame of the language */
	uint64_t lost, misplaced; /* stacks: frames not read; taken where the interpreter is entered or left */
};

/* Stacks that are not complete, by the code that is to blame. */
#define SUMMARY_INCOMPLETE 8
struct summary_incomplete {
	const char *module;
	const char *verdict;      /* "guessed", "no table", "unreadable", "lost" */
	uint64_t events;          /* of all sources                              */
};

struct summary_symbols {
	/* locations = named + ranges + offset_only + no_module */
	uint64_t locations, named;
	uint64_t ranges;                  /* in a function without a name: [sqlite3+0x4a210]          */
	uint64_t offset_only, no_module;
	struct summary_module {
		const char *module;
		uint64_t locations;       /* of it without a name   */
		const char *reason;
		const char *package;      /* with its debug symbols; NULL or "": not known */
	} worst[8];
	uint32_t n_worst;
};

struct summary_drop {
	const char *name, *help;  /* a row of stats.def */
	uint64_t count;
};

/* One container's, or the rest of the host's: that has the name of its folder. */
struct summary_container_memory {
	const char *name;
	struct ledger now;
};

#define SUMMARY_SAVINGS 6 /* things that a service leaves out for its limit */

struct run_summary {
	const char *version;
	const char *command_line;     /* how memscope was called; NULL: not known */
	const char *title;            /* what the run is to be known by; may be NULL */
	const char *const *labels;    /* "env=prod", n_labels of them */
	uint32_t n_labels;
	int64_t start_ns;             /* wall clock, Unix time */
	int64_t duration_ns;
	int64_t asked_ns;             /* the duration that was asked for; 0: none */
	int64_t closing_ns;           /* of duration_ns, its end: what was in use was read meanwhile */
	enum run_end end;
	const char *end_detail;       /* "SIGINT", "pid 123 ended"; may be NULL */

	enum run_target target;
	const struct summary_process *processes;  /* those asked for */
	uint32_t n_processes;
	const struct summary_group *groups;
	uint32_t n_groups;
	uint32_t n_members;           /* processes that were in them, all in all */
	uint32_t seen_processes;      /* in the profiles, with children; 0 when unknown */
	const struct label_row *program_labels; /* that programs set themselves */
	uint32_t n_program_labels;
	const struct process_row *by_process;  /* most CPU time first */
	uint32_t n_by_process;
	uint32_t seen_threads;
	uint32_t n_cpus;              /* online */
	struct {
		bool known;           /* only with -- CMD          */
		bool exited;          /* else ended by `signal`    */
		int code, signal;
	} child;

	const struct summary_source *sources;
	uint32_t n_sources;

	/* Thread time, from the scheduler. The residual is wall minus the three. */
	struct {
		bool known;
		int64_t wall_ns, oncpu_ns, blocked_ns, runnable_ns;
		int64_t preempted_ns; /* of runnable_ns: sites_preempted_value() */
		int64_t held_ns;  /* stopped by memscope itself: in none of the four */
	} time;

	/* Of the CPUs that the targets may use. */
	struct {
		bool known;
		uint32_t n;
		int64_t busy_ns, idle_ns; /* whoever was running there, or the hypervisor took     */
		int64_t throttled_ns;     /* by the CPU quota of the targets' group; -1 unknown    */
		double used_up;           /* part of that quota's periods in which it was used up  */
	} cpus;

	struct {
		uint64_t samples;
		double hz;
		const char *event;    /* "cycles", "cpu-clock"                              */
		int64_t cpu_ns;       /* the target's CPU time, by scheduler or /proc; 0 unknown */
		uint64_t allocator_samples;  /* sites_allocator_value(): inside malloc and friends */
		uint64_t probe_samples;      /* sites_probe_value(): in the traps of probes      */
		uint64_t kernel_samples;     /* sites_kernel_value(): leaf in the kernel         */
		uint64_t gc_samples;         /* gc_time(): collecting garbage …                 */
		uint64_t gc_by_runtime[N_GC_RUNTIMES]; /* … by whom                              */
		uint64_t jit_samples;        /* jit_time(): compiling the program while it runs  */
		const struct site_row *sites; /* of samples: with what libraries do for them     */
		uint32_t n_sites;
		const struct site_row *work;   /* of the program's own functions, the one that runs most or has most
						* garbage collected; NULL: not known      */
		const struct nameless_row *nameless; /* code without names; NULL: there is none */
		const struct top_row *trunk;   /* top_trunk(); NULL: there is none              */
		const struct command_row *commands; /* of processes, by their command        */
		uint32_t n_commands;
		const struct top_row *by_self, *by_total;  /* of samples                       */
		const struct top_row *interpreted;         /* TOP_INTERPRETED                  */
		uint32_t n_self, n_total, n_interpreted;
	} oncpu;

	struct {
		const struct summary_endpoint *rows; /* the most often seen first           */
		uint32_t n;
		uint32_t polls, polls_of_a_peer; /* threads seen in poll(), but for a pipe alone; for one peer alone */
	} endpoints;

	struct {
		const struct summary_peer *rows; /* most looks for requests that waited first */
		uint32_t n, looks;
		uint32_t waiting, held; /* looks at which requests waited in the targets; … while some were outstanding for them */
		uint64_t inbound;       /* requests that waited, summed over looks            */
		uint16_t port;          /* to which they came                                */
		uint32_t left_out;      /* connections that were not remembered, at the most    */
		uint32_t failed;        /* times that connections could not be read            */
	} peers;

	struct {
		const struct site_row *waits;  /* of blocked ns and how often, sites_waits()    */
		uint32_t n_waits;
		/* The largest of them for a mutex, and what is waited for under it; NULL: not known */
		const struct site_row *mutex, *under_mutex;
		int64_t min_ns, max_ns;        /* thresholds; 0: none                           */
		uint64_t left_out, left_out_ns; /* waits beyond them: in the times, in no stack  */
		bool sampled;                  /* only some waits had their stack captured     */
		uint64_t switches;             /* of all threads                                */
		/* Of threads that switched often: their switches, waits of theirs whose stack was
		 * sampled, and those of them that were not at the wait site expected. */
		uint64_t wait_sampler_switches, stacks_sampled, reassigned;
		double sample_gap_s;           /* between samples of one wait site; 0: not sampled */
	} offcpu;

	/* Of Java: threads that were seen waiting to enter one, each time that it was looked; for the one that held most of these. */
	struct {
		uint64_t waits, unowned;       /* unowned: nobody was seen to hold it         */
		uint64_t held;                 /* of waits, by `owner`                       */
		const char *owner;            /* the thread's name; NULL: none is known      */
		uint32_t tid;
	} monitors;
	/* Of asyncio. */
	struct {
		const struct task_row *rows;   /* what most tasks await first, tasks_rank()     */
		uint32_t n, looks;
		uint64_t seen, ready, changed; /* tasks, summed over looks: all; without a wait; that ran meanwhile */
		uint64_t left_out;             /* … whose stacks found no room                 */
		bool more;                     /* some processes had more than were looked at */
	} tasks;
	struct {
		const struct lock_row *rows;   /* waited for longest first, locks_rank()        */
		uint32_t n;
	} locks;
	struct {
		bool known;                    /* it was looked at                              */
		const struct waker_row *rows;  /* longest first, wakers_rank()                  */
		uint32_t n;
		struct waker_sums sums;
	} wakers;
	struct {
		bool known;                       /* it was looked at                          */
		const struct run_delay_row *rows; /* longest first                             */
		uint32_t n;
		struct run_delay_sums sums;
	} run_delays;
	struct {
		const struct io_wait_row *rows; /* longest first */
		uint32_t n;
	} io_waits;
	struct {
		bool known;                       /* they were counted                         */
		const struct syscall_row *by_call; /* of all processes, most time first        */
		uint32_t n_by_call;
		const struct syscall_row *rows;   /* by process and call, most time first      */
		uint32_t n;
		struct syscall_sums sums;
	} syscalls;
	struct {
		bool known;                   /* some were asked for */
		const struct event_row *rows; /* events_rank()      */
		uint32_t n;
		int64_t missed_tracepoints;   /* of all of them      */
	} events;
	struct {
		bool known;
		const struct count_row *rows; /* counts_rank()      */
		uint32_t n;
	} counts;

	/* Stores that windows are pushed to (serve --push); n 0: none. */
	struct {
		const struct summary_push_store *stores;
		uint32_t n;
	} push;

	/* Of Go programs. */
	struct {
		uint32_t processes;   /* whose goroutines were read; 0: none                    */
		const char *version;  /* of the first: "Go 1.19.8"                             */
		bool untested;        /* a version that was never tried                        */
		uint32_t refused;     /* Go programs whose goroutines are not read …            */
		const char *why;      /* … why, of the first                                  */
		uint64_t looks, looked; /* times; goroutines, each time                        */
		uint64_t moved, unreadable; /* of them, without a stack: they ran on; no memory */
		uint64_t cut;         /* whose stack was not known to its beginning            */
		uint32_t most_part;   /* one in so many was looked at at least; 1: all           */
		int64_t now, running, system; /* at the end: all, on a thread, of the runtime's own */
		const struct goroutine_row *rows; /* most time waited first, goroutines_rank() */
		uint32_t n_rows;
	} goroutines;

	struct summary_alloc alloc;
	struct summary_growth growth;

	/* -1: unknown (MEM_UNKNOWN) */
	struct {
		bool known;
		bool shared;          /* of several processes: a page they share is in each */
		int64_t first_kb, last_kb, peak_kb;  /* RSS */
	} rss;
	struct {
		struct ledger now;    /* ledger_known()                      */
		const struct summary_container_memory *containers; /* of a run of several */
		uint32_t n_containers;
		int64_t at_ns;        /* since the start of the run          */
	} ledger;
	struct gc_totals gc;          /* collections of garbage, by runtime */
	struct trend_rise memory;     /* anonymous and swap, kB: what the verdict judges growth by */
	struct trend_shape shape;         /* of the same; and what the endpoint rule says of the RSS */
	struct plain_verdict plain;
	struct summary_leak private;  /* the same against work; n_points 0: unknown */
	const struct summary_workload *workload; /* a row for each series that is known */
	uint32_t n_workload;

	const struct summary_stacks *stacks;
	uint32_t n_stacks;
	struct summary_incomplete incomplete[SUMMARY_INCOMPLETE]; /* the worst first */
	uint32_t n_incomplete;
	struct summary_langs langs;
	struct summary_symbols symbols;

	const struct summary_drop *drops;  /* rows with count 0 are not shown as lost */
	uint32_t n_drops;

	struct {
		bool known;           /* user stacks were unwound by tables            */
		uint64_t files, resident;     /* that need one; whose is there at the end */
		uint64_t bytes, budget_bytes; /* of tables and spans; of the pool         */
		uint64_t rows, rules, spans, processes;
		uint64_t made, made_ns;       /* tables made; time of all threads      */
		uint64_t evicted, evicted_in_use, refused;
		uint64_t left_out;            /* times a table that no walk needed found no room */
		uint64_t put_off;             /* walks without a table that a service's limit forbade to make */
		uint64_t unreadable, without_rows; /* files whose stacks are guessed    */
		const char *trouble;          /* the first of those, a sentence; ""    */
	} unwind;

	struct {
		int64_t cpu_ns, rss_kb, map_bytes;  /* memscope's own; 0 unknown */
		int64_t peak_kb;                    /* rss_kb at most, 0 unknown */
	} own;

	/* Of `memscope serve`: all that it cost, and what was gathered in a part of the time for that. */
	struct {
		bool known;
		double limit_percent;
		struct {
			const char *name;
			int64_t ns;
		} parts[SUMMARY_COSTS];
		uint32_t n_parts;
		struct {
			const char *name;
			double share;         /* of the run's time, or of the rate that was asked for */
			uint32_t least;       /* 1 of so many parts, when it was least                */
			double error_percent; /* half of the 95 % interval of the sum, below 0: not known */
		} duties[3];
		uint32_t n_duties;            /* those alone that were below what was asked for */
		struct {
			const char *name;
			double share;         /* of the run's time, in which it was so */
		} savings[SUMMARY_SAVINGS];
		uint32_t n_savings;           /* what was left out for the limit */
	} service;

	struct {
		bool known;
		int64_t window_ns;    /* in so much of the run it was measured; allocations: all of it */
		int64_t ns;           /* the sum                          */
		int64_t target_ns;    /* of that, of those who are profiled, about */
		double limit_percent; /* of one CPU, for that; 0: some was asked for whatever it costs */
		struct summary_cost sources[SUMMARY_COSTS];
		uint32_t n;
	} cost;

	const char *dir;              /* where the files are, "" or NULL when none were written */
	const char *const *files;     /* names in `dir` */
	uint32_t n_files;
	const char *const *notes;     /* whole sentences: anything the reader must know */
	uint32_t n_notes;
};

enum verdict_kind {
	VERDICT_NOTHING,   /* nothing was measured                                  */
	VERDICT_IDLE,      /* hardly ran, and waited for work                        */
	VERDICT_CPU,       /* computing is what takes its time                       */
	VERDICT_STARVED,   /* ready to run, but other threads had the CPU             */
	VERDICT_WAITING,   /* something other than new work holds it up               */
	VERDICT_MEMORY,    /* the time on CPU goes into allocating                    */
	VERDICT_GROWING,   /* its memory grows                                       */
	VERDICT_MIXED,
	VERDICT_LEAK,      /* memory that is not freed, or grows for ever             */
	VERDICT_GC,        /* the time on CPU goes into collecting garbage            */
	VERDICT_CONTENDED, /* threads wait for what other threads of it hold          */
	N_VERDICT_KINDS,
};

struct verdict {
	enum verdict_kind kind;
	char sentence[1024];   /* what is the case; one sentence; raw bytes: escape when shown */
	char next[512];       /* what to look at next; one sentence                        */
};

const char *verdict_name(enum verdict_kind k);  /* "cpu-bound", "waiting", …: the word in JSON */

/* Pure: same facts, same verdict. Which causes hold, and the thresholds: causes.c. */
void summary_verdict(const struct run_summary *s, struct verdict *ret_verdict);

/* CPU share of the target: 1.0 is one CPU busy all the time; -1 when unknown. */
double summary_cpu_share(const struct run_summary *s);
/* Fewer samples than SUMMARY_FEW_SAMPLES although on-CPU sampling ran. */
bool summary_few_samples(const struct run_summary *s);

/* It computes half of the time or more: more load would not give more samples, more time would. */
bool summary_is_busy(const struct run_summary *s);

/*
 * Probably a wait for new work rather than for what holds the program up: of a pool's worker, by its place
 * (wait_role.h); for a thread or a profiled child to end; for events, a signal or somebody to type. Never for a mutex or
 * the GIL. Where the stack does not say: for a lock on average 0.1 s and longer (nothing in the kernel tells a contended lock
 * from a thread that waits to be given work, but locks are held briefly); for anything, on average half
 * the run.
 */
bool summary_wait_is_idle(const struct run_summary *s, const struct site_row *w);

#endif
