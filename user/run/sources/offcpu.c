/*
 * Off-CPU in a run: whether the stack of every wait is taken, how sure the profile is where it is not, and
 * what of waits that go on belongs before a moment at which a profile is asked for.
 */
#include "analyse/lock_chain.h"
#include "analyse/sample_sites.h"
#include "analyse/sites.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/units.h"
#include "collect/overhead/costs.h"
#include "collect/overhead/wait_sampler.h"
#include "collect/stream/wait_cut.h"
#include "model/estimate.h"
#include "run/component.h"
#include "run/pipeline.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define WAIT_ROWS 30 /* idle ones among them are shown apart */

/* Value types of the profile (collect/session/sources.c). */
enum { BLOCKED, BLOCKED_NS, RUNNABLE, RUNNABLE_NS };

/* A mean of fewer runs says little. */
#define RUNS_ENOUGH 100
/* A raw tracepoint with an empty program, less what that is said to take (Linux 6.18, virtual machine); what
 * the program takes for a process that is no target, at most. */
#define OTHER_NS 100.0
/* What a stack sample is taken to cost, whatever is measured. */
#define SAMPLE_LEAST_NS 500.0
#define SAMPLE_MOST_NS  (2.0 * LOOK_USUAL_NS)

/* Waits of one stack that were looked at and did not have the stack that was expected, and of the one
 * that was expected. */
struct uncertain {
	struct event_key key;
	stack_id stack; /* 0: not come yet */
	labels_id labels;
	struct estimate sum;
	UT_hash_handle hh;
};

struct offcpu {
	struct run *run;
	struct wait_sampler *sampler; /* NULL: the stack of every wait is taken */
	struct uncertain *uncertain;
	struct estimate moved; /* all, once */
	struct spread spread;  /* of the profile's blocked time */
	struct wait_cut *cut;
	struct site_row waits[WAIT_ROWS], under_mutex;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU];
}

/* For the run as a whole: of a service, which may be at work for months, there are windows alone. */
static void uncertain_add(struct offcpu *w, const struct event_key *key, const struct estimate *one)
{
	struct uncertain *u;

	if (w->run->cfg->serve)
		return;
	HASH_FIND(hh, w->uncertain, key, sizeof(*key), u);
	if (!u) {
		u = calloc(1, sizeof(*u));
		if (u) {
			u->key = *key;
			HASH_ADD(hh, w->uncertain, key, sizeof(u->key), u);
		}
		if (!u || !hash_added(u)) {
			free(u);
			w->run->oom = true;
			return;
		}
	}
	estimate_merge(&u->sum, one);
}

static enum drain_says on_reassigned(void *ctx, const void *record, const void *more)
{
	const struct drain_reassigned *waits = record;
	struct estimate one = { 0 };
	struct offcpu *w = ctx;

	(void)more;
	estimate_add(&one, waits->blocked_ns, waits->blocked_ns << waits->shift);
	one.samples = 1;
	estimate_merge(&w->moved, &one);
	uncertain_add(w, &waits->key, &one);
	one.vc = -one.vc;
	uncertain_add(w, &waits->from, &one);
	return DRAIN_TAKEN;
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	const struct offcpu *w = self;

	(void)e;
	opts->wait_sampler = w->run->cfg->waits != WAITS_EXACT;
	return 0;
}

static int open_offcpu(void *self, struct err *e)
{
	struct offcpu *w = self;
	struct run *r = w->run;
	struct err why = { 0 };
	int rc;

	w->cut = wait_cut_new(r->drain, r->dict, r->cfg->wait_max_ns, &r->oom);
	if (!w->cut)
		return err_set(e, -ENOMEM, "out of memory");
	if (r->cfg->waits == WAITS_EXACT)
		return 0;
	rc = wait_sampler_new(r->session, &w->sampler, &why);
	if (rc < 0) {
		if (r->cfg->waits == WAITS_SAMPLED)
			run_note(r, true,
				 "--offcpu=sampled: %s; the stack of every wait is captured",
				 why.msg);
		return 0;
	}
	drain_on(r->drain, DRAIN_REASSIGNED, on_reassigned, w);
	drain_wait_sampler(r->drain, w->sampler);
	wait_sampler_limit(w->sampler, r->cfg->max_overhead);
	if (r->cfg->waits == WAITS_SAMPLED)
		wait_sampler_begin(w->sampler);
	return 0;
}

/* The sampler for who else traces what those threads do. */
static int attach(void *self, struct err *e)
{
	struct offcpu *w = self;

	(void)e;
	w->run->waits.sampler = w->sampler;
	return 0;
}

static void tick(void *self, uint64_t now)
{
	uint64_t stats[N_STATS];
	struct offcpu *w = self;

	if (!w->sampler)
		return;
	drain_stats(w->run->drain, stats);
	wait_sampler_tick(w->sampler, now, stats[STAT_OFFCPU_SWITCHES], stats[STAT_WAIT_SWITCHES],
			  stats[STAT_WAIT_SAMPLES]);
}

