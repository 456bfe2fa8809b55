/*
 * Whether, how and how long allocations are gathered in a run.
 */
#include "run/alloc/alloc.h"

#include "base/clock.h"
#include "base/units.h"
#include "collect/overhead/counter.h"
#include "collect/overhead/governor.h"
#include "collect/overhead/trap_cost.h"
#include "model/alloc_site.h"
#include "proc/proc_mem.h"
#include "run/budget.h"
#include "run/sampler.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define RATE_BURST_MS 20

static const struct alloc_tier_ops *const tiers[] = {
	[ALLOC_TIER_EXACT] = &exact_ops,
	[ALLOC_TIER_BURSTS] = &bursts_ops,
	[ALLOC_TIER_SAMPLED] = &sampled_ops,
};

/* --- the tier --- */

bool alloc_is(const struct alloc *al, enum alloc_tier tier)
{
	const struct alloc_state *state = &al->run->alloc;

	return state->tier == tier && state->from_ns && !state->to_ns &&
	       (tier != ALLOC_TIER_BURSTS || al->bursts);
}

bool alloc_probing(const struct alloc *al)
{
	return alloc_is(al, ALLOC_TIER_EXACT) || alloc_is(al, ALLOC_TIER_BURSTS);
}

static void publish(struct alloc *al)
{
	struct alloc_state *state = &al->run->alloc;

	state->tracing = alloc_is(al, ALLOC_TIER_EXACT);
	state->following = alloc_probing(al) || alloc_is(al, ALLOC_TIER_SAMPLED);
}

void alloc_set_tier(struct alloc *al, enum alloc_tier tier)
{
	al->run->alloc.tier = tier;
	publish(al);
}

void alloc_begun(struct alloc *al)
{
	al->run->alloc.from_ns = now_ns();
	publish(al);
}

void alloc_ended(struct alloc *al, uint64_t ns)
{
	al->run->alloc.to_ns = ns;
	publish(al);
}

bool alloc_image_gone(void *ctx, const struct proc_id *proc)
{
	struct alloc *al = ctx;

	return ingest_gone(al->run->ingest, proc);
}

const struct alloc_tier_ops *alloc_ops(const struct alloc *al)
{
	enum alloc_tier tier = al->run->alloc.tier;

	if (tier == ALLOC_TIER_EXACT && inprocess_wanted(al->run->cfg))
		return &inprocess_ops;
	return tier < sizeof(tiers) / sizeof(*tiers) ? tiers[tier] : NULL;
}

static const struct alloc_tier_ops *ops_now(const struct alloc *al)
{
	return alloc_is(al, al->run->alloc.tier) ? alloc_ops(al) : NULL;
}

/* --- the choice --- */

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_ALLOC];
}

/*
 * Where every call would cost too much, a sampler may be listened to instead. Go's and Java's are listened to in
 * any case, if all that is profiled is of these: what they allocate goes through no function of C.
 */
static void look_for_samplers(struct alloc *al)
{
	const struct run_config *cfg = al->run->cfg;
	uint32_t n = cfg->command ? 1 : cfg->n_pids, n_by_itself = 0;

	al->may_sample = cfg->alloc == ALLOC_SAMPLED;
	if (cfg->alloc == ALLOC_OFF || cfg->alloc == ALLOC_EXACT)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct sampler_facts facts;

		if (cfg->command)
			sampler_look_command(cfg->command, &facts);
		else
			sampler_look(cfg->pids[i], &facts);
		al->may_sample |= facts.otel || facts.heard;
		n_by_itself += facts.by_itself && facts.heard;
		if (*facts.unread)
			run_note(al->run, true, "no sampler was looked for in a file: %s",
				 facts.unread);
		if (!*al->sampler_advice && !cfg->inject &&
		    (cfg->alloc == ALLOC_SAMPLED || facts.by_itself))
			sampler_advise(&facts, al->sampler_advice, sizeof(al->sampler_advice));
	}
	al->samples_first = cfg->alloc == ALLOC_SAMPLED || (n_by_itself && n_by_itself == n);
}

static int64_t live_bytes(void *ctx)
{
	const struct alloc_tier_ops *ops = ops_now(ctx);

	return ops && ops->live_bytes ? ops->live_bytes(ctx) : MEM_UNKNOWN;
}

