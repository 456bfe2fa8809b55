/*
 * Reads what the kernel programs gathered out of their maps.
 *
 * Totals: the two maps are exchanged; the update that does so returns after a grace period, when no
 * program holds the old map any more; then the old one is read and emptied. So no addition is lost
 * or counted twice.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_DRAIN_H
#define MEMSCOPE_COLLECT_STREAM_DRAIN_H

#include "collect/overhead/wait_sampler.h"
#include "collect/session/stats.h"
#include "collect/stream/event_key.h"

struct drain;

/*
 * What the kernel sends or keeps, by kind. A record goes to the functions of its kind in the order in
 * which they were added, until one says DRAIN_TAKEN.
 *
 *   kind              record                      more
 *   DRAIN_SAMPLE      for samples_take()          an event of a sampler in a target
 *   DRAIN_MAPPING     for mappings_take()         a target's mappings have changed
 *   DRAIN_CGROUP      struct drain_cgroup
 *   DRAIN_REASSIGNED  struct drain_reassigned
 *   DRAIN_BURST       struct drain_burst
 *   DRAIN_RESULT      struct drain_result
 *   DRAIN_CALL        struct drain_call
 *   DRAIN_BLOCK       struct drain_block          DRAIN_TAKEN: it leaves the table
 *
 * and as the kernel has them, for files of this room:
 *
 *   DRAIN_STACK       a stack record              its frames, as many words as it says
 *   DRAIN_DEFERRED    a deferred record           as many bytes of a stack, to be walked here
 *   DRAIN_CHAIN       a chain record              its links: frames of a language of the deferred record to come
 *   DRAIN_LABELS      a record of a set of labels
 *   DRAIN_CONTEXT     a record of a thread's context      its bytes, as many as it says
 *   DRAIN_WAKER       a record of who woke a thread
 *   DRAIN_ENDED       a record of where a thread waited and who woke it
 *   DRAIN_OBJECT      a record of a file or socket that a thread waited for
 *   DRAIN_TOTAL       a total                     its key
 *   DRAIN_THREAD      a thread                    uint32_t: its tid
 *   DRAIN_REST        a total                     its key: waits of a thread that switches often, which
 *                                                 are in no total yet
 */
enum drain_kind {
	DRAIN_STACK, DRAIN_DEFERRED, DRAIN_CHAIN, DRAIN_SAMPLE, DRAIN_MAPPING, DRAIN_CGROUP, DRAIN_REASSIGNED,
	DRAIN_BURST, DRAIN_RESULT, DRAIN_CALL, DRAIN_TOTAL, DRAIN_THREAD, DRAIN_REST, DRAIN_BLOCK, DRAIN_LABELS,
	DRAIN_CONTEXT, DRAIN_WAKER, DRAIN_ENDED, DRAIN_OBJECT, N_DRAIN_KINDS,
};

/* A control group that was made. */
struct drain_cgroup {
	uint64_t id;
	uint32_t hierarchy; /* 0: the unified one              */
	const char *path;   /* as in /proc/PID/cgroup          */
};

/*
 * A wait of a thread that switches often, whose stack was sampled and was not the one expected: 2^shift waits
 * that long are those of `key` and not of `from`. They come again as totals, some negative. Neither key has
 * a state or a bucket.
 */
struct drain_reassigned {
	struct event_key key, from;
	uint64_t blocked_ns;
	uint32_t shift;
};

/* Calls of a burst (burst_timer.h). The key has no bucket. */
struct drain_burst {
	struct event_key key;
	uint32_t no, tid;
	uint64_t calls, bytes;
};

/* The block that a call of a burst made; session_opts.results. The key has no bucket. */
struct drain_result {
	struct event_key key;
	uint32_t no, tid;
	pid_t pid;
	uint64_t addr; /* 0: none; but `old` is gone                     */
	uint64_t old;  /* the block that a realloc took, else 0          */
	uint64_t size; /* asked for                                      */
	uint64_t time_ns; /* CLOCK_MONOTONIC                             */
};

