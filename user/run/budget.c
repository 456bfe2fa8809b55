#include "run/budget.h"
#include "base/clock.h"
#include "collect/overhead/budget.h"
#include "collect/overhead/costs.h"
#include "run/component.h"
#include "run/look_pause.h"
#include "run/pipeline.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct run_budget {
	struct costs *costs; /* NULL: the kernel has no such account */
	uint64_t next_ns;    /* shares are given out again */
};

/* Allocations that come to cost too much at once are noticed by who traces them (exact_limiter.h). */
#define GOVERN_NS 100000000ULL

/* Between two looks of a service that may take 1 %: what such a one takes is a small part of a CPU then, at most hosts. */
#define LOOKS_NS 20e9

/* What a program takes, at most, for a process that is not profiled, and for one that is where no stack is
 * looked at. */
#define OTHER_NS 100.0

static const struct {
	const char *name;
	double trap_ns;
} kinds[N_COSTS] = {
	[SOURCE_ONCPU] = { "on-CPU", COST_INTERRUPT_NS },
	[SOURCE_OFFCPU] = { "off-CPU", COST_TRACEPOINT_NS },
	[SOURCE_ALLOC] = { "allocations", BUDGET_TRAP_NS },
	[SOURCE_GROWTH] = { "growth", COST_TRACEPOINT_NS },
	[SOURCE_SYSCALLS] = { "system calls", COST_TRACEPOINT_NS },
	[SOURCE_EVENTS] = { "events", COST_TRACEPOINT_NS },
	[COST_EVENTS] = { "process events", COST_TRACEPOINT_NS },
};

void budget_start(struct run *r)
{
	r->budget = calloc(1, sizeof(*r->budget));
	if (r->budget)
		r->budget->costs = costs_new(r->session);
}

/* What the programs of a source took, of a stretch of time of which the windows are a part. */
struct taken {
	double all_ns;    /* with the way to them                  */
	double target_ns; /* of that, of those who are profiled    */
	double events;
};

/*
 * Events of the targets: for other processes a program returns at its filter. Events about processes are not
 * counted by target: all are taken to be others', and the targets' part is what took longer.
 */
