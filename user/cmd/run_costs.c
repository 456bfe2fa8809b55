/*
 * What a run costs those who are profiled: the programs' own time by the kernel's account, the way to them by
 * what it is known to take.
 */
#include "cmd/run_parts.h"
#include "collect/budget.h"
#include "collect/busy.h"
#include "collect/costs.h"
#include "collect/counter.h"
#include "collect/trap_cost.h"

#include <math.h>

/*
 * Measured on Linux 6.18 in a virtual machine: an interrupt of the clock that perf samples by (2.6 to
 * 3.7 us), a raw tracepoint with an empty program less what that is said to take, and a trap where it
 * cannot be measured.
 */
#define INTERRUPT_NS  3000.0
#define TRACEPOINT_NS 50.0
#define TRAP_NS       520.0
/* What a program takes, at most, for a process that is not profiled, and for one that is where no stack is
 * looked at. */
#define OTHER_NS 100.0
/* What a look is taken to cost, whatever is measured. */
#define LOOK_LEAST_NS 500.0
#define LOOK_MOST_NS  (2.0 * LOOK_USUAL_NS)

static const struct {
	const char *name;
	double trap_ns;
} kinds[N_COSTS] = {
	[MS_ONCPU] = { "on-CPU", INTERRUPT_NS },
	[MS_OFFCPU] = { "off-CPU", TRACEPOINT_NS },
	[MS_ALLOC] = { "allocations", TRAP_NS },
	[MS_GROWTH] = { "growth", TRACEPOINT_NS },
	[COST_EVENTS] = { "process events", TRACEPOINT_NS },
};

void run_costs_begin(struct run *r)
{
	r->costs = costs_new(r->session);
	r->trap_ns = TRAP_NS;
}

/* A mean of fewer runs says little. */
#define RUNS_ENOUGH 100

/* What a hit of exact tracing really takes, with this program's stacks. */
static void tell_watch(struct run *r)
{
	struct program_cost costs[N_COSTS], *c = &costs[MS_ALLOC];

	costs_read(r->costs, costs);
	if (c->runs >= RUNS_ENOUGH)
		exact_watch_hit_costs(r->exact_watch,
				      (double)c->run_ns / (double)c->runs +
					      alloc_probes_hit_ns(r->probes, TRAP_NS));
}

void run_costs_tick(struct run *r, uint64_t now_ns)
{
	if (!r->costs)
		return;
	costs_tick(r->costs, now_ns);
	if (r->exact_watch && run_tracing_allocs(r))
		tell_watch(r);
	run_costs_govern(r, now_ns);
}

/* What the programs of a source took, of a stretch of time of which the windows are a part. */
struct taken {
	double all_ns;    /* with the way to them                  */
	double target_ns; /* of that, of those who are profiled    */
	double events;
};

/*
 * Events that are the target's: others are asked who they are, and go on. Of what follows processes that is not
 * counted: all are taken to be others', so that the target's part is what took longer.
 */
static double events_of_target(const struct run *r, int i, const uint64_t *stats)
{
	if (r->cfg->all || i == MS_ALLOC)
		return INFINITY;
	if (i == COST_EVENTS)
		return 0;
	if (i == MS_ONCPU)
		return (double)stats[STAT_ONCPU_SAMPLES];
	if (i == MS_OFFCPU) /* one when it leaves, one when it comes */
		return 2 * (double)stats[STAT_OFFCPU_SWITCHES];
	return (double)(stats[STAT_RESIDENT_FILE] + stats[STAT_RESIDENT_ANON] +
			stats[STAT_RESIDENT_SHARED] + stats[STAT_RETURNED_FILE] +
			stats[STAT_RETURNED_ANON] + stats[STAT_RETURNED_SHARED]);
}

/* `scale`: how much longer that was than the windows. */
static struct taken taken_by(const struct program_cost *c, double scale, double trap_ns,
			     double of_target)
{
	double runs = (double)c->runs * scale, run_ns = (double)c->run_ns * scale;
	double others = runs > of_target ? runs - of_target : 0;
	double each = runs > 0 ? fmin(run_ns / runs, OTHER_NS) : 0;

	return (struct taken){
		.all_ns = run_ns + runs * trap_ns,
		.target_ns = run_ns - others * each + (runs - others) * trap_ns,
		.events = runs,
	};
}

/*
 * Of what its switches cost the target: how much looks at their stacks are not. What a look costs is measured
 * while every wait is looked at.
 */
static double switches_without_looks(struct run *r, double target_ns, const uint64_t *stats)
{
	double switches = (double)stats[STAT_OFFCPU_SWITCHES], looks, each;
	struct busy *busy = run_waits_busy(r);
	double looks_ns = fmax(target_ns - 2 * switches * (TRACEPOINT_NS + OTHER_NS), 0);

	if (!busy)
		return target_ns;
	looks = switches - (double)stats[STAT_BUSY_SWITCHES] + (double)stats[STAT_BUSY_LOOKS];
	if (!busy_gap_ns(busy) && looks >= RUNS_ENOUGH) {
		each = fmin(looks_ns / looks, LOOK_MOST_NS);
		busy_look_costs(busy, fmax(each, LOOK_LEAST_NS));
	}
	return fmax(target_ns - looks * busy_look_ns(busy), 0);
}

static double allocs_percent(struct run *r, const struct program_cost *c, double window_ns,
			     uint64_t now_ns)
{
	if (run_slicing_allocs(r))
		return run_slices_percent(r, now_ns);
	if (run_sampling_allocs(r))
		return r->thinner.recent;
	if (!run_tracing_allocs(r))
		return 0;
	return taken_by(c, 1, alloc_probes_hit_ns(r->probes, TRAP_NS), INFINITY).all_ns * 100 /
	       window_ns;
}