/* Registers at the entry of a function, or behind a call of it (call_watch.h). */
struct drain_call {
	bool behind;
	uint32_t tid;
	uint64_t pc, sp;
	uint64_t arg[2]; /* at an entry                                                    */
	uint64_t word;   /* at sp: at an entry, the return address                         */
	uint64_t addr;   /* at an entry the first argument, behind a call what it returned */
	uint64_t entry;  /* what jemalloc's map of pages had for that at that moment …     */
	const uint64_t *edata; /* … and of its extent: 16 words; NULL: not known           */
};

/* A live block. */
struct drain_block {
	struct proc_id proc;
	uint64_t addr, size, born_ns;
	uint32_t site; /* for alloc_table_key() */
};

enum drain_says { DRAIN_NEXT, DRAIN_TAKEN };

/* Records live until it returns. */
typedef enum drain_says (*drain_fn)(void *ctx, const void *record, const void *more);

int drain_new(struct session *s, struct drain **ret_drain, struct err *e);
/* At most DRAIN_FNS_MAX of a kind; more is our own mistake. */
enum { DRAIN_FNS_MAX = 8 };
void drain_on(struct drain *d, enum drain_kind kind, drain_fn fn, void *ctx);
/*
 * One that is called before all of them with the control group of each total's process (its id in the unified hierarchy, never 0):
 * it is the total alone that knows the group of a process that has gone.
 */
typedef void (*drain_group_fn)(void *ctx, const struct proc_id *proc, uint64_t cgroup_id);
void drain_on_groups(struct drain *d, drain_group_fn fn, void *ctx);
void drain_free(struct drain *d);
DEFINE_CLEANUP(struct drain *, drain_freep, drain_free)

/* Also reports sampled threads, as drain_threads() does all others. `busy` is borrowed. */
void drain_wait_sampler(struct drain *d, struct wait_sampler *busy);

/* Readable when the ring has records. */
int drain_events_fd(const struct drain *d);
/*
 * Delivers the records that are in the ring, and of those that come meanwhile so many at most that a ringful is read in all:
 * programs may write them as fast as they are read.
 */
int drain_events(struct drain *d);
/*
 * The two halves of a drain. After drain_flip() no program adds to what drain_totals() will deliver
 * (first ring records, then all totals up to the flip). What is needed to interpret totals, above
 * all the records about processes, is read in between: then it is not older than they are. 0 or
 * -errno.
 */
int drain_flip(struct drain *d, struct err *e);
int drain_totals(struct drain *d, struct err *e);
/* The same for additions sent through the ring because the totals were full, up to the last
 * drain_events(); read records about processes after that. 0 or -ENOMEM: not all could be kept. */
int drain_sent(struct drain *d);
bool drain_sent_waits(const struct drain *d);
/*
 * Call it for each total, and for each allocation site, while they are ingested. Where every event
 * has a new stack, ingesting takes longer than making them; this empties the small ring in between.
 */
void drain_breathe(struct drain *d);
/* Threads that have ended, which then leave the table; with `all`, also the others. */
int drain_threads(struct drain *d, bool all, struct err *e);
/* Live blocks; those that are taken leave the table. */
int drain_blocks(struct drain *d, struct err *e);
/* Blocks that are live but not in the table: a realloc is moving them. Once the gate is closed. */
int drain_inflight(struct drain *d, struct err *e);

/* The address spaces that are followed; those for which `fn` returns true are dropped. */
struct drain_memory {
	pid_t pid;
	bool whole;        /* known since it was made, with no page       */
	int64_t net_pages; /* pages that came less pages that went, by its events */
};
typedef bool (*drain_memory_fn)(void *ctx, const struct drain_memory *memory);
int drain_memories(struct drain *d, drain_memory_fn fn, void *ctx);

/* Counters (stats.h), summed over CPUs: N_STATS of them. Those of sampled threads lag behind
 * until drain_threads() has reported all, after the gate was closed. */
void drain_stats(const struct drain *d, uint64_t *ret_stats);
/* Verdicts: [source][verdict]. */
void drain_verdicts(const struct drain *d, uint64_t ret_verdicts[N_SOURCES][N_STACK_VERDICTS]);
/* The clock by which waits are measured, at `ns` of CLOCK_MONOTONIC (bpf/slices.h). */
uint64_t drain_wait_clock(const struct drain *d, uint64_t ns);
/* Entries that the last drain_totals() found in the fuller lane, of
 * session_map_max(SESSION_TOTALS_A). */
uint32_t drain_last_totals(const struct drain *d);

#endif
