/*
 * What a run costs those who are profiled: the programs' own time by the kernel's account, the way to them by
 * what it is known to take.
 */
#include "cmd/run_parts.h"
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
