/*
 * What targets map by themselves, while every allocation of theirs is traced.
 */
#include "analyse/sites.h"
#include "cmd/run_parts.h"

#include <errno.h>
#include <string.h>

_Static_assert((int)MAPPING_FILE == MS_MEMORY_FILE && (int)MAPPING_ANON == MS_MEMORY_ANON &&
		       (int)MAPPING_SHARED == MS_MEMORY_SHARED &&
		       (int)N_MAPPING_KINDS == MS_N_MEMORY_KINDS,
	       "one list of kinds");

#define SHARE 16 /* of --mem, for the ranges that are there */

int run_mappings_begin(struct run *r, struct err *e)
{
	int rc;

	r->mappings = mappings_new(((uint64_t)r->cfg->mem_mb << 20) / SHARE);
	if (!r->mappings)
		return err_set(e, -ENOMEM, "out of memory");
	rc = session_mappings(r->session, true);
	if (rc == 0)
		return 0;
	run_note(r, false,
		 "what the targets map with mmap, mremap and brk is not told: the tracepoints of "
		 "system calls cannot be attached: %s",
		 strerror(-rc));
	session_mappings(r->session, false);
	mappings_free(TAKE_PTR(r->mappings));
	return 0;
}

void run_mappings_end(struct run *r)
{
	session_mappings(r->session, false);
}

void run_on_mapping(void *ctx, const struct ms_mapping_rec *rec)
{
	struct run *r = ctx;

	if (r->mappings)
		r->oom |= mappings_take(r->mappings, rec) < 0;
}

static bool is_gone(void *ctx, const struct ms_proc *proc)
{
	struct run *r = ctx;

	return ingest_gone(r->ingest, proc);
}

void run_mappings_sweep(struct run *r)
{
	if (r->mappings)
		mappings_sweep(r->mappings, is_gone, r);
}

static int on_row(void *ctx, const struct mappings_row *row)
{
	const int64_t values[4] = { (int64_t)row->sum.made, (int64_t)row->sum.made_bytes,
				    (int64_t)row->sum.live, (int64_t)row->sum.live_bytes };
	struct run *r = ctx;

	return ingest_mapping(r->ingest, &row->key, row->cgroup_id, values);
}

int run_mappings_finish(struct run *r, struct err *e)
{
	if (!r->mappings || r->tier != ALLOC_TIER_EXACT)
		return 0;
	run_mappings_sweep(r);
	return mappings_each(r->mappings, on_row, r) < 0
		       ? err_set(e, -ENOMEM, "out of memory: the profiles are not complete")
		       : 0;
}

static uint32_t rows(int n)
{
	return n < 0 ? 0 : (uint32_t)n;
}

void run_mappings_facts(const struct run *r, const uint64_t *stats, struct site_row *sites,
			struct site_row *live_sites, uint32_t n, struct summary_mappings *to)
{
	const struct profile *p = r->profiles[PROFILE_MAPPINGS];
	struct mappings_stats st;

	if (!r->mappings || r->tier != ALLOC_TIER_EXACT)
		return;
	mappings_stats(r->mappings, &st);
	to->known = true;
	for (int i = 0; i < N_MAPPING_KINDS; i++) {
		to->by[i].made = st.by[i].made;
		to->by[i].made_bytes = st.by[i].made_bytes;
		to->by[i].gone_bytes = st.by[i].gone_bytes;
		to->by[i].live = st.by[i].live;
		to->by[i].live_bytes = st.by[i].live_bytes;
	}
	to->ended_bytes = st.ended_bytes;
	to->failed = stats[STAT_MAPPINGS_FAILED];
	to->full = st.full;
	to->n_sites = rows(sites_allocations(p, 1, 0, sites, n));
	to->n_live_sites = rows(sites_allocations(p, 3, 2, live_sites, n));
	to->sites = sites;
	to->live_sites = live_sites;
}
