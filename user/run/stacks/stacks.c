#include "run/stacks/stacks.h"

#include <stdlib.h>
#include <string.h>

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	const char *cache = getenv("MEMSCOPE_UNWIND_CACHE"); /* for tests and benchmarks */

	if (cache)
		opts->unwind_cache = !strcmp(cache, "check") ? SESSION_UNWIND_CACHE_CHECK
				     : !strcmp(cache, "off") ? SESSION_UNWIND_CACHE_OFF
							     : SESSION_UNWIND_CACHE;
	return tables_prepare(self, &opts->unwind_bytes, e);
}

static int open_stacks(void *self, struct err *e)
{
	struct stacks *st = self;

	drain_on(st->run->drain, DRAIN_DEFERRED, on_deferred, st);
	return tables_open(st, e);
}

static int attach(void *self, struct err *e)
{
	struct stacks *st = self;

	ingest_on_incomplete(st->run->ingest, on_incomplete, st);
	return tables_begin(st, e);
}

static void process(void *self, const struct process_event *event)
{
	struct stacks *st = self;

	switch (event->kind) {
	case PROCESS_REMAPPING:
		deferred_before(st, event->pid, event->ns);
		break;
	case PROCESS_MAPPED:
	case PROCESS_EXEC:
		tables_changed(st, event->pid);
		break;
	case PROCESS_LISTED:
		if (st->run->cfg->n_groups)
			tables_changed(st, event->pid);
		break;
	case PROCESS_FORKED:
		tables_forked(st, event->pid);
		break;
	case PROCESS_ENDED:
		tables_ended(st, event->pid);
		break;
	case PROCESS_HELD:
		tables_held(st);
		break;
	default:
		break;
	}
}

static void processes(void *self, uint64_t ns)
{
	tables_read(self, ns);
}

static void tick(void *self, uint64_t now)
{
	(void)now;
	tables_tick(self);
}

static void walk(void *self)
{
	struct stacks *st = self;

	if (!st->deferred)
		return;
	pipeline_processes(st->run);
	deferred_walk(st, false);
}

static void stop(void *self)
{
	tables_say(self);
}

static void drained_last(void *self, bool whole)
{
	if (whole) {
		deferred_walk(self, false);
		tables_settle(self);
		deferred_walk(self, true);
	}
	deferred_say(self);
}

static void report(void *self, struct run_summary *to)
{
	uint64_t v[N_SOURCES][N_STACK_VERDICTS];
	struct stacks *st = self;

	drain_verdicts(st->run->drain, v);
	for (int i = 0; i < N_SOURCES; i++) {
		for (int j = 0; j < N_STACK_VERDICTS; j++)
			v[i][j] += st->finished[i][j];
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
	incomplete_facts(st, to);
	tables_facts(st, to);
}

static void free_stacks(void *self)
{
	tables_close(self);
	deferred_free(self);
	incomplete_free(self);
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
