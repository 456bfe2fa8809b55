/*
 * Sampled allocations in a run: the library for a command that is started, the sites of a process
 * that runs, and what its samples say in the end.
 */
#include "base/units.h"
#include "collect/probes/samplers.h"
#include "model/about.h"
#include "run/alloc/alloc.h"
#include "run/sampler.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define RATE_VAR "MEMSCOPE_ALLOC_RATE"
#define SWEEP_NS 5000000000ULL /* at least, between two sweeps of the live samples */

/* In the environment of the command, and of nothing else that we start: back in its place after. */
int sampled_preload(struct alloc *al, struct err *e)
{
	const char *before = getenv("LD_PRELOAD");
	char value[2 * PATH_MAX], rate[32];

	if (!sampler_library(al->library, sizeof(al->library)))
		return err_set(e, -ENOENT,
			       "cannot find " SAMPLER_LIBRARY
			       " beside memscope or in ../lib/memscope: `make` and `make install` "
			       "put it there");
	if (strpbrk(al->library, ": "))
		return err_set(
			e, -EINVAL,
			"the dynamic loader takes no LD_PRELOAD with a blank or a colon in it, "
			"as in '%s'",
			al->library);
	if (before && !*before)
		before = NULL;
	al->preload_before = before ? strdup(before) : NULL;
	al->preloaded = true;
	snprintf(value, sizeof(value), "%s%s%s", al->library, before ? ":" : "",
		 before ? before : "");
	snprintf(rate, sizeof(rate), "%llu", (unsigned long long)al->run->cfg->alloc_rate);
	if (setenv("LD_PRELOAD", value, 1) < 0 || setenv(RATE_VAR, rate, 1) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

void sampled_preloaded(struct alloc *al)
{
	if (!al->preloaded)
		return;
	al->preloaded = false;
	if (al->preload_before)
		setenv("LD_PRELOAD", al->preload_before, 1);
	else
		unsetenv("LD_PRELOAD");
	free(TAKE_PTR(al->preload_before));
	unsetenv(RATE_VAR);
}

/* What to do about a process that has no sampler. */
static void say_how(struct alloc *al)
{
	if (*al->sampler_advice) {
		snprintf(al->reason, sizeof(al->reason), "%.390s", al->sampler_advice);
		return;
	}
	if (!*al->library && !sampler_library(al->library, sizeof(al->library)))
		strcpy(al->library, "/path/to/" SAMPLER_LIBRARY);
	snprintf(al->reason, sizeof(al->reason),
		 "no sampler of allocations (otel_memory sites) is mapped by %s: start it with "
		 "LD_PRELOAD=%.200s, put one in with --inject, or trace every call with "
		 "--alloc=exact",
		 al->run->cfg->all ? "any process" : "this process", al->library);
}

struct add_sites {
	struct alloc *al;
	int rc;
	struct err *e;
};

static void add_sites(void *ctx, const struct target *t)
{
	struct add_sites *add = ctx;

	if (add->rc >= 0)
		add->rc = sample_probes_add(add->al->sample_probes, t->pid, add->e);
}

int sampled_start(struct alloc *al, struct err *e)
{
	struct sample_probes_stats stats;
	struct add_sites add = { al, 0, e };
	int rc;

	al->samples = samples_new(((uint64_t)al->run->cfg->mem_mb << 20) / 4);
	if (!al->samples)
		return err_set(e, -ENOMEM, "out of memory");
	rc = sample_probes_new(al->run->session, al->run->dict, al->run->procs, &al->sample_probes,
			       e);
	if (rc < 0)
		return rc;
	rc = injections_begin(al, e);
	if (rc < 0)
		return rc;
	targets_each(al->run, add_sites, &add);
	if (add.rc < 0)
		return add.rc;
	sample_probes_stats(al->sample_probes, &stats);
	if (!stats.sites && !al->run->cfg->command && !al->run->cfg->all &&
	    al->run->cfg->alloc == ALLOC_SAMPLED)
		say_how(al);
	run_say(al->run, "%u sites of samplers", stats.sites);
	al->sample_throttle.max_percent = al->limit_percent;
	alloc_set_tier(al, ALLOC_TIER_SAMPLED);
	alloc_begun(al);
	al->added_ns = now_ns();
	session_gate_alloc(al->run->session, true);
	return 0;
}

int sampled_instead(struct alloc *al, struct err *e)
{
	if (!al->may_sample) {
		al->run->notes.partial |= al->run->cfg->alloc_asked;
		return 0;
	}
	snprintf(
		al->reason, sizeof(al->reason),
		"exact tracing of %s allocations a second would cost about %.0f %% of a CPU (limit "
		"%.3g %%), so the process's own sampler is listened to; --alloc=exact forces it",
		unit_count((int64_t)al->calls_per_s).s, al->cost_percent,
		al->run->cfg->max_overhead);
	return sampled_start(al, e);
}

static void look(struct alloc *al, pid_t pid)
{
	sample_probes_add(al->sample_probes, pid, NULL);
	injections_look(al, pid);
}

static void process(struct alloc *al, const struct process_event *event)
{
	if (event->kind == PROCESS_MEMBER || (event->kind == PROCESS_MAPPED && event->target) ||
	    (event->kind == PROCESS_LISTED && al->run->cfg->all))
		look(al, event->pid);
}

enum drain_says sampled_on_record(void *ctx, const void *rec, const void *more)
{
	struct alloc *al = ctx;

	if (al->samples)
		al->run->oom |= samples_take(al->samples, rec) < 0;
	(void)more;
	return DRAIN_TAKEN;
}

static void sweep(struct alloc *al)
{
	samples_sweep(al->samples, alloc_image_gone, al);
}

static void drained(struct alloc *al, uint64_t now)
{
	if (now < al->next_sweep_ns)
		return;
	sweep(al);
	al->ended_since_sweep = false;
	al->next_sweep_ns = now + SWEEP_NS;
}

static int64_t live(struct alloc *al)
{
	return samples_live_bytes(al->samples);
}

static double total(struct alloc *al)
{
	struct samples_stats stats;

	if (!al->samples)
		return NAN;
	samples_stats(al->samples, &stats);
	return stats.alloc.bytes;
}

static double percent(struct alloc *al, const struct cost_window *w)
{
	(void)w;
	return al->sample_throttle.recent;
}

static void limit(struct alloc *al, double max_percent)
{
	al->sample_throttle.max_percent = max_percent;
}

static bool none_told(const struct alloc *al)
{
	struct samples_stats stats;

	samples_stats(al->samples, &stats);
	return !stats.alloc.samples;
}

/* Detaches, and says what could not be heard. */
void sampled_stop(struct alloc *al)
{
	struct sample_probes_stats *stats = &al->sampler;

	if (!al->sample_probes)
		return;
	sample_probes_stats(al->sample_probes, stats);
	sample_probes_free(TAKE_PTR(al->sample_probes));
	if (*stats->unheard && !*al->sampler_advice &&
	    (!stats->sites || al->run->cfg->alloc == ALLOC_SAMPLED))
		run_note(al->run, !stats->sites, "%s", stats->unheard);
	if (stats->assumed)
		run_note(
			al->run, false,
			"the program is stripped, so what its runtime.MemProfileRate is cannot be read: "
			"Go's default of 512 KiB is assumed");
	if (stats->failed)
		run_note(al->run, true, "%u sites of samplers could not be probed: %s",
			 stats->failed, stats->failed_why);
	if (stats->unread)
		run_note(al->run, true, "%u files could not be searched for samplers: %s",
			 stats->unread, stats->unread_why);
	if (stats->sites && !(*al->sampler_advice && none_told(al))) {
		if (al->run->cfg->alloc == ALLOC_SAMPLED)
			*al->reason = '\0';
		return;
	}
	alloc_set_tier(al, ALLOC_TIER_OFF);
	al->run->notes.partial = true;
	if (al->run->cfg->command)
		snprintf(
			al->reason, sizeof(al->reason),
			"no allocation was sampled: the command does not load what LD_PRELOAD names; "
			"it is a static program, or one with other privileges (--alloc=exact needs "
			"no library)");
	else
		say_how(al);
}

static void sampled_end_early(struct alloc *al)
{
	session_gate_alloc(al->run->session, false);
	injections_end(al);
	pipeline_drain(al->run, NULL);
	alloc_ended(al, now_ns());
	sampled_stop(al);
	al->run->notes.partial |= al->run->cfg->alloc_asked;
	snprintf(al->reason, sizeof(al->reason),
		 "ended after %.1f s: its samples alone began to cost more than %.3g %% of a CPU; "
		 "a higher rate costs less, --max-overhead raises the limit",
		 (double)(al->run->alloc.to_ns - session_start_ns(al->run->session)) / 1e9,
		 al->run->cfg->max_overhead);
}

static void tick(struct alloc *al, uint64_t now)
{
	uint64_t stats[N_STATS];
	enum sample_throttle_says says;
	struct sample_probes_stats probes = { 0 };

	if (al->sample_probes)
		sample_probes_stats(al->sample_probes, &probes);
	if (probes.pending)
		targets_each(al->run, add_sites, &(struct add_sites){ al, 0, NULL });
	drain_stats(al->run->drain, stats);
	says = sample_throttle_tick(&al->sample_throttle, now, stats[STAT_SAMPLE_ALLOCS],
				    stats[STAT_SAMPLE_ALLOCS] - stats[STAT_SAMPLE_THROTTLED],
				    stats[STAT_SAMPLE_FREES]);
	if (says == SAMPLE_THROTTLE_CHANGED)
		session_thin(al->run->session, al->sample_throttle.shift);
	else if (says == SAMPLE_THROTTLE_STOP)
		sampled_end_early(al);
}

/* --- into the profiles ------------------------------------------------------------------------ */

/* What is not in them yet, live bytes apart. */
static int add_new(struct alloc *al, struct samples_row *row, const int64_t values[4],
		   stack_id *ret_stack, labels_id *ret_labels)
{
	struct estimate since = row->alloc;
	struct value_error errors[2];
	int64_t more[4];
	int rc;

	for (int i = 0; i < 4; i++)
		more[i] = values[i] - row->added[i];
	rc = ingest_estimate(al->run->ingest, row->key, more,
			     row->alloc.samples - row->added_alloc.samples, ret_stack, ret_labels);
	if (rc < 0)
		return rc;
	if (more[1] > 0)
		alloc_tell(al, ret_stack, (double)more[1], al->added_ns,
			   al->run->clock.end_ns ? al->run->clock.end_ns : now_ns());
	memcpy(row->added, values, sizeof(row->added));
	estimate_less(&since, &row->added_alloc);
	row->added_alloc = row->alloc;
	estimate_errors(&since, &errors[0], &errors[1]);
	return since.samples ? alloc_add_errors(al, *ret_stack, *ret_labels, errors, NULL) : 0;
}

static int add_row_now(void *ctx, struct samples_row *row)
{
	const int64_t values[4] = { llround(row->alloc.blocks), llround(row->alloc.bytes), 0, 0 };
	struct alloc *al = ctx;
	labels_id labels;
	stack_id stack;
	int rc;

	if (row->alloc.samples == row->added_alloc.samples)
		return 0;
	rc = add_new(al, row, values, &stack, &labels);
	return rc == -EAGAIN ? 0 : rc; /* with the next, once its stack is there */
}

/* What lives of it now, to the series. */
static int tell_lives(void *ctx, struct samples_row *row)
{
	struct alloc *al = ctx;
	const struct alloc_state *to = &al->run->alloc;
	struct proc_id proc = event_proc(row->key);
	int64_t live = llround(row->live.bytes);
	labels_id labels;
	stack_id stack;

	if ((row->alloc.samples == row->told_samples && live == row->told_live) ||
	    ingest_gone(al->run->ingest, &proc) ||
	    !ingest_place(al->run->ingest, row->key, &stack, &labels))
		return 0;
	to->lives(to->lives_ctx, &proc, stack, (int64_t)(row->alloc.samples - row->told_samples),
		  live - row->told_live, 0);
	row->told_samples = row->alloc.samples;
	row->told_live = live;
	return 0;
}

static void tell_old(void *ctx, const struct samples_row *row, uint64_t born_ns, uint64_t bytes)
{
	struct alloc *al = ctx;
	const struct alloc_state *to = &al->run->alloc;
	struct proc_id proc = event_proc(row->key);
	labels_id labels;
	stack_id stack;

	if (!ingest_gone(al->run->ingest, &proc) &&
	    ingest_place(al->run->ingest, row->key, &stack, &labels))
		to->lives(to->lives_ctx, &proc, stack, 1, (int64_t)bytes, born_ns);
}

static int add(struct alloc *al, bool boundary)
{
	int rc;

	ingest_between(al->run->ingest, al->added_ns, now_ns());
	rc = al->samples ? samples_each(al->samples, add_row_now, al) : 0;
	if (rc == 0 && al->samples && al->run->alloc.lives)
		rc = samples_each(al->samples, tell_lives, al);

	(void)boundary;
	al->added_ns = now_ns();
	return rc;
}

struct live_now {
	struct alloc *al;
	struct profile *heap; /* NULL: they are in it */
	struct estimate live;
};

static int add_live(void *ctx, struct samples_row *row)
{
	const int64_t values[4] = { 0, 0, llround(row->live.blocks), llround(row->live.bytes) };
	struct proc_id proc = event_proc(row->key);
	struct live_now *now = ctx;
	struct value_error errors[2];
	labels_id labels;
	stack_id stack;
	int rc;

	if (!row->live.samples || ingest_gone(now->al->run->ingest, &proc))
		return 0;
	estimate_merge(&now->live, &row->live);
	if (!now->heap || !ingest_place(now->al->run->ingest, row->key, &stack, &labels))
		return 0;
	estimate_errors(&row->live, &errors[0], &errors[1]);
	rc = profile_add(now->heap, stack, labels, values);
	for (uint32_t i = 0; i < 2 && rc == 0; i++)
		rc = profile_add_error(now->heap, stack, labels, 2 + i, &errors[i]);
	return rc;
}

static int snapshot(struct alloc *al, struct profile_since *since, struct profile_now *now)
{
	bool in_it = now->last || since->no_live;
	struct live_now live = { al, in_it ? NULL : now->profiles[PROFILE_HEAP], { 0 } };
	struct samples_stats stats;
	struct estimate est;
	struct interval all, in_use;
	int rc;

	if (!al->samples)
		return 0;
	rc = samples_each(al->samples, add_live, &live);
	samples_stats(al->samples, &stats);
	est = stats.alloc;
	estimate_less(&est, &since->begin.sampled);
	since->begin.sampled = stats.alloc;
	all = estimate_interval(&est);
	in_use = estimate_interval(&live.live);
	for (int i = 0; i < profile_kinds(); i++) {
		if (profile_rows[i].source != SOURCE_ALLOC)
			continue;
		now->period[i] = stats.rate > 1 ? llround(stats.rate) : 1;
		snprintf(
			now->comment[i], sizeof(now->comment[i]),
			"%s%llu samples of allocations, 95 %% intervals: alloc_space %lld to %lld, "
			"inuse_space %lld to %lld",
			about_prefix(ABOUT_ESTIMATE), (unsigned long long)est.samples,
			(long long)all.low, (long long)all.high, (long long)in_use.low,
			(long long)in_use.high);
	}
	return rc;
}

/* --- in the end ------------------------------------------------------------------------------- */

static int add_total(void *ctx, struct samples_row *row)
{
	struct alloc *al = ctx;

	estimate_merge(&al->sampled, &row->alloc);
	estimate_merge(&al->sampled_live, &row->live);
	return 0;
}

static int add_row(void *ctx, struct samples_row *row)
{
	struct alloc *al = ctx;
	int64_t values[4] = { llround(row->alloc.blocks), llround(row->alloc.bytes),
			      llround(row->live.blocks), llround(row->live.bytes) };
	struct value_error live[2];
	labels_id labels;
	stack_id stack;
	int rc = add_new(al, row, values, &stack, &labels);

	if (rc < 0)
		return rc;
	estimate_errors(&row->live, &live[0], &live[1]);
	return alloc_add_errors(al, stack, labels, NULL, live);
}

static int finish(struct alloc *al, struct err *e)
{
	sweep(al);
	if (al->run->alloc.lives)
		samples_each_live(al->samples, tell_old, al);
	samples_each(al->samples, add_total, al);
	ingest_between(al->run->ingest, al->added_ns,
		       al->run->clock.end_ns ? al->run->clock.end_ns : now_ns());
	if (samples_each(al->samples, add_row, al) < 0)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	return 0;
}

/* --- facts ------------------------------------------------------------------------------------ */

static struct summary_interval interval_fact(const struct estimate *est)
{
	struct interval i = estimate_interval(est);

	return (struct summary_interval){ (int64_t)i.low, (int64_t)i.high, est->samples };
}

static void name_add(struct alloc *al, const char *before, const char *name)
{
	size_t len = strlen(al->sampler_name);

	snprintf(al->sampler_name + len, sizeof(al->sampler_name) - len, "%s%s%s", len ? ", " : "",
		 before, name);
}

/* Those that have told of something; of those that could have, if none has. */
static void name_samplers(struct alloc *al, uint64_t told)
{
	const char *last = "";

	if (!told)
		told = al->sampler.sources;
	*al->sampler_name = '\0';
	if (told & 1 && al->sampler.own)
		name_add(al, "",
			 al->injected ? "libmemscope-alloc (injected)"
				      : "libmemscope-alloc (preload)");
	if (told & 1 && *al->sampler.other)
		name_add(al, "otel_memory in ", al->sampler.other);
	for (uint32_t i = 0; i < n_samplers; i++) {
		if (!(told >> (i + 1) & 1) || strcmp(samplers[i].name, last) == 0)
			continue;
		last = samplers[i].name;
		name_add(al, "", last);
	}
}

static void report(struct alloc *al, struct summary_alloc *a)
{
	struct samples_stats stats;
	uint64_t counters[N_STATS];

	samples_stats(al->samples, &stats);
	drain_stats(al->run->drain, counters);
	if (counters[STAT_SAMPLE_THROTTLED])
		run_note(
			al->run, false,
			"%s of %s samples were left out at random, to keep within --max-overhead "
			"(%.3g %% of a CPU); the others are weighted up, and the intervals are wider",
			unit_count((int64_t)counters[STAT_SAMPLE_THROTTLED]).s,
			unit_count((int64_t)counters[STAT_SAMPLE_ALLOCS]).s,
			al->run->cfg->max_overhead);
	if (al->sampler.counters)
		run_note(
			al->run, false,
			"objects of Java are sampled where a thread needs a new buffer (TLAB), or allocates without one: a sample "
			"stands for all that its thread has allocated since the last one, so sums are right to half a buffer a thread, and sites "
			"within their intervals; which objects are still alive is not known, and memory of malloc is not "
			"among them (--alloc=exact traces that instead)");
	name_samplers(al, stats.by_source);
	a->sampler = al->sampler_name;
	a->rate = llround(stats.rate);
	a->objects = (uint64_t)llround(al->sampled.blocks);
	a->bytes = (uint64_t)llround(al->sampled.bytes);
	a->live_objects = (uint64_t)llround(al->sampled_live.blocks);
	a->live_bytes = (uint64_t)llround(al->sampled_live.bytes);
	a->bytes_interval = interval_fact(&al->sampled);
	a->live_interval = interval_fact(&al->sampled_live);
	a->freed_samples = stats.frees;
	a->earlier_frees = stats.unknown_frees;
	a->untracked = stats.untracked;
	a->unreported = stats.unreported;
	if (stats.ended)
		run_note(
			al->run, false,
			"%s samples (%s) ended with a child process or an image that an exec replaced: they are "
			"not in heap",
			unit_count((int64_t)stats.ended).s,
			unit_bytes((int64_t)stats.ended_bytes).s);
	if (stats.reused)
		run_note(al->run, true,
			 "%s samples were dropped: their address was reused before a free was seen",
			 unit_count((int64_t)stats.reused).s);
	if (stats.full)
		run_note(
			al->run, true,
			"the table of live samples was full: %s of them are in alloc but not in heap; "
			"raise --mem (now %u MiB) or --alloc-rate",
			unit_count((int64_t)stats.full).s, al->run->cfg->mem_mb);
	alloc_site_intervals(al, false, a);
	alloc_site_intervals(al, true, a);
}

void sampled_free(struct alloc *al)
{
	injections_free(al);
	sample_probes_free(al->sample_probes);
	samples_free(al->samples);
	sampled_preloaded(al);
}

const struct alloc_tier_ops sampled_ops = {
	.process = process,
	.tick = tick,
	.drained = drained,
	.percent = percent,
	.limit = limit,
	.live_bytes = live,
	.total_bytes = total,
	.add = add,
	.adds_rows = true,
	.snapshot = snapshot,
	.finish = finish,
	.report = report,
};
