/*
 * Whole user stacks in a run (collect/stacks/user_stacks.h): what happens to processes goes there, and what it
 * came to into the summary.
 */
#include "base/clock.h"
#include "collect/stacks/user_stacks.h"
#include "proc/launch.h"
#include "run/component.h"
#include "run/look_pause.h"
#include "run/monitors.h"
#include "run/own_share.h"
#include "run/pipeline.h"
#include "run/targets.h"
#include "run/tasks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS 50000000ULL /* between two looks at what threads wait for, at least */

struct stacks {
	struct run *run;
	struct user_stacks_langs langs;
	struct user_stacks *user;
	struct monitors monitors;
	struct tasks tasks;
	uint64_t next_look_ns; /* at monitors and tasks */
	struct summary_stacks rows[N_SOURCES];
};

static void read_processes(void *ctx)
{
	pipeline_processes(ctx);
}

static bool is_target(void *ctx, pid_t pid)
{
	return target_of(ctx, pid) != NULL;
}

static bool is_before_exec(void *ctx, pid_t pid)
{
	const struct run *r = ctx;

	return r->cfg->delay_s <= 0 && pid == targets_command(r);
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	const char *cache = getenv("MEMSCOPE_UNWIND_CACHE"); /* for tests and benchmarks */
	struct stacks *st = self;
	struct run *r = st->run;
	const struct user_stacks_env env = {
		.dict = r->dict,
		.procs = r->procs,
		.loop = r->loop,
		.wanted = r->cfg->user_stacks,
		.all = r->cfg->all,
		.alloc = r->cfg->sources[SOURCE_ALLOC],
		.langs = !r->cfg->no_langs,
		.only_langs = r->cfg->langs,
		.native_frames = r->cfg->native_frames,
		.lazy = r->cfg->all && r->cfg->serve,
		.command = r->cfg->command != NULL,
		.pids = r->cfg->pids,
		.n_pids = r->cfg->n_pids,
		.mem_mb = r->cfg->mem_mb,
		.n_deferred = &r->counts.deferred,
		.oom = &r->oom,
		.read_processes = read_processes,
		.is_target = is_target,
		.is_before_exec = is_before_exec,
		.in_a_hurry = run_in_a_hurry,
		.ctx = r,
	};

	if (cache)
		opts->unwind_cache = !strcmp(cache, "check") ? SESSION_UNWIND_CACHE_CHECK
				     : !strcmp(cache, "off") ? SESSION_UNWIND_CACHE_OFF
							     : SESSION_UNWIND_CACHE;
	opts->langs = env.langs;
	st->user = user_stacks_new(&env);
	if (!st->user)
		return err_set(e, -ENOMEM, "out of memory");
	return user_stacks_prepare(st->user, &opts->unwind_bytes, e);
}

static int open_stacks(void *self, struct err *e)
{
	struct stacks *st = self;

	return user_stacks_open(st->user, st->run->session, st->run->drain, e);
}

/* A program that has just begun has frames of a language soon: what can be read of its files is read before. */
static void expect_command(struct stacks *st)
{
	char path[PATH_MAX];
	_cleanup_(closep) int fd = launch_open_program(st->run->cfg->command[0], path);
	_cleanup_(closep) int libc = -1;
	Dl_info own;

	if (fd >= 0)
		user_stacks_expect(st->user, fd, path);
	if (dladdr((void *)getenv, &own) && own.dli_fname)
		libc = open(own.dli_fname, O_RDONLY | O_CLOEXEC);
	if (libc >= 0)
		user_stacks_expect(st->user, libc, own.dli_fname);
}

static int attach(void *self, struct err *e)
{
	struct stacks *st = self;
	uint64_t began = now_ns();
	struct user_stacks_tables t;
	int rc = user_stacks_begin(st->user, st->run->ingest, e);

	if (rc == 0 && st->run->cfg->command)
		expect_command(st);

	if (rc == 0 && !st->run->cfg->all && user_stacks_tables(st->user, &t))
		run_say(st->run,
			"unwind tables: %u of %u files, %.1f of %.1f MiB, %llu rows, %u rules; %.1f ms",
			t.resident, t.known, (double)t.table_bytes / 1048576,
			(double)t.pool_bytes / 1048576, (unsigned long long)t.rows, t.rules,
			(double)(now_ns() - began) / 1e6);
	return rc;
}

