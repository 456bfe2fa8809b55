/*
 * What became of exact allocations: from the table of sites into the profiles, and into the summary.
 */
#include "cmd/run_parts.h"
#include "model/alloc_site.h"

#include <errno.h>

static int on_site(void *ctx, const struct ms_alloc_key *key, uint64_t cgroup_id,
		   const int64_t *values, int64_t untracked, int64_t untracked_bytes, bool lost)
{
	struct run *r = ctx;

	drain_breathe(r->drain);
	return ingest_site(r->ingest, key, cgroup_id, values, untracked, untracked_bytes, lost);
}

static int on_site_end(void *ctx, const struct ms_alloc_key *key, uint64_t cgroup_id,
		       const int64_t *values)
{
	struct run *r = ctx;

	return ingest_site_end(r->ingest, key, cgroup_id, values);
}

static void on_image(void *ctx, const struct table_image *image)
{
	struct run *r = ctx;

	if (!image->highest_ns)
		return;
	r->peak.images++;
	r->peak.bytes += image->highest;
	r->peak.at_ns = image->highest_ns;
}

static bool is_gone(void *ctx, const struct ms_proc *proc)
{
	struct run *r = ctx;

	return ingest_gone(r->ingest, proc);
}

int run_open_sites(struct run *r, struct err *e)
{
	struct alloc_table_fns fns = {
		.site = on_site,
		.end = on_site_end,
		.image = on_image,
		.gone = is_gone,
		.ctx = r,
	};

	r->sites = profile_new(r->dict, alloc_site_types, N_SITE_VALUES);
	if (!r->sites)
		return err_set(e, -ENOMEM, "out of memory");
	r->ingest_profiles.sites = r->sites;
	return alloc_table_open(r->session, &fns, &r->alloc_table, e);
}

/* Blocks last: what is told of them is told of sites that are known. */
int run_finish_sites(struct run *r, struct err *e)
{
	int rc;

	if (!r->alloc_table)
		return 0;
	if (alloc_table_finish(r->alloc_table) < 0)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	alloc_table_sizes(r->alloc_table, r->sizes);
	if (!r->bands && !r->holders)
		return 0;
	rc = drain_inflight(r->drain, e);
	return rc == 0 ? drain_blocks(r->drain, e) : rc;
}

static uint32_t rows(int n)
{
	return n < 0 ? 0 : (uint32_t)n;
}

void run_site_facts(struct run *r, struct summary_sites *rows_of, struct summary_alloc *a)
{
	const struct profile *peak = r->profiles[PROFILE_PEAK];
	uint64_t start = session_start_ns(r->session);

	if (!r->sites || !peak)
		return;
	a->temporary = (uint64_t)profile_total(r->sites, SITE_TEMPORARY);
	a->cross_freed = (uint64_t)profile_total(r->sites, SITE_CROSS);
	a->life_ns = (uint64_t)profile_total(r->sites, SITE_LIFE_NS);
	for (uint32_t i = 0; i < ALLOC_LIVES; i++)
		a->lives[i] = (uint64_t)profile_total(r->sites, SITE_LIVES + i);
	for (uint32_t i = 0; i < ALLOC_SIZES; i++)
		a->sizes[i] = r->sizes[i];
	a->peak.images = r->peak.images;
	a->peak.bytes = r->peak.bytes;
	a->peak.at_ns = r->peak.at_ns > start ? (int64_t)(r->peak.at_ns - start) : 0;
	a->peak.objects = profile_total(peak, 0);
	a->peak.on_stacks = profile_total(peak, 1);
	rows_of->n_peak = rows(sites_allocations(peak, 1, 0, rows_of->peak, SUMMARY_SITES));
	rows_of->n_calls = rows(sites_allocations(r->sites, SITE_OBJECTS, SITE_BYTES,
						  rows_of->calls, SUMMARY_FEW_SITES));
	rows_of->n_temporary = rows(sites_allocations(r->sites, SITE_TEMPORARY, SITE_OBJECTS,
						      rows_of->temporary, SUMMARY_FEW_SITES));
	rows_of->n_threads = rows(alloc_threads(r->profiles[PROFILE_ALLOC], rows_of->threads,
						SUMMARY_FEW_SITES, &rows_of->seen_threads));
	a->more = rows_of;
}
