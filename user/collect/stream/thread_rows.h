/*
 * What is known of threads besides the kernel programs' table of them: the waits of those that switch often, which
 * are sampled (collect/overhead/wait_sampler.h), and when a thread was woken that waits for a CPU.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_THREAD_ROWS_H
#define MEMSCOPE_COLLECT_STREAM_THREAD_ROWS_H

#include "collect/overhead/wait_sampler.h"
#include "collect/session/stats.h"

struct ms_thread;
struct ms_total;
struct ms_total_key;
struct session;

/* Zeroed to begin with. */
struct thread_rows {
	struct ms_sampled_thread *sampled; /* by tid */
	uint32_t n_sampled, sampled_cap;
	struct ms_queued *queued; /* by tid */
	uint32_t n_queued, queued_cap;
	uint64_t rest[N_STATS]; /* counted in the sampled ones, and not in the counters yet */
};

/* Reads both anew; `sampler` NULL: no thread is sampled. Returns 0 or -errno. */
int thread_rows_read(struct thread_rows *rows, struct session *session, struct wait_sampler *sampler);
/*
 * All that is known of the thread whose row in the table is `table`. Returns its sampled waits, valid until the next
 * read; NULL: it is not sampled.
 */
const struct ms_sampled_thread *thread_rows_join(const struct thread_rows *rows, uint32_t tid,
						 const struct ms_thread *table, struct ms_thread *ret_whole);
typedef void (*thread_rest_fn)(void *ctx, const struct ms_total_key *key, const struct ms_total *total);
/* Calls `fn` with each of its waits that are in no total yet, by stack and state. */
void thread_rows_rest(const struct ms_sampled_thread *sampled, thread_rest_fn fn, void *ctx);
void thread_rows_fini(struct thread_rows *rows);

#endif
