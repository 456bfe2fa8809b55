/*
 * Every allocation is traced: probes on what the targets map, the table of what becomes of their
 * allocations, into the profiles and into the summary.
 */
#include "analyse/alloc_threads.h"
#include "base/saturate.h"
#include "base/small_file.h"
#include "collect/overhead/governor.h"
#include "model/about.h"
#include "model/alloc_site.h"
#include "run/alloc/alloc.h"
#include "run/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SWEEP_NS 5000000000ULL /* at least, between two sweeps of the table of blocks */
/* A mean of fewer runs says little. */
#define RUNS_ENOUGH 100

static int on_site(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values,
		   int64_t untracked, int64_t untracked_bytes, bool lost)
{
	struct alloc *al = ctx;

	drain_breathe(al->run->drain);
	return ingest_site(al->run->ingest, key, cgroup_id, values, untracked, untracked_bytes,
			   lost);
}

static int on_site_end(void *ctx, const struct site_key *key, uint64_t cgroup_id,
		       const int64_t *values)
{
	struct alloc *al = ctx;

	return ingest_site_end(al->run->ingest, key, cgroup_id, values);
}

static void on_image(void *ctx, const struct table_image *image)
{
	struct alloc *al = ctx;

	if (!image->highest_ns)
		return;
	al->peak.images++;
	al->peak.bytes = add_saturating(al->peak.bytes, image->highest);
	al->peak.at_ns = image->highest_ns;
}

static enum drain_says on_block(void *ctx, const void *record, const void *more)
{
	const struct drain_block *block = record;
	const struct site_key *site;
	struct alloc *al = ctx;

	(void)more;
	if (al->list_fn) {
		al->list_fn(al->list_ctx, block);
		return DRAIN_NEXT;
	}
	if (al->sweeping)
		return ingest_gone(al->run->ingest, &block->proc) ? DRAIN_TAKEN : DRAIN_NEXT;
	site = alloc_table_key(al->table, block->site, &block->proc);
	al->run->oom |= site && ingest_block(al->run->ingest, site, (int64_t)block->size,
					     block->born_ns) < 0;
	return DRAIN_NEXT;
}

struct alloc_table_fns exact_table_fns(struct alloc *al)
{
	return (struct alloc_table_fns){
		.site = on_site,
		.end = on_site_end,
		.image = on_image,
		.gone = alloc_image_gone,
		.ctx = al,
	};
}

int exact_open(struct alloc *al, struct err *e)
{
	struct alloc_table_fns fns = exact_table_fns(al);

	al->run->alloc.sites = profile_new(al->run->dict, alloc_site_types, N_SITE_VALUES);
	if (!al->run->alloc.sites)
		return err_set(e, -ENOMEM, "out of memory");
	drain_on(al->run->drain, DRAIN_BLOCK, on_block, al);
	return alloc_table_open(al->run->session, &fns, &al->table, e);
}

int exact_start(struct alloc *al, struct err *e)
{
	const struct run_config *cfg = al->run->cfg;
	int rc;

	alloc_set_tier(al, ALLOC_TIER_EXACT);
	rc = mappings_begin(al, e);
	if (rc < 0)
		return rc;
	if (cfg->alloc == ALLOC_AUTO)
		return exact_limiter_start(
			al->run->session, al->probes, al->limit_percent,
			alloc_probes_pair_ns(al->probes) / GOVERNOR_HITS_PER_PAIR, &al->limiter, e);
	session_trace_open(al->run->session, INT64_MAX);
	return 0;
}

/* --- probes follow processes --- */

/* Gone, or a zombie: short-lived children often are before their record is read. */
static bool is_over(pid_t pid)
{
	char path[64], line[512], *paren;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return small_file_read(AT_FDCWD, path, line, sizeof(line)) <= 0 ||
	       !(paren = strrchr(line, ')')) || strchr("ZX", paren[2]);
}

/* A child of a target: in the kernel it is one since its fork; its probes come now. */
static void child_forked(struct alloc *al, const struct process_event *event)
{
	if (al->run->cfg->file_scope)
		return;
	if (!is_over(event->pid) && alloc_probes_add(al->probes, event->pid, NULL) > 0 &&
	    alloc_is(al, ALLOC_TIER_EXACT)) {
		al->gap_ns += now_ns() - event->ns;
		al->gap_children++;
	} else if (alloc_is(al, ALLOC_TIER_EXACT) && is_over(event->pid)) {
		al->gap_ended++;
	}
}