void run_costs_govern(struct run *r, uint64_t now_ns)
{
	struct budget b = { .limit = r->cfg->max_overhead };
	double elapsed_ns = (double)(now_ns - session_start_ns(r->session)), window_ns;
	struct program_cost costs[N_COSTS];
	uint64_t stats[MS_N_STATS];

	window_ns = (double)costs_read(r->costs, costs);
	if (window_ns <= 0 || now_ns <= session_start_ns(r->session))
		return;
	drain_stats(r->drain, stats);
	for (int i = 0; i < N_COSTS; i++) {
		double ns = taken_by(&costs[i], elapsed_ns / window_ns, kinds[i].trap_ns,
				     events_of_target(r, i, stats))
				    .target_ns;

		if (i == MS_OFFCPU)
			ns = switches_without_looks(r, ns, stats);
		if (i != MS_ALLOC)
			b.fixed += ns * 100 / elapsed_ns;
	}
	b.allocs = allocs_percent(r, &costs[MS_ALLOC], window_ns, now_ns);
	b.looks = run_waits_busy(r) ? busy_percent(run_waits_busy(r)) : 0;
	r->for_allocs = budget_for_allocs(&b);
	if (r->exact_watch)
		exact_watch_limit(r->exact_watch, r->for_allocs);
	run_slices_limit(r, r->for_allocs);
	r->thinner.max_percent = r->for_allocs;
	if (run_waits_busy(r))
		busy_limit(run_waits_busy(r), budget_for_looks(&b));
}

void run_costs_stop(struct run *r)
{
	_cleanup_(trap_cost_closep) struct trap_cost *trap = NULL;
	double ns;

	if (!r->costs)
		return;
	costs_stop(r->costs, run_now_ns());
	if (!run_tracing_allocs(r))
		return;
	ns = trap_cost_open(r->session, &trap) == 0 ? trap_cost_ns(trap) : 0;
	r->trap_ns = alloc_probes_hit_ns(r->probes, ns > 0 ? ns : TRAP_NS);
}

void run_costs_free(struct run *r)
{
	costs_free(TAKE_PTR(r->costs));
}

static double mean_ns(const struct program_cost *c)
{
	return c->runs ? (double)c->run_ns / (double)c->runs : 0;
}

/* Every call was traced, of which each hit was counted; then, maybe, in slices, which say it themselves. */
static struct summary_cost cost_of_calls(const struct run *r, const struct program_cost *c,
					 const struct summary_alloc *a)
{
	uint64_t hits = counter_read(r->session, STAT_PROBE_HITS);
	double each = mean_ns(c);
	struct summary_cost cost = { "allocations", hits, each, r->trap_ns, 0 };

	if (a->tier == ALLOC_TIER_SLICES) {
		uint64_t timed = counter_read(r->session, STAT_SLICE_TIMED);

		hits -= a->slices.hits < hits ? a->slices.hits : hits;
		each = timed ? (double)counter_read(r->session, STAT_SLICE_NS) / (double)timed : 0;
		cost = (struct summary_cost){ "allocations", a->slices.hits + hits, each,
					      a->slices.trap_ns, a->slices.target_ns };
	}
	cost.ns += (int64_t)((double)hits * (cost.program_ns + cost.trap_ns));
	return cost;
}

/* Whatever it costs. */
static bool is_forced(const struct run *r)
{
	const struct run_config *cfg = r->cfg;

	return (cfg->sources[MS_ALLOC] && cfg->alloc == ALLOC_EXACT) ||
	       (cfg->sources[MS_OFFCPU] && cfg->waits == WAITS_EXACT);
}

void run_cost_facts(struct run *r, struct run_summary *to)
{
	struct program_cost costs[N_COSTS];
	uint64_t stats[MS_N_STATS];
	double scale;

	if (!r->costs || to->duration_ns <= 0)
		return;
	to->cost.window_ns = (int64_t)costs_read(r->costs, costs);
	if (!to->cost.window_ns)
		return;
	to->cost.known = true;
	if (!is_forced(r))
		to->cost.limit_percent = r->cfg->max_overhead;
	drain_stats(r->drain, stats);
	scale = (double)to->duration_ns / (double)to->cost.window_ns;
	for (int i = 0; i < N_COSTS; i++) {
		bool calls = i == MS_ALLOC && (to->alloc.tier == ALLOC_TIER_EXACT ||
					       to->alloc.tier == ALLOC_TIER_SLICES);
		struct taken taken =
			taken_by(&costs[i], scale, kinds[i].trap_ns, events_of_target(r, i, stats));
		struct summary_cost *cost = &to->cost.sources[to->cost.n];

		if (i != COST_EVENTS && !r->cfg->sources[i])
			continue;
		*cost = calls ? cost_of_calls(r, &costs[i], &to->alloc)
			      : (struct summary_cost){ kinds[i].name, (uint64_t)taken.events,
						       mean_ns(&costs[i]), kinds[i].trap_ns,
						       (int64_t)taken.all_ns };
		to->cost.ns += cost->ns;
		to->cost.target_ns += calls ? cost->ns : (int64_t)taken.target_ns;
		to->cost.n++;
		if (calls && to->alloc.tier == ALLOC_TIER_EXACT)
			to->alloc.cost_percent =
				(double)cost->ns * 100 /
				(double)(to->alloc.covered_to_ns - to->alloc.covered_from_ns);
	}
}
