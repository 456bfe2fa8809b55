/*
 * Goroutines of the Go programs that are profiled: how many there are, what they wait for, where, how long.
 */
#include "collect/stacks/goroutines.h"
#include "analyse/goroutines.h"
#include "base/clock.h"
#include "base/units.h"
#include "run/component.h"
#include "run/look_again.h"
#include "run/pipeline.h"

#include <errno.h>
#include <stdio.h>

#define ROWS 30

struct goroutines_part {
	struct run *run;
	struct goroutines *looks;
	struct look_again again;
	struct goroutine_row rows[ROWS];
	struct goroutine_use *uses; /* in the end */
	uint32_t n_uses;
	char version[24];
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU];
}

static int open_goroutines(void *self, struct err *e)
{
	struct goroutines_part *g = self;

	g->looks = goroutines_new(g->run->dict, g->run->procs);
	return g->looks ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int attach(void *self, struct err *e)
{
	struct goroutines_part *g = self;

	(void)e;
	goroutines_begin(g->looks, g->run->ingest);
	return 0;
}

static int start(void *self, struct err *e)
{
	(void)e;
	goroutines_start(((struct goroutines_part *)self)->looks, now_ns());
	return 0;
}

static bool look(void *self, pid_t pid, uint64_t now)
{
	return goroutines_add(((struct goroutines_part *)self)->looks, pid, now);
}

static void process(void *self, const struct process_event *event)
{
	look_again_process(&((struct goroutines_part *)self)->again, event, look, self, now_ns());
}

static void tick(void *self, uint64_t now)
{
	struct goroutines_part *g = self;

	look_again_tick(&g->again, look, self, now);
	goroutines_tick(g->looks, now, false);
}

static void closing(void *self)
{
	goroutines_tick(((struct goroutines_part *)self)->looks, now_ns(), true);
}

/* --- in the end ------------------------------------------------------------------------------- */

static int add_uses(struct profile *p, const struct goroutine_use *uses, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const int64_t values[] = { uses[i].now, uses[i].waits_n, uses[i].time_ns };

		if (profile_add(p, uses[i].stack, uses[i].labels, values) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int finish(void *self, struct err *e)
{
	struct goroutines_part *g = self;
	struct profile *p = g->run->profiles[PROFILE_GOROUTINE];

	g->n_uses = goroutines_n_uses(g->looks);
	g->uses = calloc(g->n_uses + 1ul, sizeof(*g->uses));
	if (!g->uses)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	goroutines_uses(g->looks, g->uses);
	if (p && add_uses(p, g->uses, g->n_uses) < 0)
		return err_set(e, -ENOMEM, "out of memory: the profiles are not complete");
	return 0;
}

/* Goroutines are where they were at the last look; stops and times are of the run up to now. */
static int snapshot(void *self, struct profile_since *since, struct profile_now *now, struct err *e)
{
	const struct profile_row *row = &profile_rows[PROFILE_GOROUTINE];
	struct goroutines_part *g = self;
	uint32_t n = goroutines_n_uses(g->looks);
	_cleanup_(freep) struct goroutine_use *uses = calloc(n + 1ul, sizeof(*uses));
	_cleanup_(profile_freep) struct profile *p =
		profile_new(g->run->dict, row->types, row->n_types);

	if (!since->goroutines || now->profiles[PROFILE_GOROUTINE])
		return 0;
	if (!uses || !p)
		return err_set(e, -ENOMEM, "out of memory for a profile");
	goroutines_uses(g->looks, uses);
	if (add_uses(p, uses, n) < 0)
		return err_set(e, -ENOMEM, "out of memory for a profile");
	now->profiles[PROFILE_GOROUTINE] = TAKE_PTR(p);
	return 0;
}

static void rank(struct goroutines_part *g, struct run_summary *to)
{
	_cleanup_(freep) struct goroutine_stack *stacks = calloc(g->n_uses + 1ul, sizeof(*stacks));

	for (uint32_t i = 0; i < g->n_uses && stacks; i++) {
		const struct goroutine_use *u = &g->uses[i];

		stacks[i] = (struct goroutine_stack){ .stack = u->stack,
						      .reason = u->reason,
						      .peer = u->peer,
						      .waits = u->waits,
						      .now = u->now,
						      .time_ns = u->time_ns,
						      .waits_n = u->waits_n,
						      .longest_ns = u->longest_ns };
	}
	to->goroutines.rows = g->rows;
	if (stacks)
		to->goroutines.n_rows =
			row_count(goroutines_rank(g->run->dict, stacks, g->n_uses, g->rows, ROWS));
}

static void report(void *self, struct run_summary *to)
{
	struct goroutines_part *g = self;
	struct goroutines_figures f = goroutines_figures(g->looks);

	snprintf(g->version, sizeof(g->version), "Go %u.%u.%u", f.version >> 16 & 0xff,
		 f.version >> 8 & 0xff, f.version & 0xff);
	to->goroutines.processes = f.processes;
	to->goroutines.version = g->version;
	to->goroutines.untested = f.untested;
	to->goroutines.refused = f.refused;
	to->goroutines.why = f.why;
	to->goroutines.looks = f.looks;
	to->goroutines.looked = f.looked;
	to->goroutines.moved = f.moved;
	to->goroutines.unreadable = f.unreadable;
	to->goroutines.cut = f.cut;
	to->goroutines.most_part = f.most_part;
	to->goroutines.now = f.now;
	to->goroutines.running = f.running;
	to->goroutines.system = f.system;
	rank(g, to);
	if (f.untested)
		run_note(
			g->run, false,
			"Goroutines of %s: memscope was never tried with this version; compare them with the "
			"program's own profile",
			g->version);
	if (f.left_out)
		run_note(
			g->run, false,
			"%s goroutines, each time that they were seen, are in no row and in no profile: they were "
			"in too many places",
			unit_count((int64_t)f.left_out).s);
	if (f.refused)
		run_note(g->run, false, "Goroutines of %u Go program%s are not shown: %s",
			 f.refused, f.refused == 1 ? "" : "s", f.why);
}

static void free_goroutines(void *self)
{
	struct goroutines_part *g = self;

	goroutines_free(g->looks);
	free(g->uses);
}

const struct component goroutines_component = {
	.name = "goroutines",
	.size = sizeof(struct goroutines_part),
	.wanted = wanted,
	.open = open_goroutines,
	.attach = attach,
	.start = start,
	.process = process,
	.tick = tick,
	.closing = closing,
	.snapshot = snapshot,
	.finish = finish,
	.report = report,
	.free = free_goroutines,
};
