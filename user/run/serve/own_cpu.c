/*
 * The CPU time of the service, all of it: its process, its children, its programs in the kernel, and the way to these. Measured each
 * second, kept to --max-overhead over a minute (collect/overhead/duty.h): what costs too much at the present rate of events is
 * gathered in slices of the time (collect/overhead/slices.h), or sampled more rarely. Where the process and its children leave too little
 * of the limit to the sources, things are left out in an order (run/own_share.h, collect/overhead/saving.h).
 *
 * How many events there are is in the counters of the programs, whenever these are attached. What one costs is measured by the
 * kernel's account (collect/overhead/costs.h) in a part of the time, for that costs something, too.
 */
#include "run/serve/own_cpu.h"
#include "base/clock.h"
#include "collect/overhead/cost_pace.h"
#include "collect/overhead/costs.h"
#include "collect/overhead/duty.h"
#include "collect/overhead/saving.h"
#include "collect/overhead/slices.h"
#include "collect/stream/strata.h"
#include "proc/own_children.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/own_share.h"
#include "run/pipeline.h"
#include "run/serve/serve_config.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOOK_NS   1000000000ULL
#define MINUTE    60           /* looks */
#define LOOKS     602          /* … and ten of them */
#define WINDOW_NS 300000000ULL /* of the kernel's account, in ten times that */
/* How a mean of the last ones follows: the rate of events within seconds, what one costs within some windows. */
#define RATE_KEEP 0.6
#define EACH_KEEP 0.7
/* Loading the programs, the first names: not held against what comes after. */
#define ALLOWANCE_NS 30000000000ULL

/* What a program takes, until that is measured. */
#define SAMPLE_NS 5000.0
#define SWITCH_NS 400.0
#define CHANGE_NS 150.0
/* Runs of programs for one event that is seen, until that is measured: of the switch and the wake, and of idle CPUs' switches. */
#define SWITCH_RUNS 3.0
#define CHANGE_RUNS 1.0
/* A mean of fewer says little. */
#define EVENTS_ENOUGH 100

const char *const own_cost_names[N_OWN_COSTS] = {
	"process", "children", "on-CPU samples", "waits", "growth", "process events",
};
const char *const own_duty_names[N_OWN_DUTIES] = { "on-CPU samples", "waits", "growth" };

struct look {
	uint64_t at_ns, cost_ns[N_OWN_COSTS];
	uint64_t rest_ns;           /* of those: what sources cost between slices */
	uint64_t open_ns[N_DUTIES]; /* each source was attached for so long until then */
};

/* The rate of a source's events while it is attached: of the last seconds. */
struct rate {
	uint64_t events, open_ns; /* when it was last looked at */
	double recent_events, recent_s;
};

struct own_cpu {
	struct run *run;
	struct slices *slices[N_DUTIES]; /* NULL: it cannot be cut into slices */
	struct strata *strata;
	struct duty duty;
	struct saving saving;
	uint64_t saved_ns[N_OWN_SAVINGS]; /* each was left out for so long */
	struct look looks[LOOKS];         /* a ring: what was at each of the last */
	uint64_t n_looks;
	struct rate rates[N_DUTIES];
	/* Of an event that is seen: what it costs, and how many runs of programs there are for one. */
	double each_ns[N_DUTIES], each_runs[N_DUTIES], events_percent;
	double rest_each_ns[N_DUTIES];     /* of a run that returns at once */
	uint64_t rest_before_ns[N_DUTIES]; /* programs had rested for so long at the last look */
	uint32_t window;                   /* the last one that was learned from */
	uint64_t every_ns;                 /* how often there is one           */
	uint64_t next_ns, began_ns, sum_ns[N_OWN_COSTS];
	uint64_t sum_rest_ns;
	double full_s[N_DUTIES];
	/* Of the process and of its children, when the first sample could be taken. */
	uint64_t base_ns[2];
	uint32_t cpus;
	struct cost_pace pace; /* of the kernel's account */
	struct own_cpu_state state;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve != NULL;
}