/* What was mapped may be an allocator that was not there before. */
static void file_mapped(struct alloc *al, const struct process_event *event)
{
	if (alloc_probes_add(al->probes, event->pid, NULL) > 0 && !event->held &&
	    alloc_is(al, ALLOC_TIER_EXACT)) {
		al->late_ns += now_ns() - event->ns;
		al->late_files++;
	}
}

void probes_process(struct alloc *al, const struct process_event *event)
{
	const struct run_config *cfg = al->run->cfg;

	switch (event->kind) {
	case PROCESS_MEMBER:
		if (alloc_is(al, ALLOC_TIER_EXACT))
			alloc_probes_add(al->probes, event->pid, NULL);
		break;
	case PROCESS_LISTED:
		if (cfg->all)
			alloc_probes_add(al->probes, event->pid, NULL);
		break;
	case PROCESS_MAPPED:
		if (event->target)
			file_mapped(al, event);
		break;
	case PROCESS_FORKED:
		if (event->child)
			child_forked(al, event);
		break;
	case PROCESS_EXEC:
		/* Probes follow an exec, but for those that hang on a leader who has gone. */
		if (!event->leader_gone || cfg->file_scope)
			break;
		alloc_probes_drop(al->probes, event->pid);
		alloc_probes_add(al->probes, event->pid, NULL);
		break;
	case PROCESS_ENDED:
	case PROCESS_LEFT:
		if (event->listed && !cfg->file_scope)
			alloc_probes_drop(al->probes, event->pid);
		break;
	default:
		break;
	}
}

/* --- while it runs --- */

/* Blocks of processes that ended leave the table, or a server that forks would fill it with its
 * dead. So do sites, and at once where there is little room for more. */
static void drained(struct alloc *al, uint64_t now)
{
	bool all_walked = !al->run->counts.deferred;

	if (now < al->next_sweep_ns) {
		if (alloc_table_filling(al->table))
			al->run->oom |= alloc_table_sweep(al->table, all_walked) < 0;
		return;
	}
	al->sweeping = true;
	drain_blocks(al->run->drain, NULL);
	al->sweeping = false;
	al->run->oom |= alloc_table_sweep(al->table, all_walked) < 0;
	mappings_forget(al);
	al->ended_since_sweep = false;
	al->next_sweep_ns = now + SWEEP_NS;
}

static double percent(struct alloc *al, const struct cost_window *w)
{
	double hit_ns = alloc_probes_hit_ns(al->probes, BUDGET_TRAP_NS);
	double runs = (double)w->program->runs, run_ns = (double)w->program->run_ns;

	/* What a hit really takes, with this program's stacks. */
	if (al->limiter && runs >= RUNS_ENOUGH)
		exact_limiter_hit_costs(al->limiter, run_ns / runs + hit_ns);
	return (run_ns + runs * hit_ns) * 100 / w->window_ns;
}

static void limit(struct alloc *al, double max_percent)
{
	if (al->limiter)
		exact_limiter_limit(al->limiter, max_percent);
}

static int64_t live(struct alloc *al)
{
	return ingest_live_bytes(al->run->ingest);
}

static double total(struct alloc *al)
{
	struct ingest_stats stats;

	ingest_stats(al->run->ingest, &stats);
	return (double)stats.allocated_bytes;
}

/* Of processes that run: what is live now, by stack. */
static bool lives(const struct run *r, labels_id labels)
{
	const struct label *pid = dict_label_find(r->dict, labels, "pid");

	return !pid || proc_table_live(r->procs, (pid_t)pid->num);
}

static int snapshot(struct alloc *al, struct profile_since *since, struct profile_now *now)
{
	struct profile *sites = al->run->alloc.sites, *heap = now->profiles[PROFILE_HEAP];
	int rc = 0;

	if (!heap || now->last || since->no_live || !sites)
		return 0;
	for (uint32_t i = 0; rc == 0 && i < profile_n_samples(sites); i++) {
		struct profile_sample s = profile_sample(sites, i);
		const int64_t values[4] = { 0, 0, s.values[SITE_OBJECTS] - s.values[SITE_FREED],
					    s.values[SITE_BYTES] - s.values[SITE_FREED_BYTES] };

		if (values[2] > 0 && lives(al->run, s.labels))
			rc = profile_add(heap, s.stack, s.labels, values);
	}
	return rc;
}

