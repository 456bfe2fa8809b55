/*
 * The RSS ledger of the processes that were asked for: at the start what is in use already, now and
 * then where RSS is, and at the end which blocks in use were there before the run. Of control groups that
 * last alone, where every allocation is traced: the rest is container_rss.c's.
 *
 *   the start    probes are on   walk ─► blocks in use then                      (exact tracing only)
 *   the end      before the gate closes   walk ─► blocks in use now
 *                when it has closed       the table of traced blocks
 *
 * A block in use at the end that is in the table was allocated in the run; one that is not, and was in
 * use at the start with that address and size, was there before. The table is of a moment after the
 * walk, so what was freed in between is in neither.
 */
#include "base/clock.h"
#include "heap/census.h"
#include "proc/proc_mem.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/memory/rss_csv.h"
#include "run/memory/rss_look.h"
#include "run/output/files.h"
#include "run/pipeline.h"
#include "run/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	PROCESSES_MAX = 64,
	LISTS_SHARE = 4, /* lists of blocks may take this part of --mem, each            */
	LOOKS = 3,       /* at one process, where its allocator was not found at the first        */
};
#define WALK_NS 2000000000LL /* the longest that one walk may take                          */

#define BEFORE_ADDR (UINT64_MAX - 2) /* of the pseudo-frame */

/* One process. */
struct rss_process {
	pid_t pid;
	const struct proc *image; /* whose blocks `at_start` are; another after an exec        */
	bool asked;               /* by its pid, or it is the command: not as a member         */
	bool newborn;             /* it began with the run: nothing was there before           */
	bool started;             /* `at_start` is known and whole                             */
	bool walked;              /* an allocator was found in it by the last look             */
	bool busy;                /* is being looked at: nobody else's row                     */
	struct heap_blocks at_start, at_end;
	uint64_t *traced; /* addresses of the table */
	uint64_t n_traced, room_traced;
	struct ledger ledger; /* the last one           */
};

struct rss_processes {
	struct run *run;
	bool open;     /* it is asked where RSS is  */
	bool written;  /* its file was begun        */
	bool finished; /* finish() was reached */
	struct rss_process rows[PROCESSES_MAX];
	uint32_t n;
	bool behind;   /* maps could not be emptied during a look: that was said */
	bool splits;   /* what is in use at the end is told apart */
	bool complete; /* the last look was the one at the end    */
	bool oom;
	bool full; /* there were more processes at one time   */
	struct rss_csv csv;
	uint64_t next_ns;
	uint64_t at_ns; /* CLOCK_MONOTONIC of the last look */
	uint64_t start_blocks, start_bytes, before_blocks, before_bytes;
};

/* Those that are listed, as it is they that can be told apart later. */
static struct heap_amount live_of(const struct heap_census *c)
{
	struct heap_amount sum = { 0 };

	for (uint32_t i = 0; i < c->n; i++) {
		if (c->use[i].objects)
			continue;
		sum.blocks += c->use[i].live.blocks;
		sum.bytes += c->use[i].live.bytes;
		sum.resident += c->use[i].live.resident;
	}
	return sum;
}

/* While a process is looked at. Others may come meanwhile, and end. */
static void meanwhile(void *ctx)
{
	struct rss_processes *all = ctx;
	struct err e = { 0 };

	if (all->behind || pipeline_keep_up(all->run, &e) == 0)
		return;
	all->behind = true;
	run_note(all->run, true, "%s", e.msg);
}

/* Looked for again where an allocator was there before, or nobody knows. */
static int look_at(struct rss_processes *all, struct rss_process *h, struct heap_blocks *blocks,
		   struct ledger *ret_ledger, struct heap_census *ret_census, struct err *e)
{
	const struct rss_look at = { .pid = h->pid,
				     .budget_ns = WALK_NS,
				     .objects_traced = all->run->cfg->python_objects,
				     .blocks = blocks,
				     .tries = h->walked ? LOOKS : 1 };
	int rc;

	h->busy = true;
	rc = rss_look_beside(&at, meanwhile, all, ret_ledger, ret_census, e);
	h->busy = false;
	h->walked = rc == 0 && ret_census->n;
	return rc;
}

/* Before the loop of the run has begun, and with it the emptying of maps. */
static int look_at_start(const struct rss_processes *all, struct rss_process *h,
			 struct ledger *ret_ledger, struct heap_census *ret_census, struct err *e)
{
	const struct rss_look at = { .pid = h->pid,
				     .budget_ns = WALK_NS,
				     .objects_traced = all->run->cfg->python_objects,
				     .blocks = &h->at_start,
				     .tries = LOOKS };
	int rc = rss_look(&at, ret_ledger, ret_census, e);

