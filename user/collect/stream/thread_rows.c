#include "collect/stream/thread_rows.h"

#include "base/grow.h"
#include "collect/session/session_wire.h"
#include "collect/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reading {
	struct thread_rows *rows;
	bool oom;
};

static void on_sampled(void *ctx, const void *record)
{
	const struct ms_sampled_thread *sampled = record;
	struct reading *reading = ctx;
	struct thread_rows *rows = reading->rows;

	if (!GROW(rows->sampled, rows->n_sampled, rows->sampled_cap)) {
		reading->oom = true;
		return;
	}
	rows->sampled[rows->n_sampled++] = *sampled;
	rows->rest[STAT_OFFCPU_SWITCHES] += sampled->switches;
	rows->rest[STAT_WAIT_SWITCHES] += sampled->switches;
	rows->rest[STAT_OFFCPU_WAITS] += sampled->waits;
	rows->rest[STAT_WAITS_LEFT_OUT] += sampled->left_out;
	rows->rest[STAT_WAITS_LEFT_OUT_NS] += sampled->left_out_ns;
}

static void on_queued(void *ctx, const void *record)
{
	struct reading *reading = ctx;
	struct thread_rows *rows = reading->rows;

	if (GROW(rows->queued, rows->n_queued, rows->queued_cap))
		rows->queued[rows->n_queued++] = *(const struct ms_queued *)record;
	else
		reading->oom = true;
}

static int compare_sampled(const void *a, const void *b)
{
	uint32_t x = ((const struct ms_sampled_thread *)a)->tid,
		 y = ((const struct ms_sampled_thread *)b)->tid;

	return x < y ? -1 : x > y;
}

static int compare_queued(const void *a, const void *b)
{
	uint32_t x = ((const struct ms_queued *)a)->tid, y = ((const struct ms_queued *)b)->tid;

	return x < y ? -1 : x > y;
}

int thread_rows_read(struct thread_rows *rows, struct session *session,
		     struct wait_sampler *sampler)
{
	struct reading reading = { .rows = rows };
	int r;

	rows->n_sampled = rows->n_queued = 0;
	r = session_queued(session, on_queued, &reading);
	if (rows->n_queued)
		qsort(rows->queued, rows->n_queued, sizeof(*rows->queued), compare_queued);
	if (r < 0 || reading.oom)
		return r < 0 ? r : -ENOMEM;
	memset(rows->rest, 0, sizeof(rows->rest));
	if (sampler)
		r = wait_sampler_each(sampler, on_sampled, &reading);
	if (rows->n_sampled)
		qsort(rows->sampled, rows->n_sampled, sizeof(*rows->sampled), compare_sampled);
	return r < 0 ? r : reading.oom ? -ENOMEM : 0;
}

/* A sampled thread in the form of any other: the sums of both records, the state of the newer one. */
static struct ms_thread thread_of(const struct ms_sampled_thread *b, const struct ms_thread *t)
{
	const struct ms_wait_site *p = &b->sites[b->site % MS_WAIT_SITES];
	struct ms_thread whole = *t;

	whole.proc = b->proc;
	whole.oncpu_ns += b->oncpu_ns;
	whole.blocked_ns += b->blocked_ns;
	whole.runnable_ns += b->runnable_ns;
	whole.switches += b->switches;
	whole.since_ns = b->since_ns + b->ahead_ns;
	whole.wake_ns = whole.labels = 0;
	whole.state = b->state;
	whole.as_gen = p->as_gen;
	whole.user = b->reassigned ? b->user : p->user;
	whole.kernel = b->reassigned ? b->kernel : p->kernel;
	return whole;
}

/* Adds when the thread was woken, if it is still in the same wait. */
static void add_wake(const struct thread_rows *rows, uint32_t tid, struct ms_thread *t)
{
	struct ms_queued want = { .tid = tid }, *q = NULL;

	if (t->state == MS_RUN_BLOCKED && !t->wake_ns && rows->n_queued)
		q = bsearch(&want, rows->queued, rows->n_queued, sizeof(want), compare_queued);
	if (q && q->since_ns == t->since_ns)
		t->wake_ns = q->wake_ns;
}

const struct ms_sampled_thread *thread_rows_join(const struct thread_rows *rows, uint32_t tid,
						 const struct ms_thread *table,
						 struct ms_thread *ret_whole)
{
	struct ms_sampled_thread want = { .tid = tid }, *sampled = NULL;

	if (table->state == MS_RUN_SAMPLED && rows->n_sampled)
		sampled = bsearch(&want, rows->sampled, rows->n_sampled, sizeof(want),
				  compare_sampled);
	*ret_whole = sampled ? thread_of(sampled, table) : *table;
	add_wake(rows, tid, ret_whole);
	return sampled;
}

void thread_rows_rest(const struct ms_sampled_thread *sampled, thread_rest_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < MS_WAIT_SITES; i++) {
		const struct ms_wait_site *p = &sampled->sites[i];
		struct ms_total_key key = {
			.proc = sampled->proc,
			.user = p->user,
			.kernel = p->kernel,
			.tid = sampled->tid,
			.as_gen = p->as_gen,
			.source = MS_OFFCPU,
			.state = MS_BLOCKED,
			.slot = sampled->slot,
		};
		bool reached = sampled->reached == i;
		struct ms_total blocked = { .count = p->blocked,
					    .value = p->blocked_ns,
					    .before = reached ? sampled->blocked_before : 0 };
		struct ms_total runnable = { .count = p->runnable,
					     .value = p->runnable_ns,
					     .before = reached ? sampled->runnable_before : 0 };

		if (!p->where)
			continue;
		if (blocked.count)
			fn(ctx, &key, &blocked);
		key.state = MS_RUNNABLE;
		if (runnable.count)
			fn(ctx, &key, &runnable);
	}
}

void thread_rows_fini(struct thread_rows *rows)
{
	free(rows->sampled);
	free(rows->queued);
}