static double total_bytes(void *ctx)
{
	const struct alloc_tier_ops *ops = alloc_ops(ctx);

	return ops && ops->total_bytes ? ops->total_bytes(ctx) : NAN;
}

static int live_blocks(void *ctx, run_block_fn fn, void *fn_ctx, struct err *e)
{
	const struct alloc_tier_ops *ops = ops_now(ctx);

	if (!ops || !ops->blocks)
		return err_set(e, -ENODATA, "not every allocation is traced");
	return ops->blocks(ctx, fn, fn_ctx, e);
}

static bool block_stack(void *ctx, const struct drain_block *block, stack_id *ret_stack)
{
	const struct alloc_tier_ops *ops = alloc_ops(ctx);
	struct alloc *al = ctx;
	const struct site_key *site = ops && ops->site ? ops->site(al, block) : NULL;

	return site && ingest_site_stack(al->run->ingest, site, ret_stack);
}

static int command(void *self, struct err *e)
{
	struct alloc *al = self;
	struct run *r = al->run;

	r->alloc.reason = al->reason;
	r->alloc.live_bytes = live_bytes;
	r->alloc.total_bytes = total_bytes;
	r->alloc.live_blocks = live_blocks;
	r->alloc.block_stack = block_stack;
	r->alloc.live_ctx = al;
	al->limit_percent = r->cfg->max_overhead;
	al->trap_ns = BUDGET_TRAP_NS;
	look_for_samplers(al);
	return r->cfg->command && r->cfg->alloc == ALLOC_SAMPLED ? sampled_preload(al, e) : 0;
}

/* Does one of the processes map a library that brings an operator new of its own? By names, for this only decides when
 * something is loaded. */
static bool maps_own_new(struct run *r)
{
	static const char *const names[] = { "libjemalloc", "libtcmalloc", "libmimalloc" };
	struct proc_image images[256];

	for (uint32_t i = 0; i < r->cfg->n_pids; i++) {
		struct proc *p = NULL;

		if (proc_table_scan(r->procs, r->cfg->pids[i], 0, now_ns(), NULL) == 0)
			p = proc_table_live(r->procs, r->cfg->pids[i]);

		uint32_t n = p ? proc_images(r->procs, p, images, 256) : 0;

		for (uint32_t j = 0; j < n && j < 256; j++) {
			const char *path =
				dict_str(r->dict, dict_module_get(r->dict, images[j].module)->path);
			const char *slash = strrchr(path, '/');

			for (size_t k = 0; slash && k < sizeof(names) / sizeof(names[0]); k++)
				if (strncmp(slash + 1, names[k], strlen(names[k])) == 0)
					return true;
		}
	}
	return false;
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	const struct alloc *al = self;

	(void)e;
	opts->calls = !al->samples_first && !inprocess_wanted(al->run->cfg);
	opts->results = live_wanted(al->run->cfg);
	opts->own_new = opts->calls && maps_own_new(al->run);
	opts->sampled = al->may_sample;
	return 0;
}

static int open_alloc(void *self, struct err *e)
{
	struct alloc *al = self;
	struct drain *d = al->run->drain;

	drain_on(d, DRAIN_BURST, bursts_on_calls, al);
	drain_on(d, DRAIN_RESULT, bursts_on_result, al);
	drain_on(d, DRAIN_CALL, behaviour_on_call, al);
	drain_on(d, DRAIN_SAMPLE, sampled_on_record, al);
	drain_on(d, DRAIN_MAPPING, mappings_on_record, al);
	if (inprocess_wanted(al->run->cfg))
		return inprocess_open(al, e);
	return al->samples_first ? 0 : exact_open(al, e);
}

static void alloc_decline(struct alloc *al)
{
	alloc_set_tier(al, ALLOC_TIER_DECLINED);
	snprintf(
		al->reason, sizeof(al->reason),
		"exact allocation tracing is off: %s allocations a second would cost about %.0f %% of a CPU "
		"(limit %.3g %%); --alloc=exact forces it, --max-overhead raises the limit",
		unit_count((int64_t)al->calls_per_s).s, al->cost_percent,
		al->run->cfg->max_overhead);
}