	h->walked = rc == 0 && ret_census->n;
	return rc;
}

static void begin_rss_process(struct rss_processes *all, struct rss_process *h)
{
	struct heap_census c;
	struct ledger l;
	struct err e = { 0 };
	int rc;

	h->at_start.max = h->at_end.max =
		((uint64_t)all->run->cfg->mem_mb << 20) / LISTS_SHARE / sizeof(struct heap_block);
	if (h->newborn) {
		h->started = true;
		return;
	}
	if (!all->run->alloc.tracing)
		return;
	rc = look_at_start(all, h, &l, &c, &e);
	if (rc < 0) {
		run_say(all->run, "the blocks in use at the start are unknown: %s", e.msg);
		return;
	}
	h->started = !h->at_start.over;
	if (h->at_start.over)
		run_note(
			all->run, false,
			"process %d had more blocks in use at the start than --mem has room for: pre-existing blocks are not separated",
			(int)h->pid);
	h->image = proc_table_live(all->run->procs, h->pid);
	all->start_blocks += live_of(&c).blocks;
	all->start_bytes += live_of(&c).bytes;
	run_say(all->run, "process %d had %llu blocks in use, %llu bytes: walked in %.1f ms",
		(int)h->pid, (unsigned long long)live_of(&c).blocks,
		(unsigned long long)live_of(&c).bytes, (double)l.took_ns / 1e6);
}

static int ready(void *self, struct err *e)
{
	struct rss_processes *all = self;
	char path[4096];

	if (!all->run->cfg->dir || !all->open || all->run->cfg->n_groups)
		return 0;
	snprintf(path, sizeof(path), "%s/rss_breakdown%s%s.csv", all->run->cfg->dir,
		 all->run->cfg->stamp ? "-" : "", all->run->cfg->stamp ? all->run->cfg->stamp : "");
	rss_csv_open(&all->csv, all->run, path, false);
	all->written = true;
	(void)e;
	return 0;
}

static bool is_listed(const struct rss_processes *all, pid_t pid)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->rows[i].pid == pid)
			return true;
	return false;
}

/* Of those that were asked for, what they had forked before the run. */
static void add_descendant(void *ctx, const struct target *t)
{
	struct rss_processes *all = ctx;

	if (t->ended_ns || is_listed(all, t->pid))
		return;
	all->full |= all->n == PROCESSES_MAX;
	if (all->n < PROCESSES_MAX)
		all->rows[all->n++] = (struct rss_process){ .pid = t->pid };
}

static int start(void *self, struct err *e)
{
	struct rss_processes *all = self;
	const struct run_config *cfg = all->run->cfg;
	pid_t command = targets_command(all->run);

	(void)e;
	all->csv.fd = -1;
	if (cfg->command && command)
		all->rows[all->n++] = (struct rss_process){ .pid = command,
							    .asked = !cfg->n_groups,
							    .newborn = cfg->delay_s <= 0 };
	for (uint32_t i = 0; i < cfg->n_pids && all->n < PROCESSES_MAX; i++)
		all->rows[all->n++] =
			(struct rss_process){ .pid = cfg->pids[i], .asked = !cfg->n_groups };
	if (!cfg->n_groups && cfg->children)
		targets_each(all->run, add_descendant, all);
	all->open = all->n || cfg->n_groups;
	for (uint32_t i = 0; i < all->n; i++)
		begin_rss_process(all, &all->rows[i]);
	return 0;
}

/* Its pid may be another's by now. */
static bool is_over(struct rss_processes *all, const struct rss_process *h)
{
	const struct target *t = target_of(all->run, h->pid);

	return t ? t->ended_ns != 0 : !h->asked;
}

static void add_member(struct rss_processes *all, pid_t pid)
{
	struct rss_process *h = NULL;

	for (uint32_t i = 0; i < all->n; i++)
		if (all->rows[i].pid == pid && !is_over(all, &all->rows[i]))
			return;
	if (all->n < PROCESSES_MAX)
		h = &all->rows[all->n++];
	for (uint32_t i = 0; !h && i < all->n; i++)
		if (!all->rows[i].busy && is_over(all, &all->rows[i])) {
			h = &all->rows[i];
			heap_blocks_free(&h->at_start);
			heap_blocks_free(&h->at_end);
			free(h->traced);
		}
	if (!h) {
		all->full = true;
		return;
	}
	*h = (struct rss_process){ .pid = pid, .newborn = true };
	begin_rss_process(all, h);
}

static void process(void *self, const struct process_event *event)
{
	struct rss_processes *all = self;

	if (all->open && event->kind == PROCESS_ADDED && !event->asked)
		add_member(all, event->pid);
}

