/*
 * Sampled allocations in a run: the library for a command that is started, the sites of a process
 * that runs, and what its samples say in the end.
 */
#include "base/units.h"
#include "cmd/run_parts.h"
#include "cmd/sampler.h"
#include "collect/samplers.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define RATE_VAR "MEMSCOPE_ALLOC_RATE"

bool run_sampling_allocs(const struct run *r)
{
	return r->sample_probes && r->tier == ALLOC_TIER_SAMPLED && !r->alloc_to_ns;
}

/* In the environment of the command, and of nothing else that we start: back in its place after. */
int run_sampled_preload(struct run *r, struct err *e)
{
	const char *before = getenv("LD_PRELOAD");
	char value[2 * PATH_MAX], rate[32];

	if (!sampler_library(r->library, sizeof(r->library)))
		return err_set(e, -ENOENT,
			       "cannot find " SAMPLER_LIBRARY
			       " beside memscope or in ../lib/memscope: `make` and `make install` "
			       "put it there");
	if (strpbrk(r->library, ": "))
		return err_set(
			e, -EINVAL,
			"the dynamic loader takes no LD_PRELOAD with a blank or a colon in it, "
			"as in '%s'",
			r->library);
	if (before && !*before)
		before = NULL;
	r->preload_before = before ? strdup(before) : NULL;
	snprintf(value, sizeof(value), "%s%s%s", r->library, before ? ":" : "",
		 before ? before : "");
	snprintf(rate, sizeof(rate), "%llu", (unsigned long long)r->cfg->alloc_rate);
	if (setenv("LD_PRELOAD", value, 1) < 0 || setenv(RATE_VAR, rate, 1) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

void run_sampled_preloaded(struct run *r)
{
	if (r->preload_before)
		setenv("LD_PRELOAD", r->preload_before, 1);
	else
		unsetenv("LD_PRELOAD");
	free(TAKE_PTR(r->preload_before));
	unsetenv(RATE_VAR);
}

/* What to do about a process that has no sampler. */
static void say_how(struct run *r)
{
	if (*r->sampler_advice) {
		snprintf(r->alloc_reason, sizeof(r->alloc_reason), "%.390s", r->sampler_advice);
		return;
	}
	if (!*r->library && !sampler_library(r->library, sizeof(r->library)))
		strcpy(r->library, "/path/to/" SAMPLER_LIBRARY);
	snprintf(r->alloc_reason, sizeof(r->alloc_reason),
		 "no sampler of allocations (otel_memory sites) is mapped by %s: start it with "
		 "LD_PRELOAD=%.200s, put one in with --inject, or trace every call with "
		 "--alloc=exact",
		 r->cfg->all ? "any process" : "this process", r->library);
}

int run_sampled_begin(struct run *r, struct err *e)
{
	struct sample_probes_stats stats;
	struct watched *t, *next;
	int rc;

	r->samples = samples_new(((uint64_t)r->cfg->mem_mb << 20) / 4);
	if (!r->samples)
		return err_set(e, -ENOMEM, "out of memory");
	rc = sample_probes_new(r->session, r->dict, r->procs, &r->sample_probes, e);
	if (rc < 0)
		return rc;
	rc = run_inject_begin(r, e);
	if (rc < 0)
		return rc;
	HASH_ITER (hh, r->targets, t, next) {
		rc = sample_probes_add(r->sample_probes, t->pid, e);
		if (rc < 0)
			return rc;
	}
	sample_probes_stats(r->sample_probes, &stats);
	if (!stats.sites && !r->cfg->command && !r->cfg->all && r->cfg->alloc == ALLOC_SAMPLED)
		say_how(r);
	run_say(r, "%u sites of samplers", stats.sites);
	r->thinner.max_percent = r->for_allocs;
	r->tier = ALLOC_TIER_SAMPLED;
	r->alloc_from_ns = run_now_ns();
	session_gate_alloc(r->session, true);
	return 0;
}

int run_sampled_instead(struct run *r, struct err *e)
{
	if (!r->may_sample) {
		r->partial |= r->cfg->alloc_asked;
		return 0;
	}
	snprintf(
		r->alloc_reason, sizeof(r->alloc_reason),
		"exact tracing of %s allocations a second would cost about %.0f %% of a CPU (limit "
		"%.3g %%), so the process's own sampler is listened to; --alloc=exact forces it",
		unit_count((int64_t)r->calls_per_s).s, r->cost_percent, r->cfg->max_overhead);
	return run_sampled_begin(r, e);
}

void run_sampled_look(struct run *r, pid_t pid)
{
	if (!run_sampling_allocs(r))
		return;
	sample_probes_add(r->sample_probes, pid, NULL);
	run_inject_look(r, pid);
}

void run_on_sample(void *ctx, const struct ms_sample_rec *rec)
{
	struct run *r = ctx;

	if (r->samples)
		r->oom |= samples_take(r->samples, rec) < 0;
}

static bool is_gone(void *ctx, const struct ms_proc *proc)
{
	struct run *r = ctx;

	return ingest_gone(r->ingest, proc);
}

void run_sampled_sweep(struct run *r)
{
	samples_sweep(r->samples, is_gone, r);
}

static bool none_told(const struct run *r)
{
	struct samples_stats stats;

	samples_stats(r->samples, &stats);
	return !stats.alloc.samples;
}

/* Detaches, and says what could not be heard. */
void run_sampled_stop(struct run *r)
{
	struct sample_probes_stats *stats = &r->sampler;

	if (!r->sample_probes)
		return;
	sample_probes_stats(r->sample_probes, stats);
	sample_probes_free(TAKE_PTR(r->sample_probes));
	if (*stats->unheard && !*r->sampler_advice &&
	    (!stats->sites || r->cfg->alloc == ALLOC_SAMPLED))
		run_note(r, !stats->sites, "%s", stats->unheard);
	if (stats->assumed)
		run_note(
			r, false,
			"the program is stripped, so what its runtime.MemProfileRate is cannot be read: "
			"Go's default of 512 KiB is assumed");
	if (stats->failed)
		run_note(r, true, "%u sites of samplers could not be probed: %s", stats->failed,
			 stats->failed_why);
	if (stats->sites && !(*r->sampler_advice && none_told(r))) {
		if (r->cfg->alloc == ALLOC_SAMPLED)
			*r->alloc_reason = '\0';
		return;
	}
	r->tier = ALLOC_TIER_OFF;
	r->partial = true;
	if (r->cfg->command)
		snprintf(
			r->alloc_reason, sizeof(r->alloc_reason),
			"no allocation was sampled: the command does not load what LD_PRELOAD names; "
			"it is a static program, or one with other privileges (--alloc=exact needs "
			"no library)");
	else
		say_how(r);
}

static void sampled_end_early(struct run *r)
{
	session_gate_alloc(r->session, false);
	run_inject_end(r);
	run_drain(r, NULL);
	r->alloc_to_ns = run_now_ns();
	run_sampled_stop(r);
	r->partial |= r->cfg->alloc_asked;
	snprintf(r->alloc_reason, sizeof(r->alloc_reason),
		 "ended after %.1f s: its samples alone began to cost more than %.3g %% of a CPU; "
		 "a higher rate costs less, --max-overhead raises the limit",
		 (double)(r->alloc_to_ns - session_start_ns(r->session)) / 1e9,
		 r->cfg->max_overhead);
}

void run_sampled_govern(struct run *r, uint64_t now_ns)
{
	uint64_t stats[MS_N_STATS];
	enum thinner_says says;

	if (!run_sampling_allocs(r))
		return;
	drain_stats(r->drain, stats);
	says = thinner_tick(&r->thinner, now_ns, stats[STAT_SAMPLE_ALLOCS],
			    stats[STAT_SAMPLE_ALLOCS] - stats[STAT_SAMPLE_THINNED],
			    stats[STAT_SAMPLE_FREES]);
	if (says == THINNER_CHANGED)
		session_thin(r->session, r->thinner.shift);
	else if (says == THINNER_STOP)
		sampled_end_early(r);
}

/* --- in the end ------------------------------------------------------------------------------- */

/* Twice as large as needed for none of the sums of `total` to overflow. */
static double unit_for(double total)
{
	return total > 0x1p60 ? exp2(ceil(log2(total / 0x1p60))) : 1;
}

static int add_total(void *ctx, const struct samples_row *row)
{
	struct run *r = ctx;

	estimate_merge(&r->sampled, &row->alloc);
	estimate_merge(&r->sampled_live, &row->live);
	return 0;
}

static void put_sums(const struct spread *spread, const struct estimate *est, int64_t *values)
{
	values[SPREAD_V] = est->v > 0 ? (int64_t)(est->v / spread->v_unit) : 0;
	values[SPREAD_VC] = est->vc > 0 ? (int64_t)(est->vc / spread->vc_unit) : 0;
	values[SPREAD_SAMPLES] = (int64_t)est->samples;
	values[SPREAD_SEEN] = (int64_t)est->seen_bytes;
}

static int add_row(void *ctx, const struct samples_row *row)
{
	struct run *r = ctx;
	int64_t values[4] = { llround(row->alloc.blocks), llround(row->alloc.bytes),
			      llround(row->live.blocks), llround(row->live.bytes) };
	int64_t sums[2 * SPREAD_TYPES];
	labels_id labels;
	stack_id stack;
	int rc = ingest_estimate(r->ingest, &row->key, values, row->alloc.samples, &stack, &labels);

	if (rc < 0)
		return rc;
	put_sums(&r->spread, &row->alloc, sums);
	put_sums(&r->spread, &row->live, sums + SPREAD_TYPES);
	return profile_add(r->spread.sums, stack, labels, sums);
}

int run_sampled_finish(struct run *r, struct err *e)
{
	static const struct value_type types[2 * SPREAD_TYPES] = {
		{ "v", "" },      { "vc", "" },      { "samples", "" },      { "seen", "" },
		{ "live_v", "" }, { "live_vc", "" }, { "live_samples", "" }, { "live_seen", "" },
	};

	run_sampled_sweep(r);
	samples_each(r->samples, add_total, r);
	r->spread.v_unit = unit_for(r->sampled.v);
	r->spread.vc_unit = unit_for(r->sampled.vc);
	r->spread.sums = profile_new(r->dict, types, 2 * SPREAD_TYPES);
	if (!r->spread.sums || samples_each(r->samples, add_row, r) < 0)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	return 0;
}

/* --- facts ------------------------------------------------------------------------------------ */

static struct summary_interval interval_fact(const struct estimate *est)
{
	struct interval i = estimate_interval(est);

	return (struct summary_interval){ (int64_t)i.low, (int64_t)i.high, est->samples };
}

static void name_add(struct run *r, const char *before, const char *name)
{
	size_t len = strlen(r->sampler_name);

	snprintf(r->sampler_name + len, sizeof(r->sampler_name) - len, "%s%s%s", len ? ", " : "",
		 before, name);
}

/* Those that have told of something; of those that could have, if none has. */
static void name_samplers(struct run *r, uint64_t told)
{
	const char *last = "";

	if (!told)
		told = r->sampler.sources;
	*r->sampler_name = '\0';
	if (told & 1 && r->sampler.own)
		name_add(r, "",
			 r->injected ? "libmemscope-alloc (injected)"
				     : "libmemscope-alloc (preload)");
	if (told & 1 && *r->sampler.other)
		name_add(r, "otel_memory in ", r->sampler.other);
	for (uint32_t i = 0; i < n_samplers; i++) {
		if (!(told >> (i + 1) & 1) || strcmp(samplers[i].name, last) == 0)
			continue;
		last = samplers[i].name;
		name_add(r, "", last);
	}
}

void run_sampled_facts(struct run *r, struct summary_alloc *a)
{
	struct samples_stats stats;
	uint64_t counters[MS_N_STATS];

	samples_stats(r->samples, &stats);
	drain_stats(r->drain, counters);
	if (counters[STAT_SAMPLE_THINNED])
		run_note(
			r, false,
			"%s of %s samples were left out at random, to keep within --max-overhead "
			"(%.3g %% of a CPU); the others weigh as much more, and the intervals are wider",
			unit_count((int64_t)counters[STAT_SAMPLE_THINNED]).s,
			unit_count((int64_t)counters[STAT_SAMPLE_ALLOCS]).s, r->cfg->max_overhead);
	name_samplers(r, stats.by_source);
	a->sampler = r->sampler_name;
	a->rate = llround(stats.rate);
	a->objects = (uint64_t)llround(r->sampled.blocks);
	a->bytes = (uint64_t)llround(r->sampled.bytes);
	a->live_objects = (uint64_t)llround(r->sampled_live.blocks);
	a->live_bytes = (uint64_t)llround(r->sampled_live.bytes);
	a->bytes_interval = interval_fact(&r->sampled);
	a->live_interval = interval_fact(&r->sampled_live);
	a->freed_samples = stats.frees;
	a->earlier_frees = stats.unknown_frees;
	a->untracked = stats.untracked;
	a->untold = stats.untold;
	if (stats.ended)
		run_note(
			r, false,
			"%s samples (%s) went with a child that ended or an image that an exec replaced: "
			"they are not in heap",
			unit_count((int64_t)stats.ended).s,
			unit_bytes((int64_t)stats.ended_bytes).s);
	if (stats.reused)
		run_note(r, true,
			 "%s samples were dropped because their address came again: their free was "
			 "not told",
			 unit_count((int64_t)stats.reused).s);
	if (stats.full)
		run_note(
			r, true,
			"the table of live samples was full: %s of them are in alloc but not in heap; "
			"raise --mem (now %u MiB) or --alloc-rate",
			unit_count((int64_t)stats.full).s, r->cfg->mem_mb);
}

void run_sampled_free(struct run *r)
{
	run_inject_free(r);
	sample_probes_free(r->sample_probes);
	samples_free(r->samples);
	profile_free(r->spread.sums);
	free(r->preload_before);
}