/*
 * Looks before it leaps: what would exact tracing cost these processes? Over the limit it stays
 * off, unless the user insists: then what to expect is said first.
 */
static int alloc_look(struct alloc *al, struct err *e)
{
	uint64_t enough = governor_enough(alloc_probes_pair_ns(al->probes),
					  al->run->cfg->max_overhead, RATE_BURST_MS);
	int rc = alloc_probes_rate(al->probes, al->run->cfg->pids, al->run->cfg->n_pids,
				   RATE_BURST_MS, enough, &al->calls_per_s, e);

	if (rc < 0)
		return rc;
	al->cost_percent = governor_percent(al->calls_per_s, alloc_probes_pair_ns(al->probes));
	if (al->cost_percent <= al->run->cfg->max_overhead || al->run->cfg->alloc == ALLOC_BURSTS)
		return 0;
	if (al->run->cfg->alloc == ALLOC_AUTO &&
	    (al->may_sample || !session_bursts(al->run->session))) {
		alloc_decline(al);
	} else if (al->run->cfg->alloc == ALLOC_AUTO) {
		alloc_set_tier(al, ALLOC_TIER_BURSTS);
		snprintf(
			al->reason, sizeof(al->reason),
			"every allocation, %s a second, would cost about %.0f %% of a CPU to trace: "
			"traced in bursts; --alloc=exact forces it, --max-overhead raises the limit",
			unit_count((int64_t)al->calls_per_s).s, al->cost_percent);
	} else {
		snprintf(
			al->reason, sizeof(al->reason),
			"--alloc=exact: %s allocations a second cost about %.0f %% of a CPU while they are traced; "
			"expect the target to run up to %.1f times slower",
			unit_count((int64_t)al->calls_per_s).s, al->cost_percent,
			1 + al->cost_percent / 100);
	}
	return 0;
}

struct add_probes {
	struct alloc *al;
	int rc;
	struct err *e;
};

static void add_probes(void *ctx, const struct target *t)
{
	struct add_probes *add = ctx;

	if (add->rc >= 0)
		add->rc = alloc_probes_add(add->al->probes, t->pid, add->e);
}

/* What is known all the same, where allocations are not. */
static const char *instead(const struct alloc *al)
{
	return al->run->cfg->sources[SOURCE_GROWTH]
		       ? "; growth shows which code first touches new memory"
		       : "";
}

static int trace_calls(struct alloc *al, struct err *e)
{
	struct alloc_probes_stats stats;
	struct add_probes add = { al, 0, e };
	int rc, found;

	rc = alloc_probes_new(al->run->session, al->run->dict, al->run->procs,
			      al->run->cfg->file_scope, al->run->cfg->python_objects, &al->probes,
			      e);
	if (rc < 0)
		return rc;
	found = behaviour_find(al);
	if (al->run->cfg->n_pids) {
		rc = alloc_look(al, e);
		if (rc == 0 && al->run->alloc.tier == ALLOC_TIER_DECLINED)
			return sampled_instead(al, e);
		if (rc < 0)
			return rc;
	}
	if (al->run->cfg->alloc == ALLOC_BURSTS && !session_bursts(al->run->session))
		return err_set(
			e, -EOPNOTSUPP,
			"--alloc=bursts needs a kernel with uprobe sessions (6.13 and later)");
	if (al->run->cfg->alloc == ALLOC_BURSTS)
		alloc_set_tier(al, ALLOC_TIER_BURSTS);
	if (found && al->run->alloc.tier != ALLOC_TIER_BURSTS) {
		alloc_set_tier(al, ALLOC_TIER_BURSTS);
		snprintf(
			al->reason, sizeof(al->reason),
			"its allocation functions have no names and were found by their behaviour; which "
			"functions free is not known: traced in bursts");
	}
	if (al->run->alloc.tier == ALLOC_TIER_BURSTS)
		alloc_probes_burst(al->probes);
	targets_each(al->run, add_probes, &add);
	if (add.rc < 0)
		return add.rc;
	alloc_probes_stats(al->probes, &stats);
	if (!stats.functions && *al->sampler_advice) {
		al->run->notes.partial |= al->run->cfg->alloc_asked;
		snprintf(al->reason, sizeof(al->reason), "%.390s", al->sampler_advice);
		alloc_set_tier(al, ALLOC_TIER_OFF);
		return 0;
	}
	if (!stats.functions && targets_count(al->run).live && !al->run->cfg->command &&
	    !al->run->cfg->all)
		run_note(
			al->run, al->run->cfg->alloc_asked,
			"no allocator function was found in the files this process maps%s%s%s%s",
			stats.nameless[0] ? ": " : "", stats.nameless,
			stats.nameless[0]
				? " is stripped and no debug file of it is installed (put one below /usr/lib/debug, or do not strip it)"
				: ": memscope does not know its allocator",
			instead(al));
	run_say(al->run,
		"%u allocator functions in %u files, %u links; room for %s live blocks, each takes 128 "
		"bytes of kernel memory when in use, 16 to 32 otherwise",
		stats.functions, stats.files, stats.attached,
		unit_count(session_map_max(al->run->session, SESSION_BLOCKS)).s);
	alloc_begun(al);
	/* Bursts begin when the gate is open. */
	return al->run->alloc.tier == ALLOC_TIER_BURSTS ? 0 : exact_start(al, e);
}