/*
 * Of what its switches cost the target, stack samples can be less. What one costs is measured while
 * the stacks of most waits are taken.
 */
static double cost(void *self, struct cost_window *c)
{
	double switches = (double)c->stats[STAT_OFFCPU_SWITCHES], samples, each;
	struct wait_sampler *sampler = ((struct offcpu *)self)->sampler;
	double samples_ns = fmax(c->fixed_ns - 2 * switches * (COST_TRACEPOINT_NS + OTHER_NS), 0);

	if (!sampler)
		return 0;
	samples = switches - (double)c->stats[STAT_WAIT_SWITCHES] +
		  (double)c->stats[STAT_WAIT_SAMPLES];
	/* Where switches without one are few, for their cost is not known as well. */
	if (samples >= RUNS_ENOUGH && samples > switches / 2) {
		each = fmin(samples_ns / samples, SAMPLE_MOST_NS);
		wait_sampler_sample_costs(sampler, fmax(each, SAMPLE_LEAST_NS));
	}
	c->fixed_ns = fmax(c->fixed_ns - samples * wait_sampler_sample_ns(sampler), 0);
	return wait_sampler_percent(sampler);
}

static void limit(void *self, double percent)
{
	struct offcpu *w = self;

	if (w->sampler)
		wait_sampler_limit(w->sampler, percent);
}

/* --- a profile of what there is so far --- */

/* Of one thread and value type. */
struct part {
	int64_t more, less; /* sums of what is above nothing, and of what is below */
};

/*
 * What was reassigned from a stack is an estimate, and can be more than it had: then it has nothing, and
 * the others of its thread have less in proportion, so that what the thread waited in all stays as it was
 * (if that is less than nothing: nothing). By how much is added to `ret_changes`, if it is not NULL. 0 or
 * -ENOMEM.
 */