static int blocks(struct alloc *al, run_block_fn fn, void *fn_ctx, struct err *e)
{
	int rc;

	al->list_fn = fn;
	al->list_ctx = fn_ctx;
	rc = drain_blocks(al->run->drain, e);
	al->list_fn = NULL;
	return rc;
}

static const struct site_key *site_of(struct alloc *al, const struct drain_block *block)
{
	return al->table ? alloc_table_key(al->table, block->site, &block->proc) : NULL;
}

/* --- in the end ------------------------------------------------------------------------------- */

/* Blocks last: their sites are known by then. */
static int finish_sites(struct alloc *al, struct err *e)
{
	int rc;

	if (!al->table)
		return 0;
	if (alloc_table_finish(al->table, UINT32_MAX) < 0)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	alloc_table_sizes(al->table, al->sizes);
	rc = drain_inflight(al->run->drain, e);
	return rc == 0 ? drain_blocks(al->run->drain, e) : rc;
}

static int finish(struct alloc *al, struct err *e)
{
	int rc = finish_sites(al, e);

	return rc == 0 ? mappings_finish(al, e) : rc;
}

/* Since the programs were started; 0: nothing was in use. */
static int64_t peak_after_ns(const struct alloc *al)
{
	uint64_t start = session_start_ns(al->run->session);

	return al->peak.at_ns > start ? (int64_t)(al->peak.at_ns - start) : 0;
}

const char *exact_peak_line(const struct alloc *al, char *buf, size_t size)
{
	snprintf(buf, size, "%s%.6f s after the start", about_prefix(ABOUT_PEAK),
		 (double)peak_after_ns(al) / 1e9);
	return buf;
}

static void report(struct alloc *al, struct summary_alloc *a)
{
	struct summary_sites *rows_of = &al->more_sites;
	const struct profile *peak = al->run->profiles[PROFILE_PEAK];

	mappings_report(al, &a->mappings);
	if (!al->run->alloc.sites || !peak)
		return;
	a->temporary = (uint64_t)profile_total(al->run->alloc.sites, SITE_TEMPORARY);
	a->cross_freed = (uint64_t)profile_total(al->run->alloc.sites, SITE_CROSS);
	a->life_ns = (uint64_t)profile_total(al->run->alloc.sites, SITE_LIFE_NS);
	for (uint32_t i = 0; i < ALLOC_LIVES; i++)
		a->lives[i] = (uint64_t)profile_total(al->run->alloc.sites, SITE_LIVES + i);
	for (uint32_t i = 0; i < ALLOC_SIZES; i++)
		a->sizes[i] = al->sizes[i];
	a->peak.images = al->peak.images;
	a->peak.bytes = al->peak.bytes;
	a->peak.at_ns = peak_after_ns(al);
	a->peak.objects = profile_total(peak, 0);
	a->peak.on_stacks = profile_total(peak, 1);
	rows_of->n_peak = row_count(sites_allocations(peak, 1, 0, rows_of->peak, SUMMARY_SITES));
	rows_of->n_calls = row_count(sites_allocations(
		al->run->alloc.sites, SITE_OBJECTS, SITE_BYTES, rows_of->calls, SUMMARY_FEW_SITES));
	rows_of->n_temporary =
		row_count(sites_allocations(al->run->alloc.sites, SITE_TEMPORARY, SITE_OBJECTS,
					    rows_of->temporary, SUMMARY_FEW_SITES));
	rows_of->n_threads =
		row_count(alloc_threads(al->run->profiles[PROFILE_ALLOC], rows_of->threads,
					SUMMARY_FEW_SITES, &rows_of->seen_threads));
	a->more = rows_of;
}

const struct alloc_tier_ops exact_ops = {
	.process = probes_process,
	.drained = drained,
	.percent = percent,
	.limit = limit,
	.live_bytes = live,
	.total_bytes = total,
	.snapshot = snapshot,
	.blocks = blocks,
	.site = site_of,
	.finish = finish,
	.report = report,
};