static void sum_up(const struct rss_processes *all, struct ledger *ret_sum)
{
	struct ledger sum = { 0 };

	for (uint32_t i = 0; i < all->n; i++)
		if (all->rows[i].ledger.processes)
			ledger_add(&sum, &all->rows[i].ledger);
	*ret_sum = sum;
}

/* false: none of them is left. */
static bool look_at_all(struct rss_processes *all, bool with_blocks)
{
	bool any = false;

	for (uint32_t i = 0; i < all->n; i++) {
		struct rss_process *h = &all->rows[i];
		struct heap_census c;
		struct err e = { 0 };
		struct ledger l;
		int rc = is_over(all, h)
				 ? -ESRCH
				 : look_at(all, h, with_blocks && h->started ? &h->at_end : NULL,
					   &l, &c, &e);

		all->oom |= rc == -ENOMEM;
		if (rc < 0)
			continue;
		/* Of several, those that have ended are in the sum no more. */
		for (uint32_t k = 0; !any && k < all->n; k++)
			all->rows[k].ledger.processes = 0;
		h->ledger = l;
		any = true;
	}
	if (any)
		all->at_ns = now_ns();
	return any;
}

static void row(void *self, uint64_t now)
{
	struct rss_processes *all = self;
	const struct alloc_state *alloc = &all->run->alloc;
	int64_t traced = alloc->live_bytes ? alloc->live_bytes(alloc->live_ctx) : MEM_UNKNOWN;
	uint64_t from = now_ns();
	struct ledger sum;

	(void)now;
	if (!all->open || !all->written || from < all->next_ns || !look_at_all(all, false))
		return;
	all->next_ns = from + budget_look_rest_ns(all->run->cfg, all->at_ns - from);
	sum_up(all, &sum);
	rss_csv_row(&all->csv, &sum, traced);
}

static void closing(void *self)
{
	struct rss_processes *all = self;
	bool exact = all->run->alloc.tracing;

	if (!all->open || (all->run->cfg->n_groups && !exact))
		return;
	row(all, now_ns());
	all->complete = look_at_all(all, exact);
	all->splits = exact && all->complete;
}

static enum drain_says on_block(void *ctx, const void *record, const void *more)
{
	const struct drain_block *block = record;
	struct rss_processes *all = ctx;

