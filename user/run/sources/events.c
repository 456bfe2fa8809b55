/*
 * Events that were asked for (-e): a profile of each. Every event is counted; how many of their stacks are captured is kept within
 * a part of --max-overhead, and an event that would cost more than all of it even without a stack is given up.
 */
#include "analyse/events.h"
#include "analyse/counts.h"
#include "base/clock.h"
#include "base/units.h"
#include "collect/events/event_probes.h"
#include "collect/overhead/costs.h"
#include "collect/probes/uprobes.h"
#include "render/tables/counts_csv.h"
#include "render/tables/events_csv.h"
#include "run/component.h"
#include "run/output/files.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>

#define GOVERN_NS 100000000ULL
#define RELAX_NS  2000000000ULL /* so long after it was thinned an event may be thinned less */
/* About: what an event costs that comes to a program, and one whose stack is captured, besides. */
#define EVENT_NS      200.0 /* its trap apart */
#define STACK_NS      2500.0
#define GIVE_UP_TIMES 5 /* that a look finds that it costs too much before it is given up */
#define PARTS_SHOWN   400
#define SWEEP_NS      5000000000ULL

struct item {
	int kind; /* of its profile; -1: there is none */
	struct event_count last;
	double last_trap_ns;
	double fired_rate, rate; /* a second, since the last look: for all, for targets */
	double trap_rate;        /* ns a second of its traps                            */
	double return_rate;      /* … returns, for all                                  */
	uint32_t one_in, most, over;
	uint64_t thinned_ns;
	double stopped_s, untimed_s; /* not counted, not timed any more; 0: to the end */
};

struct events {
	struct run *run;
	struct event_probes *probes;
	struct item items[EVENT_SPECS_MAX];
	uint64_t next_ns, last_ns;
	struct event_count *read; /* by number; as of the last look */
	uint32_t cap_read;
	struct event_row *rows;
	uint32_t n_rows;
	struct count_row *counts;
	uint32_t n_counts;
	bool timed; /* an item is */
	uint64_t next_sweep_ns;
	uint64_t missed_tracepoints;
	bool attached;
	/* Sites and functions that were found while a process ran already: in how many processes, and how long it ran. */
	uint32_t late;
	uint64_t late_ns;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_EVENTS];
}

/* --- profiles --- */

static int add_kind(struct item *item, const struct event_spec *s)
{
	struct profile_row row = { .name = s->name, .source = SOURCE_EVENTS };
	char type[64];

	if (s->timed)
		strcpy(type, "calls");
	else
		profile_type_name(s->name, type);
	if (event_unit(s) == EVENT_UNIT_COUNT) {
		row.types[row.n_types++] = (struct value_type){ type, "count" };
	} else {
		row.types[row.n_types++] = (struct value_type){ "samples", "count" };
		row.types[row.n_types++] =
			(struct value_type){ type, event_unit(s) == EVENT_UNIT_NS ? "nanoseconds"
										  : "count" };
		row.default_type = 1;
	}
	row.times[row.n_times++] = row.default_type;
	item->kind = profile_kind_add(&row);
	return item->kind;
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct events *ev = self;
	const struct run_config *cfg = ev->run->cfg;
	int r = event_probes_new(cfg->events, cfg->n_events, &ev->probes, e);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < cfg->n_events; i++)
		if (add_kind(&ev->items[i], &cfg->events[i]) < 0)
			return err_set(e, -ENOSPC, "-e: there is no room for the profile of %s",
				       cfg->events[i].text);
	event_probes_opts(ev->probes, opts);
	return 0;
}

/* A function is the leaf of its stacks anyhow. */
static bool has_leaf(const struct events *ev, const struct event_probe *probe)
{
	return probe->is_one_of && event_probes_spec(ev->probes, probe->spec)->kind != EVENT_UPROBE;
}

static struct ingest_event event_of(void *ctx, uint32_t number)
{
	const struct events *ev = ctx;
	struct event_probe probe;
	int kind;

