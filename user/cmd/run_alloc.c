/*
 * Whether, where and how long allocations are traced in a run.
 */
#include "base/units.h"
#include "cmd/run_parts.h"

#include <errno.h>

#define RATE_SLICE_MS 20

bool run_tracing_allocs(const struct run *r)
{
	return r->probes && r->tier == ALLOC_TIER_EXACT && !r->alloc_to_ns;
}

static void alloc_decline(struct run *r)
{
	r->tier = ALLOC_TIER_DECLINED;
	snprintf(
		r->alloc_reason, sizeof(r->alloc_reason),
		"exact allocation tracing is off: %s allocations a second would cost about %.0f %% of a CPU "
		"(limit %.3g %%); --alloc=exact forces it, --max-overhead raises the limit",
		unit_count((int64_t)r->calls_per_s).s, r->cost_percent, r->cfg->max_overhead);
}

/*
 * Looks before it leaps: what would exact tracing cost these processes? Over the limit it stays
 * off, unless the user insists: then what to expect is said first.
 */
static int alloc_look(struct run *r, struct err *e)
{
	uint64_t enough = governor_enough(alloc_probes_pair_ns(r->probes), r->cfg->max_overhead,
					  RATE_SLICE_MS);
	int rc = alloc_probes_rate(r->probes, r->cfg->pids, r->cfg->n_pids, RATE_SLICE_MS, enough,
				   &r->calls_per_s, e);

	if (rc < 0)
		return rc;
	r->cost_percent = governor_percent(r->calls_per_s, alloc_probes_pair_ns(r->probes));
	if (r->cost_percent <= r->cfg->max_overhead || r->cfg->alloc == ALLOC_SLICES)
		return 0;
	if (r->cfg->alloc == ALLOC_AUTO && (r->may_sample || !session_slices(r->session))) {
		alloc_decline(r);
	} else if (r->cfg->alloc == ALLOC_AUTO) {
		r->tier = ALLOC_TIER_SLICES;
		snprintf(
			r->alloc_reason, sizeof(r->alloc_reason),
			"every allocation, %s a second, would cost about %.0f %% of a CPU to trace: "
			"traced in slices of time; --alloc=exact forces it, --max-overhead raises the limit",
			unit_count((int64_t)r->calls_per_s).s, r->cost_percent);
	} else {
		snprintf(
			r->alloc_reason, sizeof(r->alloc_reason),
			"--alloc=exact: %s allocations a second cost about %.0f %% of a CPU while they are traced; "
			"expect the target to run up to %.1f times slower",
			unit_count((int64_t)r->calls_per_s).s, r->cost_percent,
			1 + r->cost_percent / 100);
	}
	return 0;
}

int run_alloc_begin(struct run *r, struct err *e)
{
	struct alloc_probes_stats stats;
	struct watched *t, *next;
	int rc;

	rc = alloc_probes_new(r->session, r->dict, r->procs, r->cfg->file_scope,
			      r->cfg->python_objects, &r->probes, e);
	if (rc < 0)
		return rc;
	if (r->cfg->n_pids) {
		rc = alloc_look(r, e);
		if (rc == 0 && r->tier == ALLOC_TIER_DECLINED)
			return run_sampled_instead(r, e);
		if (rc < 0)
			return rc;
	}
	if (r->cfg->alloc == ALLOC_SLICES && !session_slices(r->session))
		return err_set(
			e, -EOPNOTSUPP,
			"--alloc=slices needs a kernel with uprobe sessions (6.13 and later)");
	if (r->cfg->alloc == ALLOC_SLICES)
		r->tier = ALLOC_TIER_SLICES;
	if (r->tier == ALLOC_TIER_SLICES)
		alloc_probes_slice(r->probes);
	HASH_ITER (hh, r->targets, t, next) {
		rc = alloc_probes_add(r->probes, t->pid, e);
		if (rc < 0)
			return rc;
	}
	alloc_probes_stats(r->probes, &stats);
	if (!stats.functions && *r->sampler_advice) {
		r->partial |= r->cfg->alloc_asked;
		snprintf(r->alloc_reason, sizeof(r->alloc_reason), "%.390s", r->sampler_advice);
		r->tier = ALLOC_TIER_OFF;
		return 0;
	}
	if (!stats.functions && r->live_targets && !r->cfg->command && !r->cfg->all)
		run_note(
			r, r->cfg->alloc_asked,
			"no allocator function was found in the files this process maps%s%s%s",
			stats.nameless[0] ? ": " : "", stats.nameless,
			stats.nameless[0]
				? " is stripped and no debug file of it is installed (put one below /usr/lib/debug, or do not strip it)"
				: ": its allocator is one that memscope does not know");
	run_say(r,
		"%u allocator functions in %u files, %u links; room for %s live blocks, each of which takes 128 "
		"bytes of kernel memory when it is there, and 16 to 32 when not",
		stats.functions, stats.files, stats.attached,
		unit_count(session_map_max(r->session, SESSION_BLOCKS)).s);
	r->alloc_from_ns = run_now_ns();
	if (r->tier == ALLOC_TIER_SLICES)
		return 0; /* they begin when the gate is open */
	r->tier = ALLOC_TIER_EXACT;
	rc = run_mappings_begin(r, e);
	if (rc < 0)
		return rc;
	if (r->cfg->alloc == ALLOC_AUTO)
		return exact_watch_start(r->session, r->probes, r->for_allocs,
					 alloc_probes_pair_ns(r->probes) / GOVERNOR_HITS_PER_PAIR,
					 &r->exact_watch, e);
	session_trace_open(r->session, INT64_MAX);
	return 0;
}

