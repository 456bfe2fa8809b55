/*
 * The kernel programs of one run: open, set knobs and sizes, load, attach, detach, free.
 *
 *   session_open()      sets knobs and map sizes; skips programs not needed by this run or kernel;
 *                       attaches fork at once: children of a target are targets from then on
 *   session_attach()    tracepoints and perf events, opens the gate, lists the tasks
 *   session_gate(true)  from here all sources count
 *   session_gate(false) nothing counts any more; detaching is not urgent now
 *
 * Everything attached belongs to descriptors of this process: when it dies, however that happens,
 * the kernel removes it all.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_BPF_SESSION_H
#define MEMSCOPE_COLLECT_SESSION_BPF_SESSION_H

#include "base/cleanup.h"
#include "base/err.h"
#include "collect/probes/uprobes.h"
#include "model/source.h"
#include "proc/proc_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct session;

/* What happens to walks whose result is in the unwind cache. */
enum session_unwind_cache {
	SESSION_UNWIND_CACHE,       /* skipped           */
	SESSION_UNWIND_CACHE_CHECK, /* made, and compared*/
	SESSION_UNWIND_CACHE_OFF,   /* made: no cache    */
};

struct session_opts {
	bool all;             /* the whole host; else the targets that session_target() names */
	bool children;
	bool cgroups;         /* only members of the groups that session_cgroup() names …       */
	bool cgroups_v1;      /* … some of which are not in the unified hierarchy          */
	pid_t tid;            /* only this thread, 0: all             */
	bool oncpu, offcpu, alloc, growth, syscalls;
	bool trace;           /* the log of system calls (collect/stream/trace.h), and what is in it */
	bool trace_failed;    /* … only calls that failed                */
	bool trace_stacks;    /* … with their user stacks                */
	uint64_t trace_min_ns; /* … only those that took so long          */
	uint64_t trace_most;  /* … at most so many in TRACE_WINDOW_NS; 0: any number */
	uint32_t event_programs; /* of events that were asked for: a bit for each that is needed, as abi.h numbers them */
	uint32_t n_events;       /* of these, at most */
	bool event_timed;          /* some are functions whose calls are timed */
	uint32_t event_alone[4]; /* where there are no cookies: the event of each program */
	bool calls, sampled;  /* of `alloc`: programs for each call; for samplers in the target */
	bool results;         /* of `calls`: in bursts, also which block each one made       */
	bool own_new;         /* of `calls`: a target probably has an operator new that does not call malloc. Else its
			       * programs are loaded when one is found, which takes some MB more */
	bool user_stacks, kernel_stacks;
	uint32_t hz;
	uint64_t dither_ns;   /* the period of on-CPU samples holds so long on average, at least (dither.h) */
	uint64_t oncpu_slot_ns; /* in how long stretches the times of on-CPU samples are known; 0: a second */
	const bool *cpus;     /* -C: wanted CPUs, n_cpus of them; NULL: all online */
	uint32_t n_cpus;
	bool wakers;          /* of `offcpu`: who woke threads */
	bool objects;         /* of `offcpu`: files and peers that threads wait for */
	bool run_delays;      /* of `offcpu`: who ran while threads waited for a CPU */
	bool wait_sampler;    /* of `offcpu`: wait_sampler.h, where the kernel can */
	uint64_t wait_min_ns, wait_max_ns; /* waits reported with stacks; max 0: no bound */
	uint32_t mem_mb;      /* budget for BPF maps                  */
	uint64_t unwind_bytes; /* of it, for unwind tables: session_unwind_share() at most; 0: user
				* stacks are followed by frame pointer */
	enum session_unwind_cache unwind_cache;
	bool langs;           /* frames of interpreted languages, with unwind tables alone */
};

/* The largest share of a budget that unwind tables may take, bytes, with allocations traced or not. */
uint64_t session_unwind_share(uint32_t mem_mb, bool alloc);

/*
 * Loads everything. -EPERM, -EOPNOTSUPP, -ENOMEM with a sentence that says what is missing and what
 * to do.
 */
int session_open(const struct session_opts *opts, struct session **ret_session, struct err *e);
void session_free(struct session *s);
DEFINE_CLEANUP(struct session *, session_freep, session_free)

/* What a BPF iterator writes, a record of `size` bytes at a time. 0 or -errno. */
typedef void (*session_record_fn)(void *ctx, const void *record);
int session_read_records(int iter_fd, size_t size, session_record_fn each, void *ctx);

