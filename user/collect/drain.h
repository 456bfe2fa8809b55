/*
 * Takes what the kernel programs gathered out of their maps.
 *
 * Totals: the two maps change places, and the update that does it returns after a grace period,
 * when no program holds the old one any more; then the old one is read and emptied. So nothing that
 * was added is lost or counted twice.
 */
#ifndef MEMSCOPE_COLLECT_DRAIN_H
#define MEMSCOPE_COLLECT_DRAIN_H

#include "collect/busy.h"

struct drain;

struct drain_fns {
	/* A stack record; `frames` holds rec->n_frames words, until the call returns. */
	void (*stack)(void *ctx, const struct ms_stack_rec *rec, const uint64_t *frames);
	/* A stack that is still to be walked; `bytes`: rec->stack_bytes of it, until the call
	 * returns. */
	void (*pending)(void *ctx, const struct ms_pending_rec *rec, const uint8_t *bytes);
	/* An event of a sampler in a target. */
	void (*sample)(void *ctx, const struct ms_sample_rec *rec);
	/* What a target maps has changed. */
	void (*mapping)(void *ctx, const struct ms_mapping_rec *rec);
	/* A control group that was made. */
	void (*cgroup)(void *ctx, const struct ms_cgroup_rec *rec);
	void (*total)(void *ctx, const struct ms_total_key *key, const struct ms_total *total);
	void (*thread)(void *ctx, uint32_t tid, const struct ms_thread *thread);
	/* Beside a thread that is busy: waits of it that are in no total yet. */
	void (*rest)(void *ctx, const struct ms_total_key *key, const struct ms_total *total);
	/* Of a busy thread: waits that were another's. Told again as totals, of which some are negative. */
	void (*moved)(void *ctx, const struct ms_moved_rec *rec);
	/* true: the block leaves the table. */
	bool (*block)(void *ctx, const struct ms_block_key *key, const struct ms_block *block);
	void *ctx;
};

/* `fns` is copied. */
int drain_new(struct session *s, const struct drain_fns *fns, struct drain **ret_drain,
	      struct err *e);
void drain_free(struct drain *d);
DEFINE_CLEANUP(struct drain *, drain_freep, drain_free)

/* Busy threads are told as drain_threads() tells all others. `busy` is borrowed. */
void drain_busy(struct drain *d, struct busy *busy);

/* Readable when stack records wait. */
int drain_events_fd(const struct drain *d);
/* Hands over the stack records that wait. */
int drain_events(struct drain *d);
/*
 * The two halves of a drain. After drain_flip() no program adds to what drain_totals() will hand
 * over (stack records, then all totals since the last flip). What is needed to understand them,
 * above all the records about processes, is read in between: then it is not older than they are.
 * 0 or -errno.
 */
int drain_flip(struct drain *d, struct err *e);
int drain_totals(struct drain *d, struct err *e);
/* The same for what has come beside the totals, which were full, by the last drain_events(): records
 * about processes are read after that. 0 or -ENOMEM: not all could be kept. */
int drain_sent(struct drain *d);
bool drain_sent_waits(const struct drain *d);
/*
 * To be called for each total, and for each site of allocations, while they are being understood: where
 * every event has a stack of its own that takes longer than making them, and the ring, which is small, is
 * emptied in between.
 */
void drain_breathe(struct drain *d);
/* Threads that have gone, which then leave the table; with `all`, also those that have not. */
int drain_threads(struct drain *d, bool all, struct err *e);
/* Live blocks; those that `fns.block` says true of leave the table. */
int drain_blocks(struct drain *d, struct err *e);
/* Blocks that are live but not in the table: in the hands of a realloc. Once the gate is closed. */
int drain_inflight(struct drain *d, struct err *e);

/* The address spaces that are followed. One of which `fn` says true is followed no more. `net_pages`:
 * what came less what went, by its events. */
typedef bool (*drain_memory_fn)(void *ctx, const struct ms_memory *memory, int64_t net_pages);
int drain_memories(struct drain *d, drain_memory_fn fn, void *ctx);

/* Counters (stats.def), summed over CPUs: MS_N_STATS of them. Those of busy threads lag behind, until
 * drain_threads() has told all when the gate was closed. */
void drain_stats(const struct drain *d, uint64_t *ret_stats);
/* Verdicts: [source][verdict]. */
void drain_verdicts(const struct drain *d, uint64_t ret_verdicts[MS_N_SOURCES][MS_N_VERDICTS]);
/* Entries that the last drain_totals() found in the fuller lane, of
 * session_map_max(SESSION_TOTALS_A). */
uint32_t drain_last_totals(const struct drain *d);

#endif
