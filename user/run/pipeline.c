#include "run/pipeline.h"
#include "base/clock.h"
#include "collect/stream/old_stacks.h"
#include "model/sample_times.h"
#include "model/time_part.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/look_pause.h"
#include "run/old_samples.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>

#define DRAIN_NS         1000000000ULL /* while the totals stay far from full */
#define SERVE_DRAINS     5             /* … in serve so many times rarer */
#define DRAIN_FASTEST_NS 50000000ULL
#define FORGET_NS        30000000000ULL /* how long a process is remembered after its end */
#define STACK_NS                                                                                   \
	20000000000ULL /* how long, in serve, a total of it waits for its stack: less than that */

struct pipeline {
	uint64_t next_drain_ns, drain_every_ns, drain_rarest_ns, next_forget_ns;
	uint64_t exchanged_ns;           /* the totals, the last time; 0: not yet */
	bool filling;                    /* a table asks for a drain sooner than the totals do */
	struct old_samples *old_samples; /* of a service; NULL: they stay */
};

static int on_events(void *ctx, struct err *e)
{
	return pipeline_stacks(ctx, e);
}

int pipeline_open(struct run *r, struct err *e)
{
	int rc;

	r->pipeline = calloc(1, sizeof(*r->pipeline));
	if (!r->pipeline)
		return err_set(e, -ENOMEM, "out of memory");
	if (r->cfg->serve && !(r->pipeline->old_samples = old_samples_new(r)))
		return err_set(e, -ENOMEM, "out of memory");
	r->pipeline->drain_rarest_ns = look_pause(r->cfg, DRAIN_NS, SERVE_DRAINS);
	r->pipeline->drain_every_ns = r->pipeline->drain_rarest_ns;
	/* After the components, which may take what is not for a profile. */
	ingest_listen(r->ingest, r->drain, &r->clock.end_ns, &r->oom);
	rc = loop_fd(r->loop, drain_events_fd(r->drain), on_events, r);
	return rc < 0 ? err_set(e, rc, "cannot wait for events: %s", strerror(-rc)) : 0;
}

void pipeline_free(struct run *r)
{
	if (r->pipeline)
		old_samples_free(r->pipeline->old_samples);
	free(TAKE_PTR(r->pipeline));
}

/* --- what the kernel has --- */

void pipeline_processes(struct run *r)
{
	uint64_t now = now_ns();

	/* Stacks that have come are older than the records that are read now, or lie between them. */
	if (r->drain)
		drain_events(r->drain);
	targets_read(r, now);
	EACH_COMPONENT(r, c, self)
	if (c->processes)
		c->processes(self, now);
}

static int take_sent(struct run *r, struct err *e)
{
	int rc;

	pipeline_processes(r);
	rc = drain_sent(r->drain);
	return rc < 0 ? err_set(e, rc, "out of memory: totals were lost") : 0;
}

/* What is read now, and has no time of its own, came since the last time. */
static void note_stretch(struct run *r)
{
	uint64_t begin = session_start_ns(r->session);
	struct ingest_stretch stretch = { .begin_ns = begin,
					  .from_ns = r->pipeline->exchanged_ns,
					  .to_ns = r->clock.end_ns ? r->clock.end_ns : now_ns(),
					  .oncpu_slot_ns = run_oncpu_slot_ns(r->cfg) };

	if (!stretch.from_ns)
		stretch.from_ns = begin;
	if (stretch.to_ns < stretch.from_ns)
		stretch.to_ns = stretch.from_ns;
	r->pipeline->exchanged_ns = stretch.to_ns;
	ingest_stretch(r->ingest, &stretch);
}

int pipeline_totals(struct run *r, struct err *e)
{
	int rc;

	EACH_COMPONENT(r, c, self)
	if (c->before_totals)
		c->before_totals(self);
	rc = drain_flip(r->drain, e);
	if (rc < 0)
		return rc;
	note_stretch(r);
	pipeline_processes(r);
	rc = drain_totals(r->drain, e);
	if (rc == 0)
		rc = take_sent(r, e);
	EACH_COMPONENT(r, c, self)
	if (c->after_totals)
		c->after_totals(self);
	return rc;
}

static void walk_stacks(struct run *r)
{
	EACH_COMPONENT(r, c, self)
	if (c->stacks)
		c->stacks(self);
}

/* What came before its stack, or its waker's record. A run that ends waits until then, as a table may take long to make. */
static void take_waiting(struct run *r)
{
	uint64_t now = now_ns();

	r->oom |=
		ingest_waiting(r->ingest, r->cfg->serve && now > STACK_NS ? now - STACK_NS : 0) < 0;
	if (r->waits.wakers)
		wakers_waiting(r->waits.wakers);
}