/* Watch a process. Before the gate opens, or at any time after. */
int session_target(struct session *s, pid_t pid, struct err *e);
/*
 * The kernel's identity of each process watched at present, before the gate opens (`tid` is the
 * leader's). Under -a: of all processes.
 */
struct session_task {
	struct proc_id id;
	uint32_t tid;
	uint64_t seen_ns; /* CLOCK_MONOTONIC, when all this was so */
};
typedef void (*session_task_fn)(void *ctx, const struct session_task *task);
int session_name_tasks(struct session *s, session_task_fn each, void *ctx, struct err *e);
/* The same for a child that a target forked during the run, at the time of the fork. */
bool session_name_of(const struct session *s, pid_t pid, uint64_t *ret_start_ns,
		     uint32_t *ret_exec_id);
/* Has the kernel picked this target to be killed because memory ran out? Until session_untarget(). */
bool session_ran_out_of_memory(const struct session *s, pid_t pid);
/*
 * Watch the processes in a control group or below it: present ones, and those moved or forked
 * there, until they leave. `id`: its directory's inode; `hierarchy`: abi.h.
 */
int session_cgroup(struct session *s, uint32_t hierarchy, uint64_t id, struct err *e);
/* The same for one that is to be made: `path` as in /proc/PID/cgroup. -ENAMETOOLONG. */
int session_cgroup_path(struct session *s, uint32_t hierarchy, const char *path);
/* It was removed: its id may be reused. */
void session_cgroup_gone(struct session *s, uint32_t hierarchy, uint64_t id);
void session_cgroup_path_gone(struct session *s, uint32_t hierarchy, const char *path);
/* Makes the present members targets, and calls `each` for them. */
int session_members(struct session *s, session_task_fn each, void *ctx, struct err *e);
/* Is this a target, and what is its pid in its own namespace (0: unknown)? */
bool session_is_target(const struct session *s, pid_t pid, pid_t *ret_ns_pid);
/* Calls `each` for all targets. */
void session_each_target(const struct session *s, void (*each)(void *ctx, pid_t pid), void *ctx);
/* The process ended some time ago: its pid is no target when it is reused. */
void session_untarget(struct session *s, pid_t pid);
/* From now on stacks of `pid` belong to address-space generation `gen`. */
int session_set_gen(struct session *s, pid_t pid, uint32_t gen);

/* Runnable threads that wait for a CPU, as the kernel has them (for drain.c), where no event shows them. 0 or -errno. */
int session_queued(struct session *s, session_record_fn each, void *ctx);

/*
 * Attaches the tracepoints, then calls `each` for every watched thread (with the identity of its
 * image), then attaches the on-CPU events. A source that cannot be attached is left out, with its
 * reason kept; -errno only when none can.
 */
int session_attach(struct session *s, session_task_fn each, void *ctx, struct err *e);
/* What on-CPU samples count: "cycles" or "cpu-clock"; NULL when off. `why`: the reason if it, or
 * another source, failed. */
const char *session_oncpu_event(const struct session *s);
bool session_has(const struct session *s, enum source source, const char **ret_why);

void session_gate(struct session *s, bool open);
bool session_gate_is_open(const struct session *s);
/* Allocations count while both gates are open. */
void session_gate_alloc(struct session *s, bool open);
/* With session_opts.results: from the next call on, bursts do not tell which block each call made. */
void session_results_end(struct session *s);
/* The next burst alone is without them, or with. Returns whether it is with them. */
bool session_results(struct session *s, bool on);
/* jemalloc's map of pages, and the bits of its entries that are an address: for call_watch.h. */
void session_calls_map(struct session *s, uint64_t root, uint64_t bits);
/* How many calls it may still report; 0: none. */
void session_calls_open(struct session *s, int64_t calls);
int64_t session_calls_left(const struct session *s);
/*
 * Opens a burst: from now on calls of allocating functions, probed only at their entries, are added
 * to the totals of bucket `no` (not 0). After `calls` of them the programs close the gate of
 * allocations themselves. Only where session_bursts() is true.
 */
bool session_bursts(const struct session *s);
void session_burst_open(struct session *s, uint32_t no, int64_t calls);
/*
 * The same where every call is traced: the gate closes after `hits` probe hits. A later call
 * replaces what is left by `hits`.
 */