	if (number >= event_probes_n(ev->probes))
		return (struct ingest_event){ 0 };
	probe = event_probes_get(ev->probes, number);
	kind = ev->items[probe.spec].kind;
	return (struct ingest_event){
		.profile = ev->run->profiles[kind],
		.leaf = has_leaf(ev, &probe) ? probe.name : NULL,
		.counts = profile_rows[kind].n_types == 1,
	};
}

/* --- the run --- */

static void add_target(void *ctx, const struct target *t)
{
	struct events *ev = ctx;

	ev->run->oom |= event_probes_add(ev->probes, t->pid) < 0;
}

/* Has anything been found of an item? */
static bool is_found(const struct events *ev, uint32_t item)
{
	bool found = false;

	for (uint32_t i = 0; i < event_probes_n(ev->probes) && !found; i++)
		found = event_probes_get(ev->probes, i).spec == item;
	return found;
}

/* Why an item gives nothing, now; NULL: it may. What was not found may be mapped later. */
static const char *why_not(const struct events *ev, uint32_t item)
{
	const char *why = event_probes_why(ev->probes, item), *failed;

	if (why || event_probes_spec(ev->probes, item)->kind <= EVENT_TRACEPOINT ||
	    is_found(ev, item))
		return why;
	return event_probes_failed(ev->probes, item, &failed)
		       ? failed
		       : "no file that is mapped by what is profiled has it";
}

static bool may_map_more(const struct run_config *cfg)
{
	return cfg->command || cfg->all || cfg->serve || cfg->n_pids == 0;
}

static int attach(void *self, struct err *e)
{
	struct events *ev = self;
	const struct run_config *cfg = ev->run->cfg;
	uint32_t failed = 0, n = event_probes_n_specs(ev->probes);

	ingest_on_events(ev->run->ingest, event_of, ev);
	event_probes_in(ev->probes, ev->run->dict, ev->run->procs, cfg->file_scope || cfg->all);
	event_probes_attach(ev->probes, ev->run->session, cfg->hz);
	targets_each(ev->run, add_target, ev);
	ev->attached = true;
	for (uint32_t i = 0; i < n; i++) {
		ev->items[i].one_in = ev->items[i].most = 1;
		ev->timed |= event_probes_spec(ev->probes, i)->timed;
		failed += (may_map_more(cfg) ? event_probes_why(ev->probes, i) : why_not(ev, i)) !=
			  NULL;
	}
	if (failed == n && n)
		return err_set(e, -ENODEV, "%s %s: %s",
			       event_probes_spec(ev->probes, 0)->timed ? "--count" : "-e",
			       event_probes_spec(ev->probes, 0)->text, why_not(ev, 0));
	return 0;
}

/* --- probes follow processes --- */

/* `since_ns`: when what is probed now began to run; 0: it has not run yet. */
static void look_into(struct events *ev, pid_t pid, uint64_t since_ns)
{
	int fresh = event_probes_add(ev->probes, pid);

	ev->run->oom |= fresh < 0;
	if (fresh <= 0 || !since_ns)
		return;
	ev->late++;
	ev->late_ns += now_ns() - since_ns;
}

static void process(void *self, const struct process_event *event)
{
	struct events *ev = self;
	const struct run_config *cfg = ev->run->cfg;

	if (!ev->attached)
		return;
	switch (event->kind) {
	case PROCESS_MEMBER:
		look_into(ev, event->pid, 0);
		break;
	case PROCESS_LISTED:
		if (cfg->all)
			look_into(ev, event->pid, 0);
		break;
	case PROCESS_HELD:
		look_into(ev, event->pid, 0);
		break;
	case PROCESS_MAPPED:
		if (event->target)
			look_into(ev, event->pid, event->held ? 0 : event->ns);
		break;
	case PROCESS_FORKED:
		if (event->child)
			look_into(ev, event->pid, event->ns);
		break;
	case PROCESS_EXEC:
		/* Probes follow an exec, but for those that hang on a leader who has gone. */
		if (!event->leader_gone || cfg->file_scope || cfg->all)
			break;
		event_probes_drop(ev->probes, event->pid);
		look_into(ev, event->pid, event->ns);
		break;
	case PROCESS_ENDED:
	case PROCESS_LEFT:
		event_probes_drop(ev->probes, event->pid);
		break;
	default:
		break;
	}
}

