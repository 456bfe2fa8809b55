/*
 * What targets map by themselves, while every allocation of theirs is traced.
 */
#include "analyse/sites.h"
#include "base/units.h"
#include "run/alloc/alloc.h"

#include <errno.h>
#include <string.h>

#define SHARE 16 /* of --mem, for the ranges that are there */

int mappings_begin(struct alloc *al, struct err *e)
{
	int rc;

	al->mappings = mappings_new(((uint64_t)al->run->cfg->mem_mb << 20) / SHARE);
	if (!al->mappings)
		return err_set(e, -ENOMEM, "out of memory");
	rc = session_mappings(al->run->session, true);
	if (rc == 0)
		return 0;
	run_note(al->run, false,
		 "mappings made with mmap, mremap and brk are not reported: the tracepoints of "
		 "system calls cannot be attached: %s",
		 strerror(-rc));
	session_mappings(al->run->session, false);
	mappings_free(TAKE_PTR(al->mappings));
	al->run->alloc.no_mappings = true;
	return 0;
}

void mappings_end(struct alloc *al)
{
	session_mappings(al->run->session, false);
	syscall_watch_fini(&al->syscalls);
}

/* What was mapped so far would be there for ever: none of it is reported. */
static void give_up(struct alloc *al, double per_s)
{
	mappings_end(al);
	mappings_free(TAKE_PTR(al->mappings));
	al->run->alloc.no_mappings = true;
	run_note(
		al->run, false,
		"mappings made with mmap, mremap and brk are not reported: to trace them slows every "
		"system call of this host, of which there were %s a second: %.2g %% of a CPU, more than "
		"half of the limit of %.3g %%; --alloc=exact forces it, --max-overhead raises the limit",
		unit_count((int64_t)per_s).s, syscalls_percent(per_s), al->run->cfg->max_overhead);
}

void mappings_tick(struct alloc *al, uint64_t now_ns)
{
	double per_s;

	if (!al->mappings || al->run->cfg->alloc != ALLOC_AUTO || !alloc_is(al, ALLOC_TIER_EXACT))
		return;
	if (syscall_watch_tick(&al->syscalls, al->run->session, now_ns, &per_s) &&
	    syscalls_percent(per_s) > al->run->cfg->max_overhead / 2)
		give_up(al, per_s);
}

enum drain_says mappings_on_record(void *ctx, const void *rec, const void *more)
{
	struct alloc *al = ctx;

	if (al->mappings)
		al->run->oom |= mappings_take(al->mappings, rec) < 0;
	(void)more;
	return DRAIN_TAKEN;
}

void mappings_forget(struct alloc *al)
{
	if (al->mappings)
		mappings_sweep(al->mappings, alloc_image_gone, al);
}

static int on_row(void *ctx, const struct mappings_row *row)
{
	const int64_t values[4] = { (int64_t)row->sum.made, (int64_t)row->sum.made_bytes,
				    (int64_t)row->sum.live, (int64_t)row->sum.live_bytes };
	struct alloc *al = ctx;

	return ingest_mapping(al->run->ingest, row->key, row->cgroup_id, values);
}

int mappings_finish(struct alloc *al, struct err *e)
{
	if (!al->mappings || al->run->alloc.tier != ALLOC_TIER_EXACT)
		return 0;
	mappings_forget(al);
	return mappings_each(al->mappings, on_row, al) < 0
		       ? err_set(e, -ENOMEM, "out of memory: the profiles are not complete")
		       : 0;
}

void mappings_report(struct alloc *al, struct summary_mappings *to)
{
	const struct profile *p = al->run->profiles[PROFILE_MAPPINGS];
	uint64_t stats[N_STATS];
	struct mappings_stats st;

	if (!al->mappings || al->run->alloc.tier != ALLOC_TIER_EXACT)
		return;
	mappings_stats(al->mappings, &st);
	drain_stats(al->run->drain, stats);
	to->known = true;
	for (int i = 0; i < N_MEMORY_KINDS; i++) {
		to->by[i].made = st.by[i].made;
		to->by[i].made_bytes = st.by[i].made_bytes;
		to->by[i].gone_bytes = st.by[i].gone_bytes;
		to->by[i].live = st.by[i].live;
		to->by[i].live_bytes = st.by[i].live_bytes;
	}
	to->ended_bytes = st.ended_bytes;
	to->failed = stats[STAT_MAPPINGS_FAILED];
	to->full = st.full;
	to->n_sites = row_count(sites_allocations(p, 1, 0, al->mapped, SUMMARY_FEW_SITES));
	to->n_live_sites =
		row_count(sites_allocations(p, 3, 2, al->live_mapped, SUMMARY_FEW_SITES));
	to->sites = al->mapped;
	to->live_sites = al->live_mapped;
}