static void process(void *self, const struct process_event *event)
{
	struct stacks *st = self;

	switch (event->kind) {
	case PROCESS_REMAPPING:
		user_stacks_remapping(st->user, event->pid, event->ns);
		break;
	case PROCESS_EXEC:
		user_stacks_replaced(st->user, event->pid);
		break;
	case PROCESS_MAPPED:
		user_stacks_changed(st->user, event->pid);
		break;
	case PROCESS_LISTED:
		if (st->run->cfg->n_groups)
			user_stacks_changed(st->user, event->pid);
		break;
	case PROCESS_FORKED:
		user_stacks_forked(st->user, event->pid, event->ppid);
		break;
	case PROCESS_ENDED:
		user_stacks_ended(st->user, event->pid);
		break;
	case PROCESS_HELD:
		user_stacks_held(st->user);
		break;
	default:
		break;
	}
}

static void processes(void *self, uint64_t ns)
{
	user_stacks_read(((struct stacks *)self)->user, ns);
}

static void tick(void *self, uint64_t now)
{
	struct stacks *st = self;

	user_stacks_allow(st->user, own_share_ns(st->run, SHARE_TABLES));
	user_stacks_tick(st->user);
	if (!st->run->cfg->sources[SOURCE_OFFCPU] || now < st->next_look_ns)
		return;
	st->next_look_ns = now + look_pause(st->run->cfg, LOOK_NS, 20);
	monitors_tick(&st->monitors, st->user, now);
	tasks_tick(&st->tasks, st->user, now);
}

static void walk(void *self)
{
	struct stacks *st = self;

	if (!st->run->counts.deferred)
		return;
	pipeline_processes(st->run);
	user_stacks_walk(st->user, false);
}

/* --- in the end --- */

static void stop(void *self)
{
	struct stacks *st = self;
	struct user_stacks_tables t;

	if (!user_stacks_tables(st->user, &t))
		return;
	run_say(st->run,
		"unwind tables at the end: %u of %u files, %.1f MiB, %llu rows, %u rules; %u "
		"processes, %llu spans in %u lists, put %llu times at %.1f us, %llu times not any more; %llu tables made in "
		"%.1f ms; %llu evicted, %llu of them in use; %llu refused; %llu without room; %u "
		"files unreadable, %u without rows%s%s",
		t.resident, t.known, (double)t.table_bytes / 1048576, (unsigned long long)t.rows,
		t.rules, t.processes, (unsigned long long)t.spans, t.lists,
		(unsigned long long)t.put, t.put ? (double)t.put_ns / 1e3 / (double)t.put : 0,
		(unsigned long long)t.not_put, (unsigned long long)t.built,
		(double)t.build_ns / 1e6, (unsigned long long)t.evicted,
		(unsigned long long)t.evicted_in_use, (unsigned long long)t.refused,
		(unsigned long long)t.without_room, t.unreadable, t.no_rows, *t.trouble ? ": " : "",
		t.trouble);
}

static void say_deferred(const struct stacks *st)
{
	uint64_t stats[N_STATS], ended[N_SOURCES][N_STACK_VERDICTS], n[N_STACK_VERDICTS] = { 0 };
	char text[200];
	size_t at = 0;

	drain_stats(st->run->drain, stats);
	user_stacks_verdicts(st->user, ended);
	for (int i = 0; i < N_SOURCES; i++)
		for (int j = 0; j < N_STACK_VERDICTS; j++)
			n[j] += ended[i][j];
	for (int j = 0; j < N_STACK_VERDICTS; j++)
		if (n[j] && at < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at, ", %llu %s",
					       (unsigned long long)n[j], stack_verdict_names[j]);
	run_say(st->run,
		"stacks walked in user space: %llu sent%s; not kept, as too many waited: %llu; not sent: %llu too "
		"many at a time, %llu for want of room in the ring",
		(unsigned long long)stats[STAT_STACK_DEFERRED], at ? text : "",
		(unsigned long long)user_stacks_unkept(st->user),
		(unsigned long long)stats[STAT_DEFERRED_LIMITED],
		(unsigned long long)stats[STAT_DEFERRED_RING_FULL]);
	run_say(st->run, "stacks not walked again: %llu",
		(unsigned long long)stats[STAT_STACK_CACHED]);
}

static void drained_last(void *self, bool whole)
{
	struct stacks *st = self;

	if (whole) {
		user_stacks_walk(st->user, false);
		user_stacks_settle(st->user);
		user_stacks_walk(st->user, true);
	}
	say_deferred(st);
}