/* Of an item all events; each has its own price of a trap. */
struct item_sum {
	struct event_count count;
	double trap_ns;
};

/* Counts of all events, by number; NULL: there are none, or there was no memory. */
static const struct event_count *read_counts(struct events *ev)
{
	uint32_t n = event_probes_n(ev->probes);
	struct event_count *grown = ev->read;

	if (n > ev->cap_read)
		grown = realloc(ev->read, n * sizeof(*grown));
	if (!grown) {
		ev->run->oom |= n > 0;
		return NULL;
	}
	ev->read = grown;
	ev->cap_read = n > ev->cap_read ? n : ev->cap_read;
	event_probes_counts(ev->probes, ev->read, n);
	return ev->read;
}

/* Also leaves the counts of all events in ev->read. */
static void sum_items(struct events *ev, struct item_sum sums[EVENT_SPECS_MAX])
{
	const struct event_count *counts = read_counts(ev);

	memset(sums, 0, EVENT_SPECS_MAX * sizeof(*sums));
	for (uint32_t i = 0; counts && i < event_probes_n(ev->probes); i++) {
		struct item_sum *sum = &sums[event_probes_get(ev->probes, i).spec];

		sum->count.fired += counts[i].fired;
		sum->count.count += counts[i].count;
		sum->count.taken += counts[i].taken;
		sum->count.stacks += counts[i].stacks;
		sum->count.returns += counts[i].returns;
		sum->trap_ns += (double)counts[i].fired * event_probes_trap_ns(ev->probes, i);
	}
}

static void look(struct events *ev, double seconds)
{
	struct item_sum sums[EVENT_SPECS_MAX];

	sum_items(ev, sums);
	for (uint32_t i = 0; i < event_probes_n_specs(ev->probes); i++) {
		const struct event_count *now = &sums[i].count;
		struct item *item = &ev->items[i];

		item->fired_rate = (double)(now->fired - item->last.fired) / seconds;
		item->return_rate = (double)(now->returns - item->last.returns) / seconds;
		item->rate = (double)(now->taken - item->last.taken) / seconds;
		item->trap_rate = (sums[i].trap_ns - item->last_trap_ns) / seconds;
		item->last = *now;
		item->last_trap_ns = sums[i].trap_ns;
	}
}

static int start(void *self, struct err *e)
{
	struct events *ev = self;

	(void)e;
	event_probes_begin(ev->probes);
	look(ev, 1); /* from here rates are taken */
	for (uint32_t i = 0; i < event_probes_n_specs(ev->probes); i++) {
		const char *why = event_probes_why(ev->probes, i);

		if (why)
			run_note(ev->run, true, "%s is not available: %s",
				 event_probes_spec(ev->probes, i)->text, why);
	}
	return 0;
}

/* Percent of a CPU, without stacks. */
static double cost_of(const struct events *ev, uint32_t item)
{
	const struct item *it = &ev->items[item];

	return (it->fired_rate * EVENT_NS + it->trap_rate +
		it->return_rate * (EVENT_NS + event_probes_return_ns(ev->probes))) /
	       1e7;
}

