/*
 * What a run says of its allocations: counts, sites and notes for the summary, what tracing cost, and sites.csv.
 */
#include "base/units.h"
#include "collect/overhead/counter.h"
#include "render/tables/sites_csv.h"
#include "run/alloc/alloc.h"
#include "run/output/files.h"

#include <math.h>

/* What the ingest counted, which all tiers have. */
static void report_counts(struct alloc *al, struct summary_alloc *a)
{
	const struct run *r = al->run;
	uint64_t begin = session_start_ns(r->session), stats[N_STATS];
	struct ingest_stats in;

	ingest_stats(r->ingest, &in);
	drain_stats(r->drain, stats);
	a->covered_from_ns = r->alloc.from_ns > begin ? (int64_t)(r->alloc.from_ns - begin) : 0;
	a->covered_to_ns = (int64_t)(r->alloc.to_ns - begin);
	a->objects = in.allocated;
	a->bytes = in.allocated_bytes;
	a->freed_objects = in.freed;
	a->freed_bytes = in.freed_bytes;
	a->live_objects = in.live;
	a->live_bytes = in.live_bytes;
	a->failed = stats[STAT_ALLOC_FAILED];
	a->inherited_frees = stats[STAT_FREE_INHERITED];
	a->earlier_frees = stats[STAT_FREE_UNKNOWN];
	a->untracked = in.untracked;
	a->n_sites = row_count(
		sites_allocations(r->profiles[PROFILE_ALLOC], 1, 0, al->sites, ALLOC_ROWS));
	a->n_live_sites = row_count(
		sites_allocations(r->profiles[PROFILE_HEAP], 3, 2, al->live_sites, ALLOC_ROWS));
	a->sites = al->sites;
	a->live_sites = al->live_sites;
}

void alloc_site_intervals(struct alloc *al, bool live, struct summary_alloc *a)
{
	const struct profile *p = al->run->profiles[live ? PROFILE_HEAP : PROFILE_ALLOC];
	struct summary_interval *total = live ? &a->live_interval : &a->bytes_interval;
	uint64_t bytes = live ? a->live_bytes : a->bytes;
	struct site_row all;

	if (site_intervals(p, live ? 3 : 1, live ? al->live_sites : al->sites,
			   live ? a->n_live_sites : a->n_sites, &all) < 0) {
		al->run->oom = true;
		return;
	}
	/* Values of the profile are whole: half a byte for each. */
	if (fabs((double)all.value - (double)bytes) <= profile_n_samples(p))
		*total = (struct summary_interval){ all.low, all.high, all.samples };
}

/* MiB for a table that has room for what this one had not: its share grows at least as --mem does. */
static uint32_t mem_for(const struct run *r, const uint64_t *stats)
{
	double has = session_map_max(r->session, SESSION_BLOCKS);

	return (uint32_t)ceil(r->cfg->mem_mb * (1 + (double)stats[STAT_BLOCKS_FULL] / has));
}

