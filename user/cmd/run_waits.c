/*
 * Off-CPU in a run: whether all waits are looked at, and how sure the profile is where they were not.
 */
#include "base/hash.h"
#include "base/units.h"
#include "cmd/run_parts.h"
#include "collect/busy.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Waits of one stack that were looked at and did not have the stack that was expected, and of the one
 * that was expected. */
struct uncertain {
	struct ms_total_key key; /* of no state and bucket */
	struct estimate sum;
	UT_hash_handle hh;
};

struct run_waits {
	struct busy *busy;
	struct uncertain *uncertain;
	struct estimate moved; /* all, once */
	bool oom;
};

static void uncertain_add(struct run_waits *w, const struct ms_total_key *key,
			  const struct estimate *one)
{
	struct uncertain *u;

	HASH_FIND(hh, w->uncertain, key, sizeof(*key), u);
	if (!u) {
		u = calloc(1, sizeof(*u));
		if (u) {
			u->key = *key;
			HASH_ADD(hh, w->uncertain, key, sizeof(u->key), u);
		}
		if (!u || !hash_added(u)) {
			free(u);
			w->oom = true;
			return;
		}
	}
	estimate_merge(&u->sum, one);
}

void run_on_moved(void *ctx, const struct ms_moved_rec *rec)
{
	struct run *r = ctx;
	struct ms_total_key key = rec->key;
	struct estimate one = { 0 };

	if (!r->waits)
		return;
	estimate_add(&one, rec->blocked_ns, rec->blocked_ns << rec->shift);
	one.samples = 1;
	estimate_merge(&r->waits->moved, &one);
	key.state = MS_STATE_NONE;
	key.bucket = 0;
	uncertain_add(r->waits, &key, &one);
	one.vc = -one.vc;
	key.user = rec->from_user;
	key.kernel = rec->from_kernel;
	key.as_gen = rec->from_as_gen;
	uncertain_add(r->waits, &key, &one);
}

int run_waits_begin(struct run *r, struct err *e)
{
	struct err why = { 0 };
	int rc;

	if (!r->cfg->sources[MS_OFFCPU] || r->cfg->waits == WAITS_EXACT)
		return 0;
	r->waits = calloc(1, sizeof(*r->waits));
	if (!r->waits)
		return err_set(e, -ENOMEM, "out of memory");
	rc = busy_new(r->session, &r->waits->busy, &why);
	if (rc < 0) {
		run_waits_free(r);
		if (r->cfg->waits == WAITS_SAMPLED)
			run_note(r, true, "--offcpu=sampled: %s; all waits are looked at", why.msg);
		r->partial |= r->cfg->waits == WAITS_SAMPLED;
		return 0;
	}
	drain_busy(r->drain, r->waits->busy);
	busy_limit(r->waits->busy, r->cfg->max_overhead);
	if (r->cfg->waits == WAITS_SAMPLED)
		busy_begin(r->waits->busy);
	return 0;
}

struct busy *run_waits_busy(struct run *r)
{
	return r->waits ? r->waits->busy : NULL;
}

void run_waits_govern(struct run *r, uint64_t now_ns)
{
	uint64_t stats[MS_N_STATS];

	if (!r->waits)
		return;
	drain_stats(r->drain, stats);
	busy_tick(r->waits->busy, now_ns, stats[STAT_OFFCPU_SWITCHES], stats[STAT_BUSY_SWITCHES],
		  stats[STAT_BUSY_LOOKS]);
}

/* --- in the end ------------------------------------------------------------------------------- */

/* Of one thread and value type. */
struct part {
	int64_t more, less; /* sums of what is above nothing, and of what is below */
};

int run_waits_settle(struct profile *p, struct profile *ret_changes)
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

/* Twice as large as needed for none of the sums of `total` to overflow. */
static double unit_for(double total)
{
	return total > 0x1p60 ? exp2(ceil(log2(total / 0x1p60))) : 1;
}

int run_waits_finish(struct run *r)
{
	static const struct value_type types[SPREAD_TYPES] = {
		{ "v", "count" }, { "vc", "count" }, { "samples", "count" }, { "seen", "count" }
	};
	struct run_waits *w = r->waits;
	struct spread *spread = &r->waits_spread;
	struct uncertain *u, *next;

	if (!w || !r->profiles[PROFILE_OFFCPU])
		return 0;
	if (w->oom || run_waits_settle(r->profiles[PROFILE_OFFCPU], NULL) < 0)
		return -ENOMEM;
	spread->v_unit = unit_for(2 * w->moved.v);
	spread->vc_unit = unit_for(2 * w->moved.vc);
	spread->sums = profile_new(r->dict, types, SPREAD_TYPES);
	if (!spread->sums)
		return -ENOMEM;
	HASH_ITER (hh, w->uncertain, u, next) {
		const int64_t values[SPREAD_TYPES] = {
			[SPREAD_V] = (int64_t)(u->sum.v / spread->v_unit),
			[SPREAD_VC] = (int64_t)(u->sum.vc / spread->vc_unit),
			[SPREAD_SAMPLES] = (int64_t)u->sum.samples,
		};
		labels_id labels;
		stack_id stack;

		if (ingest_place(r->ingest, &u->key, &stack, &labels) &&
		    profile_add(spread->sums, stack, labels, values) < 0)
			return -ENOMEM;
	}
	return 0;
}

void run_waits_facts(struct run *r, const uint64_t *stats, struct run_summary *to,
		     struct site_row *rows)
{
	to->offcpu.switches = stats[STAT_OFFCPU_SWITCHES];
	if (!r->waits || !busy_gap_ns(r->waits->busy))
		return;
	to->offcpu.sampled = true;
	to->offcpu.look_gap_s = (double)busy_gap_ns(r->waits->busy) / 1e9;
	to->offcpu.busy_switches = stats[STAT_BUSY_SWITCHES];
	to->offcpu.looks = stats[STAT_BUSY_LOOKS];
	to->offcpu.moved = stats[STAT_BUSY_MOVED];
	if (r->waits_spread.sums && r->waits->moved.samples)
		sample_waits(&r->waits_spread, rows, to->offcpu.n_waits);
}

void run_waits_comment(const struct run_summary *s, char *buf, size_t size)
{
	snprintf(
		buf, size,
		"sampled: of %llu waits of threads that switched often the stacks of %llu were looked "
		"at; times of threads are exact, of stacks unbiased estimates",
		(unsigned long long)s->offcpu.busy_switches, (unsigned long long)s->offcpu.looks);
}

void run_waits_free(struct run *r)
{
	struct run_waits *w = r->waits;
	struct uncertain *u, *next;

	profile_free(TAKE_PTR(r->waits_spread.sums));
	if (!w)
		return;
	HASH_ITER (hh, w->uncertain, u, next) {
		HASH_DEL(w->uncertain, u);
		free(u);
	}
	busy_free(w->busy);
	free(w);
	r->waits = NULL;
}