int pipeline_stacks(struct run *r, struct err *e)
{
	int rc = drain_events(r->drain);

	if (rc < 0)
		return err_set(e, rc, "cannot read the events ring: %s", strerror(-rc));
	if (drain_sent_waits(r->drain))
		rc = take_sent(r, e);
	if (rc == 0)
		walk_stacks(r);
	return rc;
}

/* Live blocks and their sites name processes, stacks and labels until the end. */
static bool follows_blocks(const struct run *r)
{
	return r->alloc.tier == ALLOC_TIER_EXACT || r->alloc.tier == ALLOC_TIER_SAMPLED ||
	       r->alloc.tier == ALLOC_TIER_BURSTS;
}

/* Processes that ended a while ago: on a host where compilers come and go they would fill memory. */
static void forget_the_dead(struct run *r, uint64_t now)
{
	struct pipeline *p = r->pipeline;

	if (now < p->next_forget_ns || follows_blocks(r))
		return;
	if (p->next_forget_ns) {
		ingest_forget(r->ingest);
		if (r->cfg->serve)
			old_stacks_forget(r->drain, r->ingest, r->waits.wakers);
		proc_table_retire(r->procs, now - FORGET_NS);
	}
	p->next_forget_ns = now + FORGET_NS;
}

/* Twice as often while the fuller map is filled by more than a quarter, until it is by a sixteenth. */
static void adapt(struct run *r)
{
	uint32_t max = session_map_max(r->session, SESSION_TOTALS_A);
	uint32_t last = drain_last_totals(r->drain);
	uint64_t now = now_ns(), begin = session_start_ns(r->session);
	struct pipeline *p = r->pipeline;

	if ((last > max / 4 || p->filling) && p->drain_every_ns > DRAIN_FASTEST_NS)
		p->drain_every_ns /= 2;
	else if (last < max / 16 && !p->filling && p->drain_every_ns < p->drain_rarest_ns)
		p->drain_every_ns *= 2;
	p->filling = false;
	/* Where a second of the run begins: then what is of one second comes in one drain. */
	p->next_drain_ns =
		now > begin ? now - (now - begin) % p->drain_every_ns + p->drain_every_ns : now;
}

void pipeline_sooner(struct run *r)
{
	r->pipeline->filling = true;
}

int pipeline_drain(struct run *r, struct err *e)
{
	uint64_t now;
	int rc = pipeline_totals(r, e);

	if (rc == 0)
		take_waiting(r);
	if (rc == 0 && r->cfg->sources[SOURCE_OFFCPU])
		rc = drain_threads(r->drain, false, e);
	now = now_ns();
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->drained)
		c->drained(self, now);
	if (rc == 0) {
		targets_drained(r, now);
		proc_table_drained(r->procs);
		forget_the_dead(r, now);
	}
	adapt(r);
	return rc;
}

int pipeline_tick(struct run *r, uint64_t now, bool anyway, struct err *e)
{
	return anyway || now >= r->pipeline->next_drain_ns ? pipeline_drain(r, e) : 0;
}

int pipeline_keep_up(struct run *r, struct err *e)
{
	int rc;

	if (!r->pipeline || !r->drain)
		return 0;
	pipeline_processes(r);
	rc = pipeline_stacks(r, e); /* what came without waking us */
	return rc < 0 ? rc : pipeline_tick(r, now_ns(), false, e);
}

uint64_t pipeline_read_ns(const struct run *r)
{
	return r->pipeline ? r->pipeline->exchanged_ns : 0;
}

int pipeline_end(struct run *r, struct err *e)
{
	int rc = pipeline_totals(r, e);
	struct ingest_stats stats;

	EACH_COMPONENT(r, c, self)
	if (c->drained_last)
		c->drained_last(self, rc == 0);
	if (rc == 0 && r->cfg->sources[SOURCE_OFFCPU])
		rc = drain_threads(r->drain, true, e);
	if (rc == 0)
		r->oom |= ingest_finish(r->ingest) < 0;
	if (rc == 0 && r->waits.wakers)
		wakers_finish(r->waits.wakers);
	ingest_stats(r->ingest, &stats);
	if (stats.numberless)
		run_note(
			r, false,
			"many threads came and went: of a process's first %u each is shown by its number, "
			"of the others only those that stayed",
			INGEST_SHOWN_ENDED);
	if (stats.numberless_processes)
		run_note(r, false,
			 "many processes came and went: the first %u are shown by their number, "
			 "of the others only those that stayed",
			 INGEST_SHOWN_PROCESSES);
	return rc;
}

/* --- a profile, now --- */