/* --- what it costs --- */

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

/* Of a child that lives, with its own that have ended; 0: it is gone. */
static uint64_t child_ns(pid_t pid)
{
	unsigned long long ticks[4];
	char path[64], line[1024], *end;
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return 0;
	end = strrchr(line, ')');
	if (!end || sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
			   &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 4)
		return 0;
	return (ticks[0] + ticks[1] + ticks[2] + ticks[3]) *
	       (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t children_ns(void)
{
	pid_t pids[OWN_CHILDREN_MAX];
	uint32_t n = own_children(pids, OWN_CHILDREN_MAX);
	struct rusage ended;
	uint64_t sum;

	getrusage(RUSAGE_CHILDREN, &ended);
	sum = timeval_ns(ended.ru_utime) + timeval_ns(ended.ru_stime);
	for (uint32_t i = 0; i < n; i++)
		sum += child_ns(pids[i]);
	return sum;
}

static uint64_t process_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void keep_mean(double *mean, double now)
{
	*mean = *mean * EACH_KEEP + now * (1 - EACH_KEEP);
}

/*
 * What programs and the way to them took in a window, for each event that was seen, and what a run takes that returned at once, between
 * two slices; nothing, where too few were.
 */
static void learn_each(struct own_cpu *o, enum duty_source i, const struct program_cost *all,
		       const struct program_cost *rest, uint64_t events, double way_ns)
{
	double runs = (double)(all->runs - rest->runs), ns = (double)(all->run_ns - rest->run_ns);

	if (rest->runs >= EVENTS_ENOUGH)
		keep_mean(&o->rest_each_ns[i], (double)rest->run_ns / (double)rest->runs + way_ns);
	if (events < EVENTS_ENOUGH)
		return;
	keep_mean(&o->each_runs[i], runs / (double)events);
	keep_mean(&o->each_ns[i], (ns + runs * way_ns) / (double)events);
}

static void learn(struct own_cpu *o)
{
	const struct costs_window *w = budget_window(o->run);
	const struct program_cost *events;

	if (!w || w->no == o->window)
		return;
	o->window = w->no;
	learn_each(o, DUTY_ONCPU, &w->costs[SOURCE_ONCPU], &w->rest[SOURCE_ONCPU],
		   w->costs[SOURCE_ONCPU].runs, COST_INTERRUPT_NS);
	learn_each(o, DUTY_WAITS, &w->costs[SOURCE_OFFCPU], &w->rest[SOURCE_OFFCPU], w->switches,
		   COST_TRACEPOINT_NS);
	learn_each(o, DUTY_GROWTH, &w->costs[SOURCE_GROWTH], &w->rest[SOURCE_GROWTH], w->changes,
		   COST_TRACEPOINT_NS);
	events = &w->costs[COST_EVENTS];
	keep_mean(&o->events_percent,
		  ((double)events->run_ns + (double)events->runs * COST_TRACEPOINT_NS) * 100 /
			  (double)w->length_ns);
}

/* Whether what one costs is known. */
static void learn_pace(struct own_cpu *o)
{
	uint32_t window = o->window;
	double was[N_DUTIES];

	memcpy(was, o->each_ns, sizeof(was));
	learn(o);
	if (o->window == window)
		return;
	for (int i = 0; i < N_DUTIES; i++)
		if (o->each_ns[i] != was[i])
			cost_pace_figure(&o->pace, was[i],
					 was[i] + (o->each_ns[i] - was[i]) / (1 - EACH_KEEP));
	cost_pace_window(&o->pace);
}

/* Events since the last look into *ret_new; how many there would be in a second if it were attached all of the time. */
static double rate_of(struct own_cpu *o, enum duty_source i, uint64_t events, uint64_t *ret_new)
{
	uint64_t open_ns = o->slices[i] ? slices_open_ns(o->slices[i]) : now_ns();
	struct rate *r = &o->rates[i];
	bool first = !r->open_ns;

	*ret_new = first ? 0 : events - r->events;
	if (!first && open_ns >= r->open_ns) {
		r->recent_events = r->recent_events * RATE_KEEP + (double)*ret_new;
		r->recent_s = r->recent_s * RATE_KEEP + (double)(open_ns - r->open_ns) / 1e9;
	}
	r->events = events;
	r->open_ns = open_ns;
	return r->recent_s > 0 ? r->recent_events / r->recent_s : 0;
}

/*
 * A source that is gathered in slices, whose events come at `rate` a second and of which `fresh` were seen since the last look: what
 * it would cost all of the time, percent; *sum_ns grows by what it did.
 */
static double add_sliced(struct own_cpu *o, enum duty_source i, double rate, uint64_t fresh,
			 uint64_t *sum_ns)
{
	double runs_per_s = rate * o->each_runs[i];
	uint64_t rest_ns, cost_ns;

	*sum_ns += (uint64_t)((double)fresh * o->each_ns[i]);
	if (o->slices[i]) {
		rest_ns = slices_rest_ns(o->slices[i]);
		cost_ns = (uint64_t)((double)(rest_ns - o->rest_before_ns[i]) / 1e9 * runs_per_s *
				     o->rest_each_ns[i]);
		*sum_ns += cost_ns;
		o->sum_rest_ns += cost_ns;
		o->rest_before_ns[i] = rest_ns;
		slices_runs(o->slices[i], runs_per_s, o->rest_each_ns[i]);
	}
	return rate * o->each_ns[i] / 1e7;
}

/* On-CPU samples come at a rate that is known, on idle CPUs too. */
static double hz_now(const struct own_cpu *o)
{
	return ldexp((double)o->run->cfg->hz, -(int)o->duty.shift[DUTY_ONCPU]);
}

/* Adds what was since the last look; what each source would cost all of the time, percent. */
static void add_costs(struct own_cpu *o, uint64_t elapsed_ns, double ret_full[N_DUTIES])
{
	double cpu_hz = (double)o->cpus * o->run->cfg->hz, seconds = (double)elapsed_ns / 1e9;
	uint64_t stats[N_STATS], fresh;
	double rate;
	bool oncpu = o->run->cfg->sources[SOURCE_ONCPU];

	drain_stats(o->run->drain, stats);
	ret_full[DUTY_ONCPU] = oncpu ? cpu_hz * o->each_ns[DUTY_ONCPU] / 1e7 : 0;
	o->sum_ns[OWN_ONCPU] +=
		(uint64_t)(oncpu ? hz_now(o) * o->cpus * seconds * o->each_ns[DUTY_ONCPU] : 0);
	rate = rate_of(o, DUTY_WAITS, stats[STAT_OFFCPU_SWITCHES], &fresh);
	ret_full[DUTY_WAITS] = add_sliced(o, DUTY_WAITS, rate, fresh, &o->sum_ns[OWN_WAITS]);
	rate = rate_of(o, DUTY_GROWTH, stats[STAT_GROWTH_EVENTS], &fresh);
	ret_full[DUTY_GROWTH] = add_sliced(o, DUTY_GROWTH, rate, fresh, &o->sum_ns[OWN_GROWTH]);
	o->full_s[DUTY_ONCPU] += ldexp(seconds, -(int)o->duty.shift[DUTY_ONCPU]);
	o->sum_ns[OWN_EVENTS] += (uint64_t)(o->events_percent * seconds * 1e7);
	o->sum_ns[OWN_PROCESS] = process_ns() - o->base_ns[0];
	o->sum_ns[OWN_CHILDREN] = children_ns() - o->base_ns[1];
}

/* The last `looks` looks, or all that there were: how long they are, ns. */
static double span(const struct own_cpu *o, uint64_t looks, const struct look **ret_first,
		   const struct look **ret_last)
{
	uint64_t n = o->n_looks - 1 < looks ? o->n_looks - 1 : looks;

	*ret_last = &o->looks[(o->n_looks - 1) % LOOKS];
	*ret_first = &o->looks[(o->n_looks - 1 - n) % LOOKS];
	return (double)((*ret_last)->at_ns - (*ret_first)->at_ns);
}

/* Percent of one CPU in them … */
static void percent_of(const struct own_cpu *o, uint64_t looks, double ret[N_OWN_COSTS])
{
	const struct look *first, *last;
	double ns = span(o, looks, &first, &last);

	for (int i = 0; i < N_OWN_COSTS; i++)
		ret[i] = ns > 0 ? (double)(int64_t)(last->cost_ns[i] - first->cost_ns[i]) * 100 / ns
				: 0;
}

/* … of what sources cost between slices. */
static double floor_of(const struct own_cpu *o, uint64_t looks)
{
	const struct look *first, *last;
	double ns = span(o, looks, &first, &last);

	return ns > 0 ? (double)(last->rest_ns - first->rest_ns) * 100 / ns : 0;
}

/* --- what it does about it --- */

static void say_change(const struct own_cpu *o, int i, uint32_t was, double full)
{
	uint32_t shift = o->duty.shift[i];
	char sentence[300];

	if (shift && i == DUTY_ONCPU)
		snprintf(
			sentence, sizeof(sentence),
			"on-CPU samples are taken at %.3g Hz: at %u Hz they would cost %.2g %% of a "
			"CPU here, and --max-overhead is %g %%",
			hz_now(o), o->run->cfg->hz, full, o->duty.limit);
	else if (shift)
		snprintf(
			sentence, sizeof(sentence),
			"%s: gathered in 1/%u of the time, figures are estimates: all of the time they "
			"would cost %.2g %% of a CPU at this rate of events, and --max-overhead is %g %%",
			own_duty_names[i], 1u << shift, full, o->duty.limit);
	else
		snprintf(sentence, sizeof(sentence), "%s: gathered as asked for again",
			 own_duty_names[i]);
	/* Once for each change of state; what lies between only to who wants to know everything. */
	if (!was != !shift)
		err_notice(sentence);
	else
		run_say(o->run, "%s", sentence);
}

/* For how long the source was attached so far; samples of CPUs: as if they had been taken at the full rate for so long. */
static uint64_t open_ns(const struct own_cpu *o, int i)
{
	return o->slices[i] ? slices_open_ns(o->slices[i]) : (uint64_t)(o->full_s[i] * 1e9);
}

/*
 * How often the kernel's account is on, and for how long: where sources are in slices, for one of these at least. Where they are not, the
 * figures decide nothing.
 */
static void pace_account(struct own_cpu *o)
{
	bool sliced = o->duty.shift[DUTY_WAITS] || o->duty.shift[DUTY_GROWTH];
	uint64_t length_ns = sliced ? STRATUM_NS : WINDOW_NS;
	uint64_t every_ns = sliced ? 8 * STRATUM_NS : 10 * WINDOW_NS;

	if (o->n_looks > MINUTE)
		every_ns = sliced ? cost_pace_every_ns(&o->pace, every_ns) : COST_PACE_RARELY_NS;
	if (every_ns == o->every_ns)
		return;
	o->every_ns = every_ns;
	budget_pace(o->run, length_ns, every_ns);
}

static void say_saving(const struct own_cpu *o, uint32_t was)
{
	bool more = o->saving.made > was;
	char sentence[200];

	if (more)
		snprintf(
			sentence, sizeof(sentence),
			"%s: process and children take %.2g %% of a CPU, %.2g %% with the kernel's part, and --max-overhead is %g %%",
			own_saving_names[was],
			o->state.minute[OWN_PROCESS] + o->state.minute[OWN_CHILDREN],
			o->state.minute_sum, o->saving.limit);
	else
		snprintf(sentence, sizeof(sentence), "%s: not any more",
			 own_saving_names[o->saving.made]);
	/* The first and the last of them; what lies between only to who wants to know everything. */
	if (!was || !o->saving.made)
		err_notice(sentence);
	else
		run_say(o->run, "%s", sentence);
}

/* Looks from one window to the next, which is a burst: names, and the writing. */
static uint32_t window_looks(const struct own_cpu *o)
{
	double seconds = o->run->cfg->every_s * own_window_factor(o->run);

	return (uint32_t)fmin(fmax(seconds, 2 * MINUTE), LOOKS - 1);
}

/* Less is left out, or more, by what process and children took in the last minute, and all of it together. */
static void save(struct own_cpu *o)
{
	uint32_t was = o->saving.made;
	double recent[N_OWN_COSTS], own, all = 0;

	o->saving.burst = window_looks(o);
	for (uint32_t i = 0; i < was; i++)
		o->saved_ns[i] += LOOK_NS;
	percent_of(o, MINUTE, recent);
	own = recent[OWN_PROCESS] + recent[OWN_CHILDREN];
	for (int i = 0; i < N_OWN_COSTS; i++)
		all += recent[i];
	/* All of it beyond the limit, where sources can give no more way, is as much too much. */
	if (now_ns() - o->began_ns < ALLOWANCE_NS ||
	    !saving_decide(&o->saving, fmax(own, all * SAVING_OVER)))
		return;
	o->run->serving.savings = o->saving.made;
	say_saving(o, was);
}

static void steer(struct own_cpu *o, const double full[N_DUTIES])
{
	double recent[N_OWN_COSTS], fixed;
	struct duty was = o->duty;

	save(o);
	percent_of(o, window_looks(o), recent);
	fixed = recent[OWN_PROCESS] + recent[OWN_CHILDREN] + recent[OWN_EVENTS];
	if (now_ns() - o->began_ns < ALLOWANCE_NS) /* the first names */
		fixed = fmin(fixed, o->duty.limit / 2);
	if (!duty_decide(&o->duty, fixed, floor_of(o, MINUTE), full)) {
		pace_account(o);
		return;
	}
	for (int i = 0; i < N_DUTIES; i++) {
		if (o->duty.shift[i] == was.shift[i])
			continue;
		if (i == DUTY_ONCPU)
			session_oncpu_hz(o->run->session, hz_now(o));
		else
			slices_shift(o->slices[i], o->duty.shift[i]);
		say_change(o, i, was.shift[i], full[i]);
		o->state.changes++;
	}
	cost_pace_anew(&o->pace);
	pace_account(o);
}

static void publish(struct own_cpu *o, const double full[N_DUTIES])
{
	struct own_cpu_state *to = &o->state;
	bool least = true;

	percent_of(o, MINUTE, to->minute);
	to->minute_sum = 0;
	for (int i = 0; i < N_OWN_COSTS; i++) {
		to->minute_sum += to->minute[i];
		to->ns[i] = o->sum_ns[i];
	}
	for (int i = 0; i < N_DUTIES; i++) {
		to->shift[i] = o->duty.shift[i];
		if (to->shift[i] > to->shift_most[i])
			to->shift_most[i] = to->shift[i];
		least &= full[i] <= 0 || to->shift[i] == o->duty.shift_max[i];
	}
	to->limit = o->duty.limit;
	to->over = least && o->saving.made == o->saving.most && to->minute_sum > to->limit;
	to->known = true;
	o->run->serving.own_cpu = to;
}

static void tick(void *self, uint64_t now)
{
	double full[N_DUTIES] = { 0 };
	struct own_cpu *o = self;
	struct look *look;

	if (now < o->next_ns)
		return;
	learn_pace(o);
	look = &o->looks[o->n_looks % LOOKS];
	add_costs(o, o->n_looks ? now - o->looks[(o->n_looks - 1) % LOOKS].at_ns : 0, full);
	look->at_ns = now;
	memcpy(look->cost_ns, o->sum_ns, sizeof(look->cost_ns));
	look->rest_ns = o->sum_rest_ns;
	for (int i = 0; i < N_DUTIES; i++)
		look->open_ns[i] = open_ns(o, i);
	o->n_looks++;
	o->next_ns = now + LOOK_NS;
	if (o->n_looks < 3)
		return;
	steer(o, full);
	publish(o, full);
}

/* --- what figures are worth --- */

/* The look that was nearest before a moment; NULL: that long ago is not known any more. */
static const struct look *look_before(const struct own_cpu *o, uint64_t ns)
{
	for (uint64_t i = o->n_looks; i-- > 0 && o->n_looks - i <= LOOKS;)
		if (o->looks[i % LOOKS].at_ns <= ns)
			return &o->looks[i % LOOKS];
	return NULL;
}

/* The part of the time between two moments in which a source was attached. */
static double share_between(const struct own_cpu *o, int i, uint64_t from_ns, uint64_t to_ns)
{
	const struct look *from = look_before(o, from_ns), *to = look_before(o, to_ns);
	uint64_t begin_ns = session_start_ns(o->run->session);

	if (!to || to->at_ns <= (from ? from->at_ns : begin_ns))
		return 1;
	return fmin((double)(to->open_ns[i] - (from ? from->open_ns[i] : 0)) /
			    (double)(to->at_ns - (from ? from->at_ns : begin_ns)),
		    1);
}

/* Half of the 95 % interval of a sum, in percent of it; below 0: not known. */
static double error_percent(const struct own_cpu *o, enum strata_of of, uint64_t from_ns,
			    uint64_t to_ns)
{
	uint64_t begin_ns = session_start_ns(o->run->session);
	double sum, se;

	if (from_ns < begin_ns)
		from_ns = begin_ns;
	if (!strata_error(o->strata, of, (from_ns - begin_ns) / 1000000000,
			  (to_ns - begin_ns) / 1000000000, &sum, &se) ||
	    sum <= 0)
		return -1;
	return 1.96 * se * 100 / sum;
}

static void comment_on(const struct own_cpu *o, struct profile_now *now, enum profile_kind kind,
		       int duty, int of, uint64_t from_ns)
{
	char *to = now->comment[kind];
	size_t size = sizeof(now->comment[kind]), n = strlen(to);
	double share = share_between(o, duty, from_ns, now->end_ns), error;

	if (share > 0.97 || !now->profiles[kind])
		return;
	n += (size_t)snprintf(to + n, size - n,
			      "%sestimates: gathered in %.3g %% of the time, in slices drawn at "
			      "random, and weighted accordingly",
			      n ? "; " : "", share * 100);
	error = of >= 0 ? error_percent(o, (enum strata_of)of, from_ns, now->end_ns) : -1;
	if (error >= 0 && n < size)
		snprintf(to + n, size - n, "; the sum +/- %.2g %% (95 %%)", error);
}

static int snapshot(void *self, struct profile_since *since, struct profile_now *now, struct err *e)
{
	const struct own_cpu *o = self;
	uint64_t from_ns = since->begin.ns;

	(void)e;
	if (!o->n_looks)
		return 0;
	comment_on(o, now, PROFILE_OFFCPU, DUTY_WAITS, STRATA_BLOCKED, from_ns);
	comment_on(o, now, PROFILE_WAKERS, DUTY_WAITS, -1, from_ns);
	comment_on(o, now, PROFILE_GROWTH, DUTY_GROWTH, STRATA_RESIDENT, from_ns);
	return 0;
}

static void report(void *self, struct run_summary *to)
{
	static const int of[N_DUTIES] = { -1, STRATA_BLOCKED, STRATA_RESIDENT };
	const struct own_cpu *o = self;
	uint64_t begin_ns = session_start_ns(o->run->session), end_ns = o->run->clock.end_ns;

	if (!o->state.known || end_ns <= begin_ns)
		return;
	to->service.known = true;
	to->service.limit_percent = o->duty.limit;
	to->service.n_parts = N_OWN_COSTS;
	for (int i = 0; i < N_OWN_COSTS; i++) {
		to->service.parts[i].name = own_cost_names[i];
		to->service.parts[i].ns = (int64_t)o->sum_ns[i];
	}
	for (int i = 0; i < N_OWN_SAVINGS; i++) {
		if (!o->saved_ns[i])
			continue;
		to->service.savings[to->service.n_savings].name = own_saving_names[i];
		to->service.savings[to->service.n_savings++].share =
			fmin((double)o->saved_ns[i] / (double)(end_ns - begin_ns), 1);
	}
	for (int i = 0; i < N_DUTIES; i++) {
		if (!o->state.shift_most[i])
			continue;
		to->service.duties[to->service.n_duties].name = own_duty_names[i];
		to->service.duties[to->service.n_duties].share =
			fmin((double)open_ns(o, i) / (double)(end_ns - begin_ns), 1);
		to->service.duties[to->service.n_duties].least = 1u << o->state.shift_most[i];
		to->service.duties[to->service.n_duties++].error_percent =
			of[i] >= 0 ? error_percent(o, (enum strata_of)of[i], begin_ns, end_ns) : -1;
	}
}

/* --- in the order of a run --- */

/* Before ingest, which takes what it is handed. */
static int open_own_cpu(void *self, struct err *e)
{
	struct own_cpu *o = self;

	o->strata = strata_new(o->run->drain);
	return o->strata ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int ready(void *self, struct err *e)
{
	static const enum source sources[N_DUTIES] = {
		[DUTY_WAITS] = SOURCE_OFFCPU, [DUTY_GROWTH] = SOURCE_GROWTH
	};
	struct own_cpu *o = self;
	const struct run *r = o->run;
	const char *why;

	o->duty.limit = o->saving.limit = r->cfg->max_overhead;
	o->saving.most = N_OWN_SAVINGS;
	o->cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (session_has(r->session, SOURCE_ONCPU, &why))
		o->duty.shift_max[DUTY_ONCPU] = r->cfg->hz > 1 ? (uint32_t)log2(r->cfg->hz) : 0;
	for (int i = DUTY_WAITS; i < N_DUTIES; i++) {
		int rc = slices_new(r->session, sources[i], &o->slices[i]);

		if (rc < 0 && rc != -EOPNOTSUPP)
			return err_set(e, rc, "cannot start a thread for %s: %s", own_duty_names[i],
				       strerror(-rc));
		o->duty.shift_max[i] = rc == 0 ? SLICES_SHIFT_MAX : 0;
	}
	o->each_ns[DUTY_ONCPU] = COST_INTERRUPT_NS + SAMPLE_NS;
	o->each_ns[DUTY_WAITS] = SWITCH_NS;
	o->each_ns[DUTY_GROWTH] = CHANGE_NS;
	o->rest_each_ns[DUTY_WAITS] = o->rest_each_ns[DUTY_GROWTH] = COST_REST_NS;
	o->each_runs[DUTY_WAITS] = SWITCH_RUNS;
	o->each_runs[DUTY_GROWTH] = CHANGE_RUNS;
	o->base_ns[0] = process_ns();
	o->base_ns[1] = children_ns();
	o->began_ns = now_ns();
	pace_account(o);
	return 0;
}

static void closing(void *self)
{
	struct own_cpu *o = self;

	for (int i = 0; i < N_DUTIES; i++)
		slices_stop(o->slices[i]);
}

static void free_own_cpu(void *self)
{
	struct own_cpu *o = self;

	for (int i = 0; i < N_DUTIES; i++)
		slices_free(o->slices[i]);
	strata_free(o->strata);
}

const struct component own_cpu_component = {
	.name = "own CPU time",
	.size = sizeof(struct own_cpu),
	.wanted = wanted,
	.open = open_own_cpu,
	.ready = ready,
	.tick = tick,
	.closing = closing,
	.snapshot = snapshot,
	.report = report,
	.free = free_own_cpu,
};