static int attach(void *self, struct err *e)
{
	struct alloc *al = self;

	sampled_preloaded(al);
	if (al->run->cfg->alloc == ALLOC_OFF)
		return 0;
	if (inprocess_wanted(al->run->cfg))
		return injections_begin(al, e);
	return al->samples_first ? sampled_start(al, e) : trace_calls(al, e);
}

static int start(void *self, struct err *e)
{
	struct alloc *al = self;
	int rc = 0;

	if (inprocess_wanted(al->run->cfg))
		return inprocess_start(al, e);
	if (al->run->alloc.tier == ALLOC_TIER_BURSTS)
		rc = bursts_start(al, now_ns(), e);
	return rc == 0 ? injections_hook(al, e) : rc;
}

static int entered(void *self, pid_t pid, bool held, struct err *e)
{
	struct alloc *al = self;

	return inprocess_wanted(al->run->cfg) ? inprocess_entered(al, pid, held, e) : 0;
}

/* --- while it runs --- */

static void process(void *self, const struct process_event *event)
{
	const struct alloc_tier_ops *ops = ops_now(self);
	struct alloc *al = self;

	if (event->listed && (event->kind == PROCESS_ENDED || event->kind == PROCESS_EXEC))
		al->ended_since_sweep = true;
	if (ops && ops->process)
		ops->process(al, event);
}

int alloc_add_errors(struct alloc *al, stack_id stack, labels_id labels,
		     const struct value_error allocated[2], const struct value_error live[2])
{
	struct profile *alloc = al->run->profiles[PROFILE_ALLOC],
		       *heap = al->run->profiles[PROFILE_HEAP];
	int rc = 0;

	for (uint32_t i = 0; i < 2 && rc == 0; i++) {
		if (alloc && allocated)
			rc = profile_add_error(alloc, stack, labels, i, &allocated[i]);
		if (rc == 0 && heap && allocated)
			rc = profile_add_error(heap, stack, labels, i, &allocated[i]);
		if (rc == 0 && heap && live && live[i].samples > 0)
			rc = profile_add_error(heap, stack, labels, 2 + i, &live[i]);
	}
	return rc;
}