/* The times of its calls, then the calls themselves. */
static void give_up_item(struct events *ev, uint32_t i, double seconds)
{
	const struct event_spec *s = event_probes_spec(ev->probes, i);
	struct item *item = &ev->items[i];
	double limit = ev->run->cfg->max_overhead, cost = cost_of(ev, i);

	item->over = 0;
	if (s->timed && !item->untimed_s && item->return_rate > 0) {
		event_probes_untime(ev->probes, i);
		item->untimed_s = seconds;
		run_note(
			ev->run, false,
			"%s: after %.1f s calls were counted alone, not timed: with their returns %s "
			"a second cost %.1f %% of a CPU, which is more than --max-overhead %.3g",
			s->text, seconds, unit_count((int64_t)item->fired_rate).s, cost, limit);
		return;
	}
	event_probes_stop(ev->probes, i);
	item->stopped_s = seconds;
	run_note(ev->run, true,
		 "%s was given up after %.1f s: %s a second cost %.1f %% of a CPU even without a "
		 "stack, which is more than --max-overhead %.3g",
		 s->text, seconds, unit_count((int64_t)item->fired_rate).s, cost, limit);
}

/* Where counting alone costs more than all may, the costliest is given up. */
static void give_up(struct events *ev, double seconds)
{
	uint32_t n = event_probes_n_specs(ev->probes), costliest = 0;
	double all = 0;

	for (uint32_t i = 0; i < n; i++) {
		all += cost_of(ev, i);
		if (cost_of(ev, i) > cost_of(ev, costliest))
			costliest = i;
	}
	if (all <= ev->run->cfg->max_overhead) {
		for (uint32_t i = 0; i < n; i++)
			ev->items[i].over = 0;
		return;
	}
	if (++ev->items[costliest].over >= GIVE_UP_TIMES && ev->items[costliest].stopped_s <= 0)
		give_up_item(ev, costliest, seconds);
}

/* Half of the limit is for stacks. */
static void thin(struct events *ev, uint64_t now)
{
	uint32_t n = event_probes_n_specs(ev->probes), one_in[EVENT_SPECS_MAX];
	double rates[EVENT_SPECS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		uint64_t period = event_probes_spec(ev->probes, i)->period;
		bool here = event_probes_spec(ev->probes, i)->kind != EVENT_PERF;

		rates[i] = ev->items[i].rate / (double)(here && period ? period : 1);
	}
	events_divide(rates, n, STACK_NS, ev->run->cfg->max_overhead / 2, one_in);
	for (uint32_t i = 0; i < n; i++) {
		struct item *item = &ev->items[i];
		bool less = one_in[i] < item->one_in;

		if (one_in[i] == item->one_in || (less && now < item->thinned_ns + RELAX_NS))
			continue;
		if (one_in[i] > 1)
			item->thinned_ns = now;
		item->one_in = one_in[i];
		item->most = one_in[i] > item->most ? one_in[i] : item->most;
		event_probes_thin(ev->probes, i, one_in[i]);
	}
}

static bool lives(void *ctx, pid_t pid)
{
	return proc_table_live(ctx, pid) != NULL;
}

/* Calls of threads that have ended make room. A percent of the time at most. */
static void sweep(struct events *ev, uint64_t now)
{
	uint64_t begin_ns = now_ns(), took_ns;

	event_probes_sweep(ev->probes, lives, ev->run->procs);
	took_ns = now_ns() - begin_ns;
	ev->next_sweep_ns = now + (took_ns > SWEEP_NS / 100 ? 100 * took_ns : SWEEP_NS);
}

static void tick(void *self, uint64_t now)
{
	struct events *ev = self;
	uint64_t start_ns = session_start_ns(ev->run->session);

	if (now < ev->next_ns)
		return;
	ev->next_ns = now + GOVERN_NS;
	if (!ev->last_ns)
		ev->last_ns = start_ns;
	if (now <= ev->last_ns || !start_ns)
		return;
	look(ev, (double)(now - ev->last_ns) / 1e9);
	ev->last_ns = now;
	give_up(ev, (double)(now - start_ns) / 1e9);
	thin(ev, now);
	if (ev->timed && now >= ev->next_sweep_ns)
		sweep(ev, now);
}