static int settle(struct profile *p, struct profile *ret_changes)
{
	uint32_t n = profile_n_samples(p), n_types = profile_n_types(p), n_labels = 0;
	_cleanup_(freep) struct part *parts = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (profile_sample(p, i).labels.ix >= n_labels)
			n_labels = profile_sample(p, i).labels.ix + 1;
	parts = calloc((size_t)n_labels * n_types + 1, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);

		for (uint32_t j = 0; j < n_types; j++) {
			struct part *part = &parts[(size_t)s.labels.ix * n_types + j];

			part->more += s.values[j] > 0 ? s.values[j] : 0;
			part->less -= s.values[j] < 0 ? s.values[j] : 0;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);
		int64_t change[PROFILE_MAX_TYPES] = { 0 };
		bool any = false;

		for (uint32_t j = 0; j < n_types; j++) {
			const struct part *part = &parts[(size_t)s.labels.ix * n_types + j];

			if (s.values[j] < 0 || part->less >= part->more)
				change[j] = -s.values[j];
			else if (part->less > 0)
				change[j] = -(int64_t)((double)s.values[j] * (double)part->less /
						       (double)part->more);
			any |= change[j] != 0;
		}
		if (any && profile_add(p, s.stack, s.labels, change) < 0)
			return -ENOMEM;
		if (any && ret_changes && profile_add(ret_changes, s.stack, s.labels, change) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* While its stack is known: one that is not used is forgotten (old_stacks.h). */
static void drained(void *self, uint64_t now_ns)
{
	struct offcpu *w = self;

	(void)now_ns;
	for (struct uncertain *u = w->uncertain; u; u = u->hh.next)
		if (!u->stack.ix)
			ingest_place(w->run->ingest, &u->key, &u->stack, &u->labels);
}

static int boundary(void *self, bool after, struct err *e)
{
	return wait_cut_boundary(((struct offcpu *)self)->cut, after, e);
}

static int snapshot(void *self, struct profile_since *since, struct profile_now *now, struct err *e)
{
	struct offcpu *w = self;

	return wait_cut(w->cut, w->run->ingest, &now->profiles[PROFILE_OFFCPU], &since->open,
			now->last, w->sampler ? settle : NULL, e);
}

/* --- in the end ------------------------------------------------------------------------------- */

static int finish(void *self, struct err *e)
{
	static const struct value_type types[SPREAD_TYPES] = {
		{ "v", "count" }, { "vc", "count" }, { "samples", "count" }, { "seen", "count" }
	};
	struct offcpu *w = self;
	struct spread *spread = &w->spread;
	struct run *r = w->run;
	struct uncertain *u, *next;

	if (!w->sampler)
		return 0;
	if (settle(r->profiles[PROFILE_OFFCPU], NULL) < 0)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	spread->v_unit = spread_unit(2 * w->moved.v);
	spread->vc_unit = spread_unit(2 * w->moved.vc);
	spread->sums = profile_new(r->dict, types, SPREAD_TYPES);
	if (!spread->sums)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	HASH_ITER (hh, w->uncertain, u, next) {
		const int64_t values[SPREAD_TYPES] = {
			[SPREAD_V] = (int64_t)(u->sum.v / spread->v_unit),
			[SPREAD_VC] = (int64_t)(u->sum.vc / spread->vc_unit),
			[SPREAD_SAMPLES] = (int64_t)u->sum.samples,
		};
		const struct value_error error = { .samples = (double)u->sum.samples,
						   .unseen = INFINITY,
						   .v = u->sum.v,
						   .vc = u->sum.vc };
		struct profile *p = r->profiles[PROFILE_OFFCPU];
		int blocked = profile_find_type(p, "blocked/nanoseconds");

		if (!u->stack.ix && !ingest_place(r->ingest, &u->key, &u->stack, &u->labels))
			continue;
		if (profile_add(spread->sums, u->stack, u->labels, values) < 0 ||
		    profile_add_error(p, u->stack, u->labels, (uint32_t)blocked, &error) == -ENOMEM)
			return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	}
	return 0;
}

static void report_sampling(struct offcpu *w, const uint64_t *stats, struct run_summary *to)
{
	to->offcpu.switches = stats[STAT_OFFCPU_SWITCHES];
	if (!w->sampler || (!wait_sampler_begun(w->sampler) && !stats[STAT_WAIT_SWITCHES]))
		return;
	to->offcpu.sampled = true;
	to->offcpu.sample_gap_s = (double)wait_sampler_gap_ns(w->sampler) / 1e9;
	to->offcpu.wait_sampler_switches = stats[STAT_WAIT_SWITCHES];
	to->offcpu.stacks_sampled = stats[STAT_WAIT_SAMPLES];
	to->offcpu.reassigned = stats[STAT_WAIT_REASSIGNED];
	if (w->spread.sums && w->moved.samples)
		sample_waits(&w->spread, w->waits, to->offcpu.n_waits);
}

/* What those who hold the lock that is waited for longest wait for themselves. */
static void report_chain(struct offcpu *w, struct run_summary *to)
{
	uint32_t i = 0;

	while (i < to->offcpu.n_waits && w->waits[i].role != WAIT_ROLE_MUTEX)
		i++;
	if (i == to->offcpu.n_waits)
		return;
	to->offcpu.mutex = &w->waits[i];
	if (lock_chain_find(w->run->profiles[PROFILE_OFFCPU], BLOCKED_NS, &w->waits[i],
			    &w->under_mutex) == 1)
		to->offcpu.under_mutex = &w->under_mutex;
}

static void report(void *self, struct run_summary *to)
{
	struct offcpu *w = self;
	const struct profile *p = w->run->profiles[PROFILE_OFFCPU];
	const struct run_config *cfg = w->run->cfg;
	uint64_t stats[N_STATS];
	struct ingest_stats in;

	ingest_stats(w->run->ingest, &in);
	drain_stats(w->run->drain, stats);
	to->time.known = true;
	to->time.oncpu_ns = (int64_t)in.times.oncpu_ns;
	to->time.blocked_ns = (int64_t)in.times.blocked_ns;
	to->time.runnable_ns = (int64_t)in.times.runnable_ns;
	to->time.held_ns = (int64_t)in.times.held_ns;
	to->time.wall_ns = (int64_t)in.times.wall_ns;
	to->seen_threads = in.times.threads;
	to->offcpu.n_waits = row_count(sites_waits(p, BLOCKED_NS, BLOCKED, w->waits, WAIT_ROWS));
	to->time.preempted_ns = sites_preempted_value(p, BLOCKED, RUNNABLE_NS);
	to->offcpu.min_ns = (int64_t)cfg->wait_min_ns;
	to->offcpu.max_ns = (int64_t)cfg->wait_max_ns;
	to->offcpu.left_out = stats[STAT_WAITS_LEFT_OUT] + in.times.left_out;
	to->offcpu.left_out_ns = stats[STAT_WAITS_LEFT_OUT_NS] + in.times.left_out_ns;
	to->offcpu.waits = w->waits;
	report_chain(w, to);
	report_sampling(w, stats, to);
}

static void free_offcpu(void *self)
{
	struct offcpu *w = self;

	profile_free(w->spread.sums);
	hash_free(w->uncertain);
	wait_sampler_free(w->sampler);
	wait_cut_free(w->cut);
}

const struct component offcpu_component = {
	.name = "off-CPU",
	.size = sizeof(struct offcpu),
	.wanted = wanted,
	.prepare = prepare,
	.open = open_offcpu,
	.attach = attach,
	.tick = tick,
	.share = BUDGET_WAIT_STACKS,
	.source = SOURCE_OFFCPU,
	.cost = cost,
	.limit = limit,
	.drained = drained,
	.boundary = boundary,
	.snapshot = snapshot,
	.finish = finish,
	.report = report,
	.free = free_offcpu,
};