void alloc_say_failed(struct alloc *al)
{
	struct alloc_probes_stats stats;

	if (!al->probes)
		return;
	alloc_probes_stats(al->probes, &stats);
	if (stats.own_new)
		run_note(
			al->run, false,
			"the allocator in use has an operator new that does not call malloc and whose return sites are unknown: C++ new is not traced");
	al->unnamed = *stats.hidden || (*stats.nameless && !stats.functions);
	if (*stats.hidden)
		run_note(
			al->run, al->run->cfg->alloc_asked,
			"%s has %s linked in, going by its messages, and is stripped: those allocations are not traced; install its debug file (below /usr/lib/debug, or where its .gnu_debuglink says), or do not strip it%s%s%s",
			stats.hidden, stats.hidden_name,
			*al->unfound ? " (its functions were looked for by their behaviour: " : "",
			al->unfound, *al->unfound ? ")" : "");
	if (*stats.objects_hidden)
		run_note(
			al->run, true,
			"--python-objects: not all calls of %s's object allocator can be seen (they are inlined, it has no symbols, or this is not Linux 6.6 or later on x86-64): its objects are not traced; how much they take is in the RSS breakdown",
			stats.objects_hidden);
	else if (al->run->cfg->python_objects && !al->run->cfg->inject && !stats.objects)
		run_note(al->run, true,
			 "--python-objects: no CPython was found in these processes");
	if (stats.failed)
		run_note(al->run, true, "%u allocator functions could not be probed: %s",
			 stats.failed, stats.failed_why);
	if (stats.unread)
		run_note(al->run, true,
			 "%u files could not be searched for allocator functions: %s", stats.unread,
			 stats.unread_why);
	if (!stats.functions && al->run->cfg->all && al->run->alloc.tier == ALLOC_TIER_EXACT)
		run_note(al->run, true, "no allocator function was found on this host");
}

/* It has come to cost too much: in bursts from now on. What is live is no longer known. */
static int alloc_to_bursts(struct alloc *al)
{
	uint64_t closed_ns = session_burst_close(al->run->session);
	double traced_s = (double)(closed_ns - session_start_ns(al->run->session)) / 1e9;

	mappings_end(al);
	pipeline_drain(al->run, NULL);
	snprintf(al->reason, sizeof(al->reason),
		 "every call was traced for %.1f s, until that cost more than the %.2g %% of a CPU "
		 "that the limit of %.3g %% leaves for it; --alloc=exact forces it, --max-overhead "
		 "raises the limit",
		 traced_s, al->limit_percent, al->run->cfg->max_overhead);
	return bursts_start(al, closed_ns, NULL);
}

/* Auto mode promised a limit; the rate has grown past it. */
static void alloc_stop(struct alloc *al)
{
	alloc_ended(al, now_ns());
	snprintf(
		al->reason, sizeof(al->reason),
		"exact allocation tracing stopped after %.1f s: it began to cost more than the %.2g %% of a "
		"CPU that the limit of %.3g %% leaves for it; --alloc=exact forces it, --max-overhead raises "
		"the limit",
		(double)(al->run->alloc.to_ns - session_start_ns(al->run->session)) / 1e9,
		al->limit_percent, al->run->cfg->max_overhead);
	session_gate_alloc(al->run->session, false);
	mappings_end(al);
	pipeline_drain(al->run, NULL);
	alloc_say_failed(al);
	alloc_probes_free(TAKE_PTR(al->probes));
}

static void govern(struct alloc *al)
{
	if (!al->limiter || !exact_limiter_over(al->limiter) || !alloc_is(al, ALLOC_TIER_EXACT))
		return;
	exact_limiter_free(TAKE_PTR(al->limiter));
	if (!session_bursts(al->run->session) || alloc_to_bursts(al) < 0)
		alloc_stop(al);
}

static void tick(void *self, uint64_t now)
{
	const struct alloc_tier_ops *ops;
	struct alloc *al = self;

	govern(al);
	mappings_tick(al, now);
	ops = ops_now(al);
	if (ops && ops->tick)
		ops->tick(al, now);
	injections_tick(al);
}

static void before_totals(void *self)
{
	bursts_flip(self);
}

static void after_totals(void *self)
{
	struct alloc *al = self;

	if (al->table)
		al->run->oom |= alloc_table_read(al->table) < 0;
	inprocess_totals(al);
	bursts_read(al);
}

static void drained(void *self, uint64_t now)
{
	const struct alloc_tier_ops *ops = ops_now(self);
	struct alloc *al = self;

	if (al->table && alloc_table_filling(al->table))
		pipeline_sooner(al->run);
	if (ops && ops->drained && al->ended_since_sweep)
		ops->drained(al, now);
}

static double cost(void *self, struct cost_window *w)
{
	const struct alloc_tier_ops *ops = ops_now(self);

	w->fixed_ns = 0;
	return ops ? ops->percent(self, w) : 0;
}

static void limit(void *self, double percent)
{
	const struct alloc_tier_ops *ops = ops_now(self);
	struct alloc *al = self;

	al->limit_percent = percent;
	if (ops && ops->limit)
		ops->limit(al, percent);
}