	for (uint32_t i = 0; all->splits && i < all->n; i++) {
		struct rss_process *h = &all->rows[i];

		if (h->pid != (pid_t)block->proc.pid || is_over(all, h))
			continue;
		if (h->n_traced == h->room_traced) {
			uint64_t room = h->room_traced ? 2 * h->room_traced : 1024;
			uint64_t *grown = reallocarray(h->traced, room, sizeof(*grown));

			all->oom |= !grown;
			if (!grown)
				return DRAIN_NEXT;
			h->traced = grown;
			h->room_traced = room;
		}
		h->traced[h->n_traced++] = block->addr;
		return DRAIN_NEXT;
	}
	(void)more;
	return DRAIN_NEXT;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Was it in use at the start, as it is now? */
static bool was_there(const struct rss_process *h, const struct heap_block *b)
{
	uint64_t at = heap_blocks_find(&h->at_start, b->addr);

	return at < h->at_start.n && h->at_start.rows[at].addr == b->addr &&
	       h->at_start.rows[at].words == b->words;
}

/* What is in use, by who knows of it. */
static void split(struct rss_processes *all, struct rss_process *h)
{
	struct ledger_row *rows = h->ledger.parts;
	uint64_t at = 0;

	if (h->n_traced)
		qsort(h->traced, h->n_traced, sizeof(*h->traced), by_number);
	for (uint64_t i = 0; i < h->at_end.n; i++) {
		const struct heap_block *b = &h->at_end.rows[i];
		struct heap_amount one = { 1, 8 * (uint64_t)b->words,
					   8 * (uint64_t)b->resident_words };
		enum ledger_part part = LEDGER_LIVE;

		while (at < h->n_traced && h->traced[at] < b->addr)
			at++;
		/* What is aligned in a mapping of its own begins somewhere in it. */
		if (at < h->n_traced && h->traced[at] - b->addr <= one.bytes)
			part = LEDGER_TRACED;
		else if (was_there(h, b))
			part = LEDGER_BEFORE;
		if (part == LEDGER_LIVE)
			continue;
		rss_add(&rows[part], &one);
		rows[LEDGER_LIVE].blocks--;
		rows[LEDGER_LIVE].bytes -= (int64_t)one.bytes;
		rows[LEDGER_LIVE].resident -= (int64_t)one.resident;
	}
	ledger_apportion(&h->ledger);
	all->before_blocks += (uint64_t)rows[LEDGER_BEFORE].blocks;
	all->before_bytes += (uint64_t)rows[LEDGER_BEFORE].bytes;
}

/* Into the heap profile, as what it is. */
static void add_before(struct rss_processes *all, const struct rss_process *h)
{
	const struct ledger_row *row = &h->ledger.parts[LEDGER_BEFORE];
	location_id at = dict_location(all->run->dict, (module_id){ 0 }, BEFORE_ADDR);
	struct line line = { .function = dict_string(all->run->dict, "[before attach]") };
	struct proc *p = proc_table_live(all->run->procs, h->pid);
	struct label labels[] = {
		{ .key = dict_string(all->run->dict, "pid"), .num = h->pid },
		{ .key = dict_string(all->run->dict, "comm"),
		  .str = dict_string(all->run->dict,
				     p && *proc_comm(p) ? proc_comm(p) : "[unknown]") },
	};
	int64_t values[] = { 0, 0, row->blocks, row->bytes };

	if (!row->blocks || !all->run->profiles[PROFILE_HEAP])
		return;
	dict_location_name(all->run->dict, at, &line, 1);
	all->run->oom |=
		profile_add(all->run->profiles[PROFILE_HEAP], dict_stack(all->run->dict, &at, 1),
			    dict_labels(all->run->dict, labels, 2), values) < 0;
}

static int finish(void *self, struct err *e)
{
	struct rss_processes *all = self;

	(void)e;
	all->finished = true;
	if (!all->open)
		return 0;
	if (all->full && !all->run->cfg->n_groups)
		run_note(all->run, false,
			 "the RSS breakdown covers %d processes: there were more at one time",
			 PROCESSES_MAX);
	else if (all->full && all->splits)
		run_note(
			all->run, false,
			"pre-existing blocks are separated in %d processes: there were more at one time",
			PROCESSES_MAX);
	if (all->oom)
		run_note(
			all->run, true,
			"out of memory for the list of blocks: the RSS breakdown does not separate them");
	for (uint32_t i = 0; i < all->n && all->splits && !all->oom; i++) {
		struct rss_process *h = &all->rows[i];

		if (!h->started || !h->ledger.processes || h->at_end.over)
			continue;
		if (proc_table_live(all->run->procs, h->pid) != h->image)
			h->at_start.n = 0;
		split(all, h);
		add_before(all, h);
	}
	return 0;
}

/* Is what was there before known of each that is still there? */
static bool knows_before(const struct rss_processes *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->rows[i].ledger.processes &&
		    (!all->rows[i].started || all->rows[i].at_end.over))
			return false;
	return all->splits && all->finished && !all->oom;
}

static void report(void *self, struct run_summary *to)
{
	const struct rss_processes *all = self;
	uint64_t start = session_start_ns(all->run->session);

	if (!all->open)
		return;
	/* Of groups there is one already, which has more only where there were too many processes here. */
	if (!all->run->cfg->n_groups || (all->splits && !all->full)) {
		sum_up(all, &to->ledger.now);
		to->ledger.now.by_pss = all->run->cfg->n_groups;
		to->ledger.at_ns = all->at_ns > start ? (int64_t)(all->at_ns - start) : 0;
	}
	to->alloc.preexisting_known = knows_before(all);
	to->alloc.preexisting_objects = all->before_blocks;
	to->alloc.preexisting_bytes = all->before_bytes;
	to->alloc.start_objects = all->start_blocks;
	to->alloc.start_bytes = all->start_bytes;
}

static void free_rss(void *self)
{
	struct rss_processes *all = self;

	for (uint32_t i = 0; i < all->n; i++) {
		heap_blocks_free(&all->rows[i].at_start);
		heap_blocks_free(&all->rows[i].at_end);
		free(all->rows[i].traced);
	}
	if (all->open)
		rss_csv_close(&all->csv);
}

static bool wanted(const struct run_config *cfg)
{
	return !cfg->all && !cfg->tid && !cfg->blocks_alone;
}

static int open_rss(void *self, struct err *e)
{
	struct rss_processes *all = self;

	(void)e;
	drain_on(all->run->drain, DRAIN_BLOCK, on_block, all);
	return 0;
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	(void)e;
	if (((struct rss_processes *)self)->written)
		output_written(to, "rss_breakdown", ".csv");
	return 0;
}

const struct component rss_component = {
	.name = "RSS breakdown",
	.size = sizeof(struct rss_processes),
	.wanted = wanted,
	.open = open_rss,
	.start = start,
	.ready = ready,
	.process = process,
	.row = row,
	.closing = closing,
	.finish = finish,
	.report = report,
	.write = write_files,
	.free = free_rss,
};
