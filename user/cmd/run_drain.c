/*
 * From the kernel's maps to the profiles, each time the maps are emptied.
 */
#include "cmd/run_parts.h"
#include "cmd/run_windows.h"

#include <string.h>

#define FORGET_NS 30000000000ULL /* how long a process is remembered after its end      */
#define SWEEP_NS  5000000000ULL  /* at least, between two sweeps of the table of blocks */

static void on_stack(void *ctx, const struct ms_stack_rec *rec, const uint64_t *frames)
{
	struct run *r = ctx;

	r->oom |= ingest_stack(r->ingest, rec, frames) < 0;
}

static void on_total(void *ctx, const struct ms_total_key *key, const struct ms_total *total)
{
	struct run *r = ctx;

	if (key->source == MS_OFFCPU)
		run_windows_total(r, key, total);
	if (key->source == MS_ALLOC && key->bucket)
		r->oom |= run_slices_total(r, key, total) < 0;
	else
		r->oom |= ingest_total(r->ingest, key, total) < 0;
}

static void on_thread(void *ctx, uint32_t tid, const struct ms_thread *thread)
{
	struct run *r = ctx;

	if (run_windows_thread(r, tid, thread))
		return;
	r->oom |= ingest_thread(r->ingest, tid, thread, r->end_ns ? r->end_ns : run_now_ns()) < 0;
}

static void on_rest(void *ctx, const struct ms_total_key *key, const struct ms_total *total)
{
	struct run *r = ctx;

	if (!run_windows_rest(r, key, total))
		r->oom |= ingest_total(r->ingest, key, total) < 0;
}

static bool on_block(void *ctx, const struct ms_block_key *key, const struct ms_block *block)
{
	const struct ms_alloc_key *site;
	struct run *r = ctx;

	if (r->sweeping)
		return ingest_gone(r->ingest, &key->proc);
	site = alloc_table_key(r->alloc_table, block->site);
	if (site && memcmp(&site->proc, &key->proc, sizeof(key->proc)) != 0)
		site = NULL; /* the block's was given away */
	r->oom |= site && ingest_block(r->ingest, site, block) < 0;
	run_ledger_block(r, key);
	return false;
}

static int take_sent(struct run *r, struct err *e)
{
	int rc;

	run_read_sideband(r);
	rc = drain_sent(r->drain);
	return rc < 0 ? err_set(e, rc, "out of memory: totals were lost") : 0;
}

/* What the totals speak of must be known when they are read: records after the flip, before the
 * totals. */
int run_take_totals(struct run *r, struct err *e)
{
	int rc;

	run_slices_flip(r);
	rc = drain_flip(r->drain, e);
	if (rc < 0)
		return rc;
	run_read_sideband(r);
	rc = drain_totals(r->drain, e);
	if (rc == 0)
		rc = take_sent(r, e);
	if (rc == 0 && r->alloc_table)
		r->oom |= alloc_table_read(r->alloc_table) < 0;
	run_slices_read(r);
	return rc;
}

/* The same for what came by itself, and for stacks that are to be walked here: records after them,
 * before they are understood. */
int run_take_stacks(struct run *r, struct err *e)
{
	int rc = drain_events(r->drain);

	if (rc < 0)
		return err_set(e, rc, "cannot read the events ring: %s", strerror(-rc));
	if (!r->pending && !drain_sent_waits(r->drain))
		return 0;
	rc = take_sent(r, e);
	if (rc == 0 && r->pending)
		run_finish_pending(r, false);
	return rc;
}

/*
 * Processes that ended a while ago: on a host where compilers come and go they would fill memory.
 * Live blocks name their process until the end, so not while allocations are traced.
 */
static void forget_the_dead(struct run *r)
{
	uint64_t now = run_now_ns();

	if (now < r->next_forget_ns || r->tier == ALLOC_TIER_EXACT ||
	    r->tier == ALLOC_TIER_SAMPLED || r->tier == ALLOC_TIER_SLICES)
		return;
	if (r->next_forget_ns) {
		ingest_forget(r->ingest);
		proc_table_retire(r->procs, now - FORGET_NS);
	}
	r->next_forget_ns = now + FORGET_NS;
}

/* Blocks of processes that ended leave the table, or a server that forks would fill it with its
 * dead. So do sites, and at once where there is little room for more. */
static void sweep_blocks(struct run *r)
{
	uint64_t now = run_now_ns();

	if ((!run_tracing_allocs(r) && !run_sampling_allocs(r)) || !r->ended_since_sweep)
		return;
	if (now < r->next_sweep_ns) {
		if (r->alloc_table && alloc_table_filling(r->alloc_table))
			r->oom |= alloc_table_sweep(r->alloc_table, !r->pending) < 0;
		return;
	}
	if (run_sampling_allocs(r)) {
		run_sampled_sweep(r);
	} else {
		r->sweeping = true;
		drain_blocks(r->drain, NULL);
		r->sweeping = false;
		r->oom |= alloc_table_sweep(r->alloc_table, !r->pending) < 0;
		run_mappings_sweep(r);
	}
	r->ended_since_sweep = false;
	r->next_sweep_ns = now + SWEEP_NS;
}

int run_drain(struct run *r, struct err *e)
{
	uint32_t max = session_map_max(r->session, SESSION_TOTALS_A);
	bool filling;
	int rc;

	rc = run_take_totals(r, e);
	if (rc == 0 && r->cfg->sources[MS_OFFCPU])
		rc = drain_threads(r->drain, false, e);
	filling = r->alloc_table && alloc_table_filling(r->alloc_table);
	if ((drain_last_totals(r->drain) > max / 4 || filling) &&
	    r->drain_every_ns > DRAIN_FASTEST_NS)
		r->drain_every_ns /= 2;
	else if (drain_last_totals(r->drain) < max / 16 && !filling && r->drain_every_ns < DRAIN_NS)
		r->drain_every_ns *= 2;
	r->next_drain_ns = run_now_ns() + r->drain_every_ns;
	if (rc == 0) {
		sweep_blocks(r);
		run_growth_sweep(r);
		run_untarget_the_dead(r);
		forget_the_dead(r);
	}
	return rc;
}

struct drain_fns run_drain_fns(struct run *r)
{
	return (struct drain_fns){
		.stack = on_stack,
		.pending = run_on_pending,
		.sample = run_on_sample,
		.mapping = run_on_mapping,
		.cgroup = run_on_cgroup,
		.total = on_total,
		.thread = on_thread,
		.rest = on_rest,
		.moved = run_on_moved,
		.block = on_block,
		.ctx = r,
	};
}
