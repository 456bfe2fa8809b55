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

/*
 * Measured on Linux 6.18 in a virtual machine: an interrupt of the clock that perf samples by (2.6 to
 * 3.7 us), a raw tracepoint with an empty program less what that is said to take, and a trap where it
 * cannot be measured.
 */
#define INTERRUPT_NS  3000.0
#define TRACEPOINT_NS 50.0
#define TRAP_NS       520.0
#define LOOK_MOST_NS  (2.0 * LOOK_USUAL_NS)

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

/* Programs and the way to them, percent of one CPU in the windows. */
static double percent_of(const struct program_cost *c, double trap_ns, double window_ns)
{
	return ((double)c->run_ns + (double)c->runs * trap_ns) * 100 / window_ns;
}

/*
 * Switches cost `percent`; without the looks at their stacks so much less. What a look costs is measured while
 * every wait is looked at; but most switches of a host may be of others.
 */
static double switches_without_looks(struct run *r, double percent, uint64_t now_ns)
{
	struct busy *busy = run_waits_busy(r);
	double elapsed_ns = (double)(now_ns - session_start_ns(r->session)), looks, each;
	uint64_t stats[MS_N_STATS];

	if (!busy)
		return percent;
	drain_stats(r->drain, stats);
	looks = (double)(stats[STAT_OFFCPU_SWITCHES] - stats[STAT_BUSY_SWITCHES] +
			 stats[STAT_BUSY_LOOKS]);
	if (!busy_gap_ns(busy) && looks >= RUNS_ENOUGH) {
		each = percent / 100 * elapsed_ns / looks;
		busy_look_costs(busy, each < LOOK_MOST_NS ? each : LOOK_MOST_NS);
	}
	percent -= looks * busy_look_ns(busy) * 100 / elapsed_ns;
	return percent > 0 ? percent : 0;
}

static double allocs_percent(struct run *r, const struct program_cost *c, double window_ns,
			     uint64_t now_ns)
{
	if (run_slicing_allocs(r))
		return run_slices_percent(r, now_ns);
	if (run_sampling_allocs(r))
		return r->thinner.recent;
	return run_tracing_allocs(r)
		       ? percent_of(c, alloc_probes_hit_ns(r->probes, TRAP_NS), window_ns)
		       : 0;
}

void run_costs_govern(struct run *r, uint64_t now_ns)
{
	struct budget b = { .limit = r->cfg->max_overhead };
	struct program_cost costs[N_COSTS];
	double window_ns = (double)costs_read(r->costs, costs);

	if (window_ns <= 0 || now_ns <= session_start_ns(r->session))
		return;
	b.fixed = percent_of(&costs[MS_ONCPU], INTERRUPT_NS, window_ns) +
		  percent_of(&costs[MS_GROWTH], TRACEPOINT_NS, window_ns) +
		  percent_of(&costs[COST_EVENTS], TRACEPOINT_NS, window_ns) +
		  switches_without_looks(r, percent_of(&costs[MS_OFFCPU], TRACEPOINT_NS, window_ns),
					 now_ns);
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

/* `trap_ns` for each of them; what the windows say stands for `scale` times as much. */
static struct summary_cost cost_of(const char *name, const struct program_cost *c, double scale,
				   double trap_ns)
{
	double each = c->runs ? (double)c->run_ns / (double)c->runs : 0;
	double events = (double)c->runs * scale;

	return (struct summary_cost){ name, (uint64_t)events, each, trap_ns,
				      (int64_t)(events * (each + trap_ns)) };
}

/* Every call was traced, of which each hit was counted; then, maybe, in slices, which say it themselves. */
static struct summary_cost cost_of_calls(const struct run *r, const struct program_cost *c,
					 const struct summary_alloc *a)
{
	uint64_t hits = counter_read(r->session, STAT_PROBE_HITS);
	double each = c->runs ? (double)c->run_ns / (double)c->runs : 0;
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
	struct program_cost costs[N_COSTS];
	double scale;

	if (!r->costs || to->duration_ns <= 0)
		return;
	to->cost.window_ns = (int64_t)costs_read(r->costs, costs);
	if (!to->cost.window_ns)
		return;
	to->cost.known = true;
	if (!is_forced(r))
		to->cost.limit_percent = r->cfg->max_overhead;
	scale = (double)to->duration_ns / (double)to->cost.window_ns;
	for (int i = 0; i < N_COSTS; i++) {
		bool calls = i == MS_ALLOC && (to->alloc.tier == ALLOC_TIER_EXACT ||
					       to->alloc.tier == ALLOC_TIER_SLICES);
		struct summary_cost *cost = &to->cost.sources[to->cost.n];

		if (i != COST_EVENTS && !r->cfg->sources[i])
			continue;
		*cost = calls ? cost_of_calls(r, &costs[i], &to->alloc)
			      : cost_of(kinds[i].name, &costs[i], scale, kinds[i].trap_ns);
		to->cost.ns += cost->ns;
		to->cost.n++;
		if (calls && to->alloc.tier == ALLOC_TIER_EXACT)
			to->alloc.cost_percent =
				(double)cost->ns * 100 /
				(double)(to->alloc.covered_to_ns - to->alloc.covered_from_ns);
	}
}