static void say_what_is_missing(struct events *ev)
{
	for (uint32_t i = 0; i < event_probes_n_specs(ev->probes); i++) {
		const char *text = event_probes_spec(ev->probes, i)->text, *why = NULL;
		uint32_t failed = event_probes_failed(ev->probes, i, &why);

		if (!event_probes_why(ev->probes, i) && why_not(ev, i))
			run_note(ev->run, true, "%s is not available: %s", text, why_not(ev, i));
		else if (failed)
			run_note(ev->run, true, "%s: places without a probe: %u: %s", text, failed,
				 why);
	}
	if (ev->late)
		run_note(
			ev->run, false,
			"functions or sites were found in processes that ran already, %u times, %s "
			"after they began to: what came before is not counted",
			ev->late, unit_ns((int64_t)ev->late_ns).s);
}

static void stop(void *self)
{
	struct events *ev = self;

	event_probes_detach(ev->probes);
	if (ev->timed)
		sweep(ev, now_ns());
	ev->missed_tracepoints = event_probes_missed_tracepoints(ev->probes);
	say_what_is_missing(ev);
}

/* --- what came of it --- */

static struct event_row row_of_item(const struct events *ev, uint32_t i,
				    const struct event_count *count)
{
	const struct event_spec *s = event_probes_spec(ev->probes, i);
	const struct profile_row *row = &profile_rows[ev->items[i].kind];

	return (struct event_row){
		.event = s->text,
		.part = "",
		.profile = s->name,
		.unit = row->types[row->default_type].unit,
		.count = (int64_t)count->count,
		.samples = (int64_t)count->stacks,
		.period = s->period,
		.one_in = ev->items[i].most,
		.missed = (int64_t)event_probes_missed(ev->probes, i),
		.function = "",
		.module = "",
		.stopped_s = ev->items[i].stopped_s,
		.why = why_not(ev, i),
	};
}

/* Those of an item that were never called are left out, unless it names one. */
static void add_counts(struct events *ev, uint32_t item)
{
	const struct event_spec *s = event_probes_spec(ev->probes, item);

	for (uint32_t i = 0; s->timed && i < event_probes_n(ev->probes); i++) {
		struct event_probe probe = event_probes_get(ev->probes, i);
		struct count_row *row = &ev->counts[ev->n_counts];
		struct event_count count = ev->read[i];
		struct call_times times;

		if (probe.spec != item)
			continue;
		event_probes_times(ev->probes, i, &times);
		if (!count.count && probe.is_one_of)
			continue;
		*row = (struct count_row){
			.function = probe.name,
			.profile = s->name,
			.calls = (int64_t)count.count,
			.returned = (int64_t)times.returned,
			.left = (int64_t)times.left,
			.open = (int64_t)times.open,
			.lost = (int64_t)times.lost,
			.ns = (int64_t)times.ns,
			.shortest_ns = (int64_t)count.shortest_ns,
			.longest_ns = (int64_t)count.longest_ns,
			.outer = (int64_t)times.outer,
			.outer_ns = (int64_t)times.outer_ns,
			.counted_s = ev->items[item].stopped_s,
			.timed_s = ev->items[item].untimed_s,
			.untimed = event_probes_untimed(ev->probes, i),
		};
		for (int p = 0; p < CALL_PARTS; p++)
			row->parts[p] = (int64_t)times.parts[p];
		ev->n_counts++;
	}
}

static void add_parts(struct events *ev, uint32_t item)
{
	const struct event_row of = ev->rows[ev->n_rows - 1];

	for (uint32_t i = 0; i < event_probes_n(ev->probes); i++) {
		struct event_probe probe = event_probes_get(ev->probes, i);
		struct event_count count = ev->read[i];

		if (probe.spec != item || !probe.is_one_of)
			continue;
		ev->rows[ev->n_rows++] = (struct event_row){ .event = of.event,
							     .part = probe.name,
							     .profile = of.profile,
							     .unit = of.unit,
							     .count = (int64_t)count.count,
							     .samples = (int64_t)count.stacks,
							     .period = of.period,
							     .one_in = of.one_in,
							     .function = "",
							     .module = "" };
	}
}