bool pipeline_has(const struct run *r, enum profile_kind kind)
{
	enum alloc_tier tier = r->alloc.tier;

	if (!r->profiles[kind])
		return false;
	/* Of Go programs, known in the end; of wakers, which a kernel may hide. */
	if (kind == PROFILE_GOROUTINE || kind == PROFILE_WAKERS || kind >= PROFILE_NAMED)
		return profile_n_samples(r->profiles[kind]) > 0;
	if (profile_rows[kind].source != SOURCE_ALLOC)
		return true;
	/* An empty profile would say that nothing was mapped. */
	if (kind == PROFILE_MAPPINGS && r->alloc.no_mappings)
		return false;
	return tier == ALLOC_TIER_EXACT ||
	       (tier == ALLOC_TIER_SAMPLED && kind != PROFILE_PEAK && kind != PROFILE_MAPPINGS) ||
	       (tier == ALLOC_TIER_BURSTS &&
		(kind == PROFILE_ALLOC || (kind == PROFILE_HEAP && r->alloc.live_known)));
}

/* Can it be split by time? The peak, the mappings that are left, and what lives where bursts are traced, are
 * of the whole run. */
static bool has_part(const struct run *r, enum profile_kind kind, bool last)
{
	return pipeline_has(r, kind) &&
	       (kind != PROFILE_HEAP || r->alloc.tier != ALLOC_TIER_BURSTS) &&
	       (last || (kind != PROFILE_PEAK && kind != PROFILE_MAPPINGS));
}

/* Everything up to now into the profiles, and what of it belongs before and after that moment. */
static int take_all(struct run *r, struct profile_now *now, struct err *e)
{
	int rc = 0;

	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->boundary)
		rc = c->boundary(self, false, e);
	now->end_ns = now_ns();
	if (rc == 0)
		rc = pipeline_totals(r, e);
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->boundary)
		rc = c->boundary(self, true, e);
	if (rc == 0) {
		walk_stacks(r);
		take_waiting(r);
	}
	return rc;
}

int pipeline_times(const struct run *r, struct profile_now *now)
{
	uint64_t begin = session_start_ns(r->session), to = now->end_ns - begin;
	uint64_t from = (uint64_t)now->duration_ns < to ? to - (uint64_t)now->duration_ns : 0;
	int rc = 0;

	for (int i = 0; rc == 0 && i < profile_kinds(); i++)
		if (now->profiles[i] && r->profiles[i])
			rc = profile_part_times(r->profiles[i], now->profiles[i], from, to);
	return rc;
}

static int take_times(const struct run *r, const struct profile_since *since,
		      struct profile_now *now)
{
	int rc = since->times ? pipeline_times(r, now) : 0;

	for (int i = 0; since->forget_times && i < profile_kinds(); i++)
		if (now->profiles[i] && profile_times(r->profiles[i]))
			sample_times_clear(profile_times(r->profiles[i]));
	return rc;
}

int pipeline_now(struct run *r, struct profile_since *since, struct profile_now *ret_now,
		 struct err *e)
{
	struct profile_now now = { .end_ns = r->clock.end_ns, .last = r->clock.end_ns != 0 };
	int64_t end_wall_ns;
	int rc = now.last ? 0 : take_all(r, &now, e);

	if (rc < 0)
		return rc;
	end_wall_ns = wall_ns() - (int64_t)(now_ns() - now.end_ns);
	if (!since->begin.ns) {
		since->begin.ns = session_start_ns(r->session);
		since->begin.wall_ns = r->clock.start_wall_ns;
	}
	now.time_ns = since->begin.wall_ns;
	now.duration_ns = (int64_t)(now.end_ns - since->begin.ns);
	for (int i = 0; rc == 0 && i < profile_kinds(); i++)
		if (has_part(r, (enum profile_kind)i, now.last))
			rc = profile_since(r->profiles[i], &since->had[i], &now.profiles[i]);
	budget_part(r, since, &now);
	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->snapshot)
		rc = c->snapshot(self, since, &now, e);
	if (rc == 0)
		rc = take_times(r, since, &now);
	if (rc < 0) {
		profile_now_fini(&now);
		return e && *e->msg ? rc : err_set(e, rc, "out of memory for a profile");
	}
	since->begin.ns = now.end_ns;
	since->begin.wall_ns = end_wall_ns;
	if (since->forget_times && !now.last && r->pipeline->old_samples && !follows_blocks(r))
		old_samples_tick(r->pipeline->old_samples, now.end_ns);
	*ret_now = now;
	return 0;
}

void profile_now_fini(struct profile_now *now)
{
	for (int i = 0; i < profile_kinds(); i++)
		profile_free(TAKE_PTR(now->profiles[i]));
}

void profile_since_fini(struct profile_since *since)
{
	for (int i = 0; i < profile_kinds(); i++)
		profile_checkpoint_fini(&since->had[i]);
	profile_free(TAKE_PTR(since->open));
}