void run_alloc_say_failed(struct run *r)
{
	struct alloc_probes_stats stats;

	if (!r->probes)
		return;
	alloc_probes_stats(r->probes, &stats);
	if (stats.own_new)
		run_note(
			r, false,
			"the allocator in use has an operator new that does not call malloc, and where it returns is not known: what C++ code allocates with new is not traced");
	if (*stats.hidden)
		run_note(
			r, r->cfg->alloc_asked,
			"%s has %s linked in, by its messages, and is stripped: what it allocates there is not traced; install its debug file (below /usr/lib/debug, or where its .gnu_debuglink says), or do not strip it",
			stats.hidden, stats.hidden_name);
	if (*stats.objects_hidden)
		run_note(
			r, true,
			"--python-objects: of the calls of %s's object allocator not all can be seen, as they are inlined, it has no symbols, or this is not Linux 6.6 on x86-64: its objects are not traced; how much they take is in Where RSS is",
			stats.objects_hidden);
	else if (r->cfg->python_objects && !stats.objects)
		run_note(r, true, "--python-objects: no CPython was found in these processes");
	if (stats.failed)
		run_note(r, true, "%u times an allocator function could not be probed: %s",
			 stats.failed, stats.failed_why);
	if (!stats.functions && r->cfg->all && r->tier == ALLOC_TIER_EXACT)
		run_note(r, true, "no allocator function was found on this host");
}

int run_alloc_opened(struct run *r, struct err *e)
{
	if (r->tier == ALLOC_TIER_SLICES)
		return run_slices_begin(r, run_now_ns(), e);
	return 0;
}

/* It has come to cost too much: in slices from now on. What lives cannot be told any more. */
static int alloc_to_slices(struct run *r)
{
	uint64_t closed_ns = session_slice_close(r->session);
	double traced_s = (double)(closed_ns - session_start_ns(r->session)) / 1e9;

	run_mappings_end(r);
	run_drain(r, NULL);
	run_bands_free(r);
	snprintf(r->alloc_reason, sizeof(r->alloc_reason),
		 "every call was traced for %.1f s, until that cost more than the %.2g %% of a CPU "
		 "that the limit of %.3g %% leaves for it; --alloc=exact forces it, --max-overhead "
		 "raises the limit",
		 traced_s, r->for_allocs, r->cfg->max_overhead);
	return run_slices_begin(r, closed_ns, NULL);
}

/* Auto mode promised a limit; the rate has grown past it. */
static void alloc_stop(struct run *r)
{
	r->alloc_to_ns = run_now_ns();
	snprintf(
		r->alloc_reason, sizeof(r->alloc_reason),
		"exact allocation tracing stopped after %.1f s: it began to cost more than the %.2g %% of a "
		"CPU that the limit of %.3g %% leaves for it; --alloc=exact forces it, --max-overhead raises "
		"the limit",
		(double)(r->alloc_to_ns - session_start_ns(r->session)) / 1e9, r->for_allocs,
		r->cfg->max_overhead);
	session_gate_alloc(r->session, false);
	run_mappings_end(r);
	run_drain(r, NULL);
	run_alloc_say_failed(r);
	alloc_probes_free(TAKE_PTR(r->probes));
}

void run_alloc_govern(struct run *r)
{
	if (!r->exact_watch || !exact_watch_over(r->exact_watch) || !run_tracing_allocs(r))
		return;
	exact_watch_free(TAKE_PTR(r->exact_watch));
	if (!session_slices(r->session) || alloc_to_slices(r) < 0)
		alloc_stop(r);
}