static void notes(struct alloc *al)
{
	struct run *r = al->run;
	uint64_t stats[N_STATS];
	struct ingest_stats in;

	ingest_stats(r->ingest, &in);
	drain_stats(r->drain, stats);
	if (al->gap_children || al->gap_ended)
		run_note(
			r, false,
			"of %u forked children, %u ran %s in all before their allocation probes were in place, and "
			"%u ended before: what they allocated then is missing from alloc and heap "
			"(--alloc-scope=file leaves no gap)",
			targets_count(r).children, al->gap_children, unit_ns((int64_t)al->gap_ns).s,
			al->gap_ended);
	if (al->late_files)
		run_note(
			r, false,
			"an allocator's file was mapped in the run %u time%s, %s in all before its probes were in "
			"place: what it allocated then is missing from alloc and heap",
			al->late_files, al->late_files == 1 ? "" : "s",
			unit_ns((int64_t)al->late_ns).s);
	if (r->alloc.tier == ALLOC_TIER_EXACT && targets_count(r).children &&
	    !inprocess_wanted(r->cfg))
		run_note(
			r, false,
			"a fork copies no live blocks: what a child inherits is counted once, as its parent's");
	if (stats[STAT_PROBE_OTHER] && r->cfg->file_scope)
		run_note(
			r, false,
			"--alloc-scope=file: %s probe hits in untraced processes; each cost them 0.5 to 9 µs",
			unit_count((int64_t)stats[STAT_PROBE_OTHER]).s);
	if (in.ended)
		run_note(
			r, false,
			"%s blocks (%s) ended with a child process or an image that an exec replaced: they are not in heap",
			unit_count((int64_t)in.ended).s, unit_bytes((int64_t)in.ended_bytes).s);
	if (stats[STAT_SITES_FULL] || stats[STAT_SITES_NONE])
		run_note(
			r, true,
			"the table of allocation sites was full: %s allocations are counted without their stack, "
			"%s (%s) are not counted at all; raise --mem (now %u)",
			unit_count((int64_t)stats[STAT_SITES_FULL]).s,
			unit_count((int64_t)stats[STAT_SITES_NONE]).s,
			unit_bytes((int64_t)stats[STAT_SITES_NONE_BYTES]).s, r->cfg->mem_mb);
	if (stats[STAT_BLOCKS_FULL])
		run_note(
			r, true,
			"the table of live blocks was full: %s allocations (%s) are in alloc but not in heap; "
			"--mem=%u would hold them (now %u)",
			unit_count((int64_t)stats[STAT_BLOCKS_FULL]).s,
			unit_bytes((int64_t)stats[STAT_BLOCKS_FULL_BYTES]).s, mem_for(r, stats),
			r->cfg->mem_mb);
}

void alloc_report(void *self, struct run_summary *s)
{
	const struct alloc_tier_ops *ops = alloc_ops(self);
	struct summary_alloc *a = &s->alloc;
	struct alloc *al = self;

	a->tier = al->run->alloc.tier;
	a->unnamed = al->unnamed;
	a->reason = *al->reason ? al->reason : NULL;
	a->calls_per_s = al->calls_per_s;
	a->cost_percent = al->cost_percent;
	if (ops) {
		report_counts(al, a);
		ops->report(al, a);
		a->objects_seen = al->objects_seen && !al->objects_unseen;
	}
	notes(al);
}

/* Every call was traced, of which each hit was counted; then, maybe, in bursts, which say it themselves. */
bool alloc_cost_report(void *self, const struct program_cost *program, const struct run_summary *s,
		       struct summary_cost *ret_cost)
{
	const struct summary_alloc *a = &s->alloc;
	struct alloc *al = self;
	uint64_t hits = counter_read(al->run->session, STAT_PROBE_HITS), timed;
	double each = program->runs ? (double)program->run_ns / (double)program->runs : 0;
	struct summary_cost sum = { "allocations", hits, each, al->trap_ns, 0 };

	if (a->tier != ALLOC_TIER_EXACT && a->tier != ALLOC_TIER_BURSTS)
		return false;
	if (inprocess_wanted(al->run->cfg)) {
		inprocess_cost(al, ret_cost);
		return true;
	}
	if (a->tier == ALLOC_TIER_BURSTS) {
		timed = counter_read(al->run->session, STAT_BURST_TIMED);
		hits -= a->bursts.hits < hits ? a->bursts.hits : hits;
		each = timed ? (double)counter_read(al->run->session, STAT_BURST_NS) / (double)timed
			     : 0;
		sum = (struct summary_cost){ "allocations", a->bursts.hits + hits, each,
					     a->bursts.trap_ns, a->bursts.target_ns };
	}
	sum.ns += (int64_t)((double)hits * (sum.program_ns + sum.trap_ns));
	*ret_cost = sum;
	return true;
}

static int write_sites(void *ctx, struct sink *sink, struct err *e)
{
	return sites_csv_write(((struct alloc *)ctx)->run->alloc.sites, sink, e);
}

int alloc_write(void *self, struct run_output *to, struct err *e)
{
	const struct alloc_state *state = &((struct alloc *)self)->run->alloc;
	char line[64];
	int rc;

	if (state->tier == ALLOC_TIER_BURSTS)
		return live_write(self, to, e);
	if (!state->sites || state->tier != ALLOC_TIER_EXACT)
		return 0;
	rc = output_csv(to, "sites", write_sites, self, e);
	return rc < 0 ? rc
		      : output_pprof(to, "sites", state->sites, SITE_BYTES,
				     exact_peak_line(self, line, sizeof(line)), e);
}