static void report(void *self, struct run_summary *to)
{
	struct events *ev = self;
	uint32_t n = event_probes_n_specs(ev->probes);
	struct item_sum sums[EVENT_SPECS_MAX];

	sum_items(ev, sums);
	free(ev->rows);
	free(ev->counts);
	ev->n_rows = ev->n_counts = 0;
	ev->rows = calloc(n + event_probes_n(ev->probes) + 1ul, sizeof(*ev->rows));
	ev->counts = calloc(event_probes_n(ev->probes) + 1ul, sizeof(*ev->counts));
	if (!ev->rows || !ev->counts || ev->cap_read < event_probes_n(ev->probes)) {
		ev->run->oom = true;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct profile *p = ev->run->profiles[ev->items[i].kind];
		struct event_row *row = &ev->rows[ev->n_rows++];

		*row = row_of_item(ev, i, &sums[i].count);
		if (p && events_look(p, profile_rows[ev->items[i].kind].default_type, row) < 0)
			ev->run->oom = true;
		add_parts(ev, i);
		add_counts(ev, i);
	}
	counts_rank(ev->counts, ev->n_counts);
	to->counts.known = ev->timed;
	to->counts.rows = ev->counts;
	to->counts.n = ev->n_counts;
	ev->n_rows = events_rank(ev->rows, ev->n_rows, PARTS_SHOWN);
	to->events.known = true;
	to->events.rows = ev->rows;
	to->events.n = ev->n_rows;
	to->events.missed_tracepoints = (int64_t)ev->missed_tracepoints;
}

/* Its way to a program is another one for each kind of event. */
static bool cost_report(void *self, const struct program_cost *program, const struct run_summary *s,
			struct summary_cost *ret_cost)
{
	struct events *ev = self;
	double each = program->runs ? (double)program->run_ns / (double)program->runs : 0, ns = 0;
	struct item_sum sums[EVENT_SPECS_MAX];
	uint64_t fired = 0;

	(void)s;
	sum_items(ev, sums);
	for (uint32_t i = 0; i < event_probes_n_specs(ev->probes); i++) {
		const struct event_count *n = &sums[i].count;

		fired += n->fired + n->returns;
		ns += sums[i].trap_ns > 0 ? sums[i].trap_ns : (double)n->fired * COST_TRACEPOINT_NS;
		ns += (double)n->returns * event_probes_return_ns(ev->probes);
	}
	*ret_cost = (struct summary_cost){ .name = "events",
					   .events = fired,
					   .program_ns = each,
					   .trap_ns = fired ? ns / (double)fired : 0,
					   .ns = (int64_t)(ns + (double)fired * each) };
	return true;
}

static int write_rows(void *ctx, struct sink *sink, struct err *e)
{
	const struct events *ev = ctx;

	(void)e;
	events_csv_write(ev->rows, ev->n_rows, sink);
	return 0;
}

static int write_counts(void *ctx, struct sink *sink, struct err *e)
{
	const struct events *ev = ctx;

	(void)e;
	counts_csv_write(ev->counts, ev->n_counts, sink);
	return 0;
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	const struct events *ev = self;
	int r = output_csv(to, "events", write_rows, self, e);

	return r == 0 && ev->timed ? output_csv(to, "counts", write_counts, self, e) : r;
}

static void free_events(void *self)
{
	struct events *ev = self;

	event_probes_free(ev->probes);
	free(ev->read);
	free(ev->counts);
	free(ev->rows);
}

const struct component events_component = {
	.name = "events",
	.size = sizeof(struct events),
	.wanted = wanted,
	.prepare = prepare,
	.attach = attach,
	.start = start,
	.process = process,
	.source = SOURCE_EVENTS,
	.cost_report = cost_report,
	.tick = tick,
	.stop = stop,
	.report = report,
	.write = write_files,
	.free = free_events,
};
