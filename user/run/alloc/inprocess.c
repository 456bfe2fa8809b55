/*
 * --alloc=exact --inject: every call is recorded by memscope's library in the processes themselves
 * (preload/exact_area.h), and read here. No probe, and no trap.
 */
#include "collect/stream/inprocess.h"
#include "base/units.h"
#include "run/alloc/alloc.h"

#include <errno.h>
#include <string.h>

#define SHARE 3 /* of --mem, for the live blocks of all processes together */

bool inprocess_wanted(const struct run_config *cfg)
{
	return cfg->inject && cfg->alloc == ALLOC_EXACT;
}

int inprocess_open(struct alloc *al, struct err *e)
{
	al->run->alloc.sites = profile_new(al->run->dict, alloc_site_types, N_SITE_VALUES);
	if (!al->run->alloc.sites)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* The unwind tables are there. */
static int begin_one(struct alloc *al, struct injection *one, struct err *e)
{
	struct alloc_table_fns fns = exact_table_fns(al);
	uint32_t n = al->run->cfg->n_pids ? al->run->cfg->n_pids : 1;
	uint64_t bytes = ((uint64_t)al->run->cfg->mem_mb << 20) / SHARE / n;
	int rc = inprocess_new(al->run->session, al->run->ingest, one->pid, one->area_fd, bytes,
			       &fns, &one->inprocess, e);

	if (rc == -EAGAIN)
		return err_set(e, -ESRCH, "process %d: nothing is known of what it has mapped",
			       (int)one->pid);
	if (rc < 0)
		return rc;
	rc = inject_map(one->in, e);
	if (rc == 0)
		inprocess_gate(one->inprocess, true);
	return rc;
}

int inprocess_start(struct alloc *al, struct err *e)
{
	int rc = 0;

	for (struct injection *one = al->injections; one && rc == 0; one = one->next)
		rc = begin_one(al, one, e);
	if (rc < 0)
		return rc;
	alloc_set_tier(al, ALLOC_TIER_EXACT);
	rc = injections_hook(al, e);
	alloc_begun(al);
	return rc;
}

/* All but the constructors of its libraries is recorded, if it is held. */
static int begin_command(struct alloc *al, pid_t pid, bool held, struct err *e)
{
	int rc = injection_begin(al, pid, held, e);

	if (rc < 0)
		return rc;
	pipeline_processes(al->run);
	rc = begin_one(al, al->injections, e);
	return rc == 0 ? injections_hook(al, e) : rc;
}

int inprocess_entered(struct alloc *al, pid_t pid, bool held, struct err *e)
{
	struct err why = { 0 };
	int rc;

	if (held)
		return begin_command(al, pid, true, e);
	rc = begin_command(al, pid, false, &why);
	run_note(
		al->run, true,
		rc < 0 ? "not exact: the command could not be held at its first instruction, and is not "
			 "recorded%s%s"
		       : "not exact: the command could not be held at its first instruction: what it "
			 "allocated before the library was there is not recorded%s%s",
		rc < 0 && *why.msg ? ": " : "", rc < 0 ? why.msg : "");
	return 0;
}

void inprocess_totals(struct alloc *al)
{
	for (struct injection *one = al->injections; one; one = one->next)
		if (one->inprocess)
			al->run->oom |= inprocess_read(one->inprocess) < 0;
}

void inprocess_stop(struct alloc *al)
{
	for (struct injection *one = al->injections; one; one = one->next)
		if (one->inprocess)
			inprocess_gate(one->inprocess, false);
}

static void process(struct alloc *al, const struct process_event *event)
{
	if (event->kind == PROCESS_MAPPED && event->target)
		injections_look(al, event->pid);
	if (event->kind == PROCESS_FORKED && event->child)
		al->unrecorded_children++;
	for (struct injection *one = al->injections; one; one = one->next)
		one->replaced |= event->kind == PROCESS_EXEC && event->pid == one->pid;
}

static void tick(struct alloc *al, uint64_t now)
{
	for (struct injection *one = al->injections; one; one = one->next)
		if (one->inprocess && !one->replaced)
			inprocess_tick(one->inprocess, now);
}

/* Of all processes. */
static struct inprocess_stats sum(const struct alloc *al)
{
	struct inprocess_stats all = { 0 };

	for (const struct injection *one = al->injections; one; one = one->next) {
		struct inprocess_stats s;

		if (!one->inprocess)
			continue;
		inprocess_stats(one->inprocess, &s);
		all.failed += s.failed;
		all.unknown_frees += s.unknown_frees;
		all.reused += s.reused;
		all.full += s.full;
		all.full_bytes += s.full_bytes;
		all.sites_full += s.sites_full;
		all.missed += s.missed;
		all.timed += s.timed;
		all.timed_ns += s.timed_ns;
		all.calls += s.calls;
		all.room += s.room;
		all.no_tables |= s.no_tables;
		all.filtered |= s.filtered;
		if (s.unread)
			all.unread = s.unread;
		for (uint32_t i = 0; i < ALLOC_SIZES; i++)
			all.sizes[i] += s.sizes[i];
		for (uint32_t i = 0; i < N_STACK_VERDICTS; i++)
			all.verdicts[i] += s.verdicts[i];
	}
	return all;
}

static double each_ns(const struct inprocess_stats *s)
{
	return s->timed ? (double)s->timed_ns / (double)s->timed : 0;
}

static double percent(struct alloc *al, const struct cost_window *w)
{
	struct inprocess_stats s = sum(al);
	uint64_t more = s.calls - al->recorded_before;

	al->recorded_before = s.calls;
	return (double)more * each_ns(&s) * 100 / w->window_ns;
}

static int64_t live(struct alloc *al)
{
	return ingest_live_bytes(al->run->ingest);
}

static double total(struct alloc *al)
{
	return exact_ops.total_bytes(al);
}

static int blocks(struct alloc *al, run_block_fn fn, void *fn_ctx, struct err *e)
{
	(void)e;
	for (struct injection *one = al->injections; one; one = one->next)
		if (one->inprocess)
			inprocess_blocks(one->inprocess, fn, fn_ctx);
	return 0;
}

static const struct site_key *site_of(struct alloc *al, const struct drain_block *block)
{
	const struct site_key *site = NULL;

	for (struct injection *one = al->injections; one && !site; one = one->next)
		if (one->inprocess)
			site = inprocess_site(one->inprocess, block->site, &block->proc);
	return site;
}

static int on_block(void *ctx, const struct site_key *site, uint64_t size, uint64_t born_ns)
{
	struct alloc *al = ctx;

	return ingest_block(al->run->ingest, site, (int64_t)size, born_ns);
}

static int finish(struct alloc *al, struct err *e)
{
	int rc = 0;

	for (struct injection *one = al->injections; one && rc == 0; one = one->next)
		if (one->inprocess)
			rc = inprocess_finish(one->inprocess, on_block, al);
	return rc < 0 ? err_set(e, rc, "out of memory: the profiles are not complete") : 0;
}

static int snapshot(struct alloc *al, struct profile_since *since, struct profile_now *now)
{
	return exact_ops.snapshot(al, since, now);
}

static void notes(struct alloc *al, const struct inprocess_stats *s)
{
	struct run *r = al->run;

	if (s->full)
		run_note(
			r, true,
			"the table of live blocks (room for about %s) was full: %s allocations (%s) "
			"are in alloc but not in heap; raise --mem (now %u)",
			unit_count(s->room).s, unit_count((int64_t)s->full).s,
			unit_bytes((int64_t)s->full_bytes).s, r->cfg->mem_mb);
	if (s->sites_full)
		run_note(
			r, true,
			"the table of allocation sites was full: %s allocations are counted without "
			"their stack",
			unit_count((int64_t)s->sites_full).s);
	if (s->missed)
		run_note(r, true,
			 "not exact: %s calls were not recorded: a signal's handler jumped out of "
			 "them, or met too many of its thread, or there were too many threads",
			 unit_count((int64_t)s->missed).s);
	if (s->reused)
		run_note(r, true,
			 "not exact: the addresses of %s blocks came again, and their free was not "
			 "seen: it bypassed the library",
			 unit_count((int64_t)s->reused).s);
	if (s->no_tables)
		run_note(r, true,
			 "there was no room for the unwind tables of libraries that were loaded "
			 "during the run: stacks through them are incomplete");
	if (s->unread)
		run_note(
			r, true,
			"frames of %s are not in these stacks of allocations, which are native: the injected "
			"library reads those of Python alone; without --inject they are there",
			s->unread);
	if (s->filtered)
		run_note(
			r, true,
			"the process has come under seccomp during the run: from then on the library makes no "
			"system calls in its threads, so threads that are new are not recorded, and "
			"stacks of coroutines are incomplete");
	if (al->unrecorded_children)
		run_note(
			r, true,
			"%u forked children were not recorded: --inject records the processes that "
			"are named",
			al->unrecorded_children);
	for (const struct injection *one = al->injections; one; one = one->next)
		if (one->replaced)
			run_note(r, true,
				 "process %d has executed another program, which is not recorded",
				 (int)one->pid);
}

static void report(struct alloc *al, struct summary_alloc *a)
{
	struct inprocess_stats s = sum(al);

	memcpy(al->sizes, s.sizes, sizeof(al->sizes));
	memcpy(al->run->alloc.verdicts, s.verdicts, sizeof(s.verdicts));
	exact_ops.report(al, a);
	a->failed += s.failed;
	a->earlier_frees += s.unknown_frees;
	notes(al, &s);
}

void inprocess_cost(struct alloc *al, struct summary_cost *ret_cost)
{
	struct inprocess_stats s = sum(al);
	double each = each_ns(&s);

	*ret_cost = (struct summary_cost){ "allocations", s.calls, each, 0,
					   (int64_t)((double)s.calls * each) };
}

void inprocess_close(struct alloc *al)
{
	for (struct injection *one = al->injections; one; one = one->next)
		inprocess_free(TAKE_PTR(one->inprocess));
}

const struct alloc_tier_ops inprocess_ops = {
	.process = process,
	.tick = tick,
	.percent = percent,
	.live_bytes = live,
	.total_bytes = total,
	.snapshot = snapshot,
	.blocks = blocks,
	.site = site_of,
	.finish = finish,
	.report = report,
};