static double events_of_target(const struct run *r, int i, const uint64_t *stats)
{
	if (r->cfg->all || i == SOURCE_ALLOC || i == SOURCE_EVENTS)
		return INFINITY;
	if (i == COST_EVENTS)
		return 0;
	if (i == SOURCE_ONCPU)
		return (double)stats[STAT_ONCPU_SAMPLES];
	if (i == SOURCE_OFFCPU) /* one when it leaves, one when it comes */
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

static void govern(struct run *r, uint64_t now)
{
	uint64_t start_ns = session_start_ns(r->session);
	struct budget b = { .limit = r->cfg->max_overhead };
	double fixed_ns[N_COSTS], elapsed_ns = (double)(now - start_ns), window_ns;
	struct program_cost costs[N_COSTS];
	uint64_t stats[N_STATS];

	window_ns = (double)costs_read(r->budget->costs, costs);
	if (window_ns <= 0 || now <= start_ns)
		return;
	drain_stats(r->drain, stats);
	for (int i = 0; i < N_COSTS; i++)
		fixed_ns[i] = taken_by(&costs[i], elapsed_ns / window_ns, kinds[i].trap_ns,
				       events_of_target(r, i, stats))
				      .target_ns;
	EACH_COMPONENT(r, c, self)
	{
		struct cost_window w = { .program = &costs[c->source],
					 .window_ns = window_ns,
					 .elapsed_ns = elapsed_ns,
					 .fixed_ns = fixed_ns[c->source],
					 .stats = stats,
					 .now_ns = now };

		if (c->share == BUDGET_NONE)
			continue;
		*(c->share == BUDGET_ALLOCATIONS ? &b.allocs : &b.looks) = c->cost(self, &w);
		fixed_ns[c->source] = w.fixed_ns;
	}
	for (int i = 0; i < N_COSTS; i++)
		b.fixed += fixed_ns[i] * 100 / elapsed_ns;
	b.fixed += (double)r->counts.paused_ns * 100 / elapsed_ns;
	EACH_COMPONENT(r, c, self)
	if (c->share != BUDGET_NONE)
		c->limit(self, c->share == BUDGET_ALLOCATIONS ? budget_for_allocs(&b)
							      : budget_for_stack_samples(&b));
}

double budget_look_rest(const struct run_config *cfg)
{
	return cfg->serve ? fmax(100, 4 * 100 / cfg->max_overhead) : 100;
}

double budget_rollup_rest(const struct run_config *cfg)
{
	return cfg->serve ? fmax(100, 20 * 100 / cfg->max_overhead) : 100;
}

uint64_t budget_look_rest_ns(const struct run_config *cfg, uint64_t took_ns)
{
	double least_ns = cfg->serve ? LOOKS_NS / cfg->max_overhead : 0;

	return (uint64_t)fmax(budget_look_rest(cfg) * (double)took_ns, least_ns);
}

void budget_part(const struct run *r, struct profile_since *since, struct profile_now *now)
{
	struct program_cost costs[N_COSTS] = { 0 };
	uint64_t window_ns = 0;

	if (r->budget && r->budget->costs)
		window_ns = costs_read(r->budget->costs, costs);
	for (int i = 0; i < profile_kinds(); i++) {
		uint32_t source = profile_rows[i].source;
		double runs = (double)(costs[source].runs - since->begin.costs[source].runs);
		double ns = (double)(costs[source].run_ns - since->begin.costs[source].run_ns);

		now->cost_percent[i] = -1;
		if (window_ns > since->begin.cost_window_ns)
			now->cost_percent[i] = (ns + runs * kinds[source].trap_ns) * 100 /
					       (double)(window_ns - since->begin.cost_window_ns);
	}
	memcpy(since->begin.costs, costs, sizeof(costs));
	since->begin.cost_window_ns = window_ns;
}

void budget_tick(struct run *r, uint64_t now)
{
	if (!r->budget || !r->budget->costs)
		return;
	costs_tick(r->budget->costs, now);
	if (now < r->budget->next_ns)
		return;
	r->budget->next_ns = now + look_pause(r->cfg, GOVERN_NS, 10);
	govern(r, now);
}

const struct costs_window *budget_window(const struct run *r)
{
	return r->budget && r->budget->costs ? costs_last(r->budget->costs) : NULL;
}

void budget_pace(const struct run *r, uint64_t window_ns, uint64_t every_ns)
{
	if (r->budget && r->budget->costs)
		costs_pace(r->budget->costs, window_ns, every_ns);
}

void budget_closing(struct run *r)
{
	if (r->budget && r->budget->costs)
		costs_stop(r->budget->costs, now_ns());
}

uint32_t budget_uses(const struct run *r, struct budget_use *ret_uses)
{
	struct program_cost costs[N_COSTS];
	double window_ns = 0;

	if (r->budget && r->budget->costs)
		window_ns = (double)costs_read(r->budget->costs, costs);
	if (window_ns <= 0)
		return 0;
	for (int i = 0; i < N_COSTS; i++)
		ret_uses[i] = (struct budget_use){
			kinds[i].name,
			taken_by(&costs[i], 1, kinds[i].trap_ns, INFINITY).all_ns / window_ns
		};
	return N_COSTS;
}

void budget_free(struct run *r)
{
	if (r->budget)
		costs_free(r->budget->costs);
	free(TAKE_PTR(r->budget));
}

static double mean_ns(const struct program_cost *c)
{
	return c->runs ? (double)c->run_ns / (double)c->runs : 0;
}

/* Whatever it costs. */
static bool is_forced(const struct run *r)
{
	const struct run_config *cfg = r->cfg;

	return (cfg->sources[SOURCE_ALLOC] && cfg->alloc == ALLOC_EXACT) ||
	       (cfg->sources[SOURCE_OFFCPU] && cfg->waits == WAITS_EXACT);
}

/* Of those that know it better than the kernel's account. */
static bool reported(struct run *r, uint32_t source, const struct program_cost *program,
		     const struct run_summary *s, struct summary_cost *ret_cost)
{
	EACH_COMPONENT(r, c, self)
	if (c->source == source && c->cost_report)
		return c->cost_report(self, program, s, ret_cost);
	return false;
}

/* The target did nothing meanwhile: as if all of that was taken from it. */
static void report_pauses(const struct run *r, struct run_summary *to)
{
	if (!r->counts.pauses || to->cost.n == SUMMARY_COSTS)
		return;
	to->cost.sources[to->cost.n++] =
		(struct summary_cost){ .name = "pauses for censuses",
				       .events = r->counts.pauses,
				       .program_ns = (double)r->counts.paused_ns /
						     (double)r->counts.pauses,
				       .ns = (int64_t)r->counts.paused_ns };
	to->cost.ns += (int64_t)r->counts.paused_ns;
	to->cost.target_ns += (int64_t)r->counts.paused_ns;
}

void budget_report(struct run *r, struct run_summary *to)
{
	struct program_cost costs[N_COSTS];
	uint64_t stats[N_STATS];
	double scale;

	if (!r->budget || !r->budget->costs || to->duration_ns <= 0)
		return;
	to->cost.window_ns = (int64_t)costs_read(r->budget->costs, costs);
	if (!to->cost.window_ns)
		return;
	to->cost.known = true;
	if (!is_forced(r))
		to->cost.limit_percent = r->cfg->max_overhead;
	drain_stats(r->drain, stats);
	scale = (double)to->duration_ns / (double)to->cost.window_ns;
	for (uint32_t i = 0; i < N_COSTS; i++) {
		struct taken taken = taken_by(&costs[i], scale, kinds[i].trap_ns,
					      events_of_target(r, (int)i, stats));
		struct summary_cost *cost = &to->cost.sources[to->cost.n];
		bool known;

		if (i != COST_EVENTS && !r->cfg->sources[i])
			continue;
		*cost = (struct summary_cost){ kinds[i].name, (uint64_t)taken.events,
					       mean_ns(&costs[i]), kinds[i].trap_ns,
					       (int64_t)taken.all_ns };
		known = i != COST_EVENTS && reported(r, i, &costs[i], to, cost);
		to->cost.ns += cost->ns;
		to->cost.target_ns += known ? cost->ns : (int64_t)taken.target_ns;
		to->cost.n++;
		if (known && to->alloc.tier == ALLOC_TIER_EXACT)
			to->alloc.cost_percent =
				(double)cost->ns * 100 /
				(double)(to->alloc.covered_to_ns - to->alloc.covered_from_ns);
	}
	report_pauses(r, to);
}