void alloc_tell(const struct alloc *al, const stack_id *stack, double bytes, uint64_t from_ns,
		uint64_t to_ns)
{
	const struct alloc_state *state = &al->run->alloc;

	if (state->allocated)
		state->allocated(state->allocated_ctx, stack, bytes, from_ns, to_ns);
}

static void row(void *self, uint64_t now)
{
	const struct alloc_tier_ops *ops = alloc_ops(self);
	struct alloc *al = self;

	if (ops && ops->add && ops->adds_rows)
		al->run->oom |= ops->add(al, false) < 0;
	if (alloc_is(al, ALLOC_TIER_BURSTS))
		live_row(al, now);
}

/* Estimates so far are in the profiles before a part of these is taken. */
static int boundary(void *self, bool after, struct err *e)
{
	const struct alloc_tier_ops *ops = alloc_ops(self);
	int rc = after && ops && ops->add ? ops->add(self, true) : 0;

	return rc < 0 ? err_set(e, rc, "out of memory: the profiles are not complete") : 0;
}

static int snapshot(void *self, struct profile_since *since, struct profile_now *now, struct err *e)
{
	const struct alloc_tier_ops *ops = alloc_ops(self);

	(void)e;
	return ops && ops->snapshot ? ops->snapshot(self, since, now) : 0;
}

/* --- the end --- */

static void closing(void *self)
{
	const struct alloc_tier_ops *ops;
	struct alloc *al = self;

	govern(al);
	exact_limiter_free(TAKE_PTR(al->limiter));
	ops = ops_now(al);
	if (!ops)
		return;
	if (ops->closing)
		ops->closing(al);
	if (!al->run->alloc.to_ns)
		pipeline_totals(al->run, NULL); /* for the last row; an error shows again later */
}

static void closed(void *self)
{
	_cleanup_(trap_cost_closep) struct trap_cost *trap = NULL;
	struct alloc *al = self;
	double ns;

	inprocess_stop(al);
	injections_end(al);
	if (alloc_is(al, ALLOC_TIER_EXACT) && !inprocess_wanted(al->run->cfg)) {
		ns = trap_cost_open(al->run->session, TRAP_EMULATED, &trap) == 0
			     ? trap_cost_ns(trap)
			     : 0;
		al->trap_ns = alloc_probes_hit_ns(al->probes, ns > 0 ? ns : BUDGET_TRAP_NS);
	}
	if (al->run->alloc.from_ns && !al->run->alloc.to_ns)
		alloc_ended(al, al->run->clock.end_ns);
}

static void stop_alloc(void *self)
{
	struct alloc *al = self;

	sampled_stop(al);
	alloc_say_failed(al);
	alloc_probes_free(TAKE_PTR(al->probes));
}

static int finish(void *self, struct err *e)
{
	const struct alloc_tier_ops *ops = alloc_ops(self);

	return ops && ops->finish ? ops->finish(self, e) : 0;
}

static void free_alloc(void *self)
{
	struct alloc *al = self;

	inprocess_close(al);
	bursts_close(al);
	exact_limiter_free(al->limiter);
	alloc_probes_free(al->probes);
	sampled_free(al);
	syscall_watch_fini(&al->syscalls);
	mappings_free(al->mappings);
	alloc_table_close(al->table);
	profile_free(al->run->alloc.sites);
}

const struct component alloc_component = {
	.name = "allocations",
	.size = sizeof(struct alloc),
	.wanted = wanted,
	.command = command,
	.prepare = prepare,
	.open = open_alloc,
	.attach = attach,
	.start = start,
	.entered = entered,
	.process = process,
	.tick = tick,
	.before_totals = before_totals,
	.after_totals = after_totals,
	.drained = drained,
	.row = row,
	.share = BUDGET_ALLOCATIONS,
	.source = SOURCE_ALLOC,
	.cost = cost,
	.limit = limit,
	.cost_report = alloc_cost_report,
	.boundary = boundary,
	.snapshot = snapshot,
	.closing = closing,
	.closed = closed,
	.stop = stop_alloc,
	.finish = finish,
	.report = alloc_report,
	.write = alloc_write,
	.free = free_alloc,
};