static void report_incomplete(struct stacks *st, struct run_summary *to)
{
	struct user_stacks_incomplete rows[SUMMARY_INCOMPLETE];
	uint32_t n = user_stacks_incomplete(st->user, rows, SUMMARY_INCOMPLETE);
	struct dict *d = st->run->dict;

	for (uint32_t i = 0; i < n; i++) {
		const char *path = dict_str(d, dict_module_get(d, rows[i].module)->path);

		to->incomplete[to->n_incomplete++] = (struct summary_incomplete){
			.module = *path ? path : "[unknown]",
			.verdict = stack_verdict_names[rows[i].verdict],
			.events = rows[i].events,
		};
	}
}

static void report_tables(const struct stacks *st, struct run_summary *to)
{
	struct user_stacks_tables t;

	if (!user_stacks_tables(st->user, &t))
		return;
	to->unwind.known = true;
	to->unwind.files = t.known;
	to->unwind.resident = t.resident;
	to->unwind.bytes = t.table_bytes + t.span_bytes;
	to->unwind.budget_bytes = t.pool_bytes;
	to->unwind.rows = t.rows;
	to->unwind.rules = t.rules;
	to->unwind.spans = t.spans;
	to->unwind.processes = t.processes;
	to->unwind.made = t.built;
	to->unwind.made_ns = t.build_ns;
	to->unwind.put_off = t.put_off;
	to->unwind.evicted = t.evicted;
	to->unwind.evicted_in_use = t.evicted_in_use;
	to->unwind.refused = t.refused;
	to->unwind.left_out = t.without_room;
	to->unwind.unreadable = t.unreadable;
	to->unwind.without_rows = t.no_rows;
	to->unwind.trouble = t.trouble;
}

static void report_langs(struct stacks *st, struct run_summary *to)
{
	struct user_stacks_langs *l = &st->langs;
	uint64_t stats[N_STATS];

	if (!user_stacks_langs(st->user, l))
		return;
	drain_stats(st->run->drain, stats);
	to->langs = (struct summary_langs){
		.processes = l->processes,
		.name = l->name,
		.untested = l->untested,
		.unreadable = l->unknown,
		.trouble = l->trouble,
		.left_out = l->no_room,
		.named = l->named,
		.gone = l->gone,
		.damaged = l->damaged,
		.native = l->native,
		.lost = stats[STAT_LANG_LOST] + l->lost,
		.misplaced = stats[STAT_LANG_SHORT] + l->misplaced,
	};
}

static void report(void *self, struct run_summary *to)
{
	uint64_t v[N_SOURCES][N_STACK_VERDICTS], here[N_SOURCES][N_STACK_VERDICTS];
	struct stacks *st = self;

	drain_verdicts(st->run->drain, v);
	user_stacks_verdicts(st->user, here);
	for (int i = 0; i < N_SOURCES; i++) {
		for (int j = 0; j < N_STACK_VERDICTS; j++)
			v[i][j] +=
				here[i][j] + (i == SOURCE_ALLOC ? st->run->alloc.verdicts[j] : 0);
		if (!st->run->cfg->sources[i])
			continue;
		st->rows[to->n_stacks++] = (struct summary_stacks){
			.source = source_names[i],
			.complete = v[i][STACK_COMPLETE],
			.truncated = v[i][STACK_TRUNCATED],
			.guessed = v[i][STACK_GUESSED],
			.no_table = v[i][STACK_NO_TABLE],
			.unreadable = v[i][STACK_UNREADABLE],
			.lost = v[i][STACK_LOST],
		};
	}
	to->stacks = st->rows;
	report_incomplete(st, to);
	report_tables(st, to);
	report_langs(st, to);
	monitors_report(&st->monitors, to);
	tasks_report(&st->tasks, st->run->dict, to);
}

static void free_stacks(void *self)
{
	struct stacks *st = self;

	tasks_free(&st->tasks);
	user_stacks_free(st->user);
}

const struct component stacks_component = {
	.name = "stacks",
	.size = sizeof(struct stacks),
	.prepare = prepare,
	.open = open_stacks,
	.attach = attach,
	.process = process,
	.processes = processes,
	.tick = tick,
	.stacks = walk,
	.stop = stop,
	.drained_last = drained_last,
	.report = report,
	.free = free_stacks,
};