void session_trace_open(struct session *s, int64_t hits);
void session_trace_refill(struct session *s, int64_t hits);
/* How many calls or hits are left; 0: the gate is closed. */
int64_t session_burst_left(const struct session *s);
/* Closes it. Returns when it was closed, by itself or now, CLOCK_MONOTONIC ns. */
uint64_t session_burst_close(struct session *s);
/*
 * Starts or stops tracing the system calls that map memory, while the gates are open. It costs
 * every system call of the host some ns. Only with programs for each call.
 */
int session_mappings(struct session *s, bool on);
/* Runs of programs, and how long they took: by the kernel's account, while that is on (overhead/costs.h). */
struct program_cost {
	uint64_t runs, run_ns;
};

/* Can this source be gathered in slices of the time (overhead/slices.h)? And the time by their clock, at `ns`, CLOCK_MONOTONIC. */
bool session_can_slice(const struct session *s, enum source source);
uint64_t session_slice_clock(const struct session *s, enum source source, uint64_t ns);
/* On-CPU samples, so many per second and CPU from now on. */
void session_oncpu_hz(struct session *s, double hz);
/* Keep one in 2^shift of a sampler's allocations from now on. */
void session_thin(struct session *s, uint32_t shift);
/* From now on 1 system call in 2^calls is counted, and of those that are short 1 in 2^stacks has its stack captured. */
void session_syscalls(struct session *s, uint32_t calls, uint32_t stacks);
/* Gives the programs the time in seconds (CLOCK_MONOTONIC): the time of last use of unwind tables. */
void session_clock(struct session *s, uint64_t now_ns);
/* The map of spaces contains all mappings made before `ns` (CLOCK_MONOTONIC). */
void session_mappings_known(struct session *s, uint64_t ns);
/*
 * Where the kernel's code is into which interrupts lead, before session_attach(): without it an interrupt cannot be told
 * from what it interrupts, and nothing is gathered of wakers (session_opts.wakers).
 */
void session_interrupts(struct session *s, uint64_t from, uint64_t to);
bool session_has_wakers(const struct session *s);
/* There are programs that set labels: they are read. */
void session_label_sources(struct session *s);
void session_detach(struct session *s);

/* Descriptors of maps, for drain.c. Owned by the session. */
enum session_map {
	SESSION_STATS, SESSION_VERDICTS, SESSION_TARGETS, SESSION_CGROUPS, SESSION_CGROUP_PATHS,
	SESSION_TOTALS_LIVE, SESSION_TOTALS_A,
	SESSION_TOTALS_B, SESSION_IRQ_TOTALS_A, SESSION_IRQ_TOTALS_B, SESSION_EVENTS,
	SESSION_SEEN, SESSION_IRQ_SEEN,
	SESSION_THREADS, SESSION_BLOCKS, SESSION_INFLIGHT, SESSION_UNWIND_POOL,
	SESSION_UNWIND_TABLES, SESSION_UNWIND_RULES, SESSION_SPACES, SESSION_LANGS, SESSION_LABEL_SOURCES, SESSION_SITES,
	SESSION_MEMORIES,
	SESSION_MEMORY_CPUS, SESSION_ALLOC_SITES, SESSION_ALLOC_INDEX, SESSION_ALLOC_FREE,
	SESSION_ALLOC_SIZES, SESSION_SYSCALLS_NOW, SESSION_SYSCALL_TOTALS, SESSION_SYSCALL_ERRORS,
	SESSION_TRACE_CALLS, SESSION_TRACE_NOW, SESSION_TRACE_RING,
	SESSION_EVENT_ROWS, SESSION_EVENT_COUNTS, SESSION_EVENT_CALLS, SESSION_EVENT_OUTERMOST, SESSION_EVENT_CALL_TOTALS,
	SESSION_N_MAPS,
};
int session_map_fd(const struct session *s, enum session_map m);
uint32_t session_map_max(const struct session *s, enum session_map m);
/* Kernel memory of all maps, bytes, by the kernel's own account (fdinfo memlock), up to ten seconds old: it is in a file for each map. */
uint64_t session_map_bytes(struct session *s);

/* CPUs that are online, `cap` of them at most; numbers may be sparse. Returns how many. */
uint32_t session_online_cpus(uint32_t *cpus, uint32_t cap);
/* Why the kernel opens no perf event: of what all kinds have in common. */
const char *session_perf_why(int code);
/* Is it one of -C's? */
bool session_wants_cpu(const struct session *s, uint32_t cpu);

/* CLOCK_MONOTONIC when the gate opened, ns; 0 before. */
uint64_t session_start_ns(const struct session *s);

#endif
