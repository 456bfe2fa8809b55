/*
 * --census: every so many seconds a target is stopped for as long as copying its memory takes, and its objects are counted by
 * type. census.csv.
 *
 * Of several targets it is the one that has most private memory when the first census is due, until that ends. The pauses
 * alone stay within --max-overhead: where they would not, the next one comes later.
 */
#include "analyse/census_series.h"
#include "base/units.h"
#include "render/tables/census_csv.h"
#include "run/component.h"
#include "run/memory/census_child.h"
#include "run/output/files.h"
#include "run/targets.h"

#include <stdio.h>
#include <string.h>

enum { LAST_MS = 10000, GROWN = 3 };

/*
 * Bytes of blocks whose references are looked at, for each second from one census to the next: 2 % of a CPU (1 GiB of blocks of 128
 * bytes, with 34 million references, took 5.4 s of one; EPYC, Nov 2026).
 */
#define LINKED_A_SECOND (4 << 20)
#define LINKED_MOST     (256ULL << 20)

struct censuses {
	struct run *run;
	struct census_series *series;
	struct census_child child;
	pid_t pid;                  /* whose objects are counted; 0: nobody's yet   */
	uint32_t n_processes;       /* that were, one after the other               */
	uint64_t begun_ns, next_ns; /* the last one, the next one                   */
	uint64_t longest_ns;        /* between two, where pauses made it longer; 0  */
	uint32_t n_taken, n_failed;
	uint32_t n_unlinked; /* taken without looking at references          */
	char why[512];       /* of the last that failed                      */
};

/* --- of whom --- */

struct choice {
	pid_t pid;
	uint64_t pages;
};

/* Resident pages that no file has. */
static uint64_t private_pages(pid_t pid)
{
	unsigned long long all, resident, shared;
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu %llu %llu", &all, &resident, &shared) != 3)
		return 0;
	return resident > shared ? resident - shared : 0;
}

static void compare(void *ctx, const struct target *t)
{
	struct choice *best = ctx;
	uint64_t pages = t->ended_ns ? 0 : private_pages(t->pid);

	if (pages > best->pages)
		*best = (struct choice){ t->pid, pages };
}

static pid_t choose(struct censuses *c)
{
	struct choice best = { 0 };
	const struct target *t = c->pid ? target_of(c->run, c->pid) : NULL;

	if (t && !t->ended_ns)
		return c->pid;
	targets_each(c->run, compare, &best);
	if (best.pid && best.pid != c->pid) {
		c->pid = best.pid;
		c->n_processes++;
	}
	return best.pid;
}

/* --- one after the other --- */

static uint64_t interval_ns(const struct censuses *c)
{
	return (uint64_t)(c->run->cfg->census_s * 1e9);
}

static void failed(struct censuses *c, const char *why)
{
	c->n_failed++;
	snprintf(c->why, sizeof(c->why), "%.511s", why);
}

static void take_result(struct censuses *c, const struct census_result *found)
{
	double share = c->run->cfg->max_overhead / 100;
	uint64_t least_ns = (uint64_t)((double)found->paused_ns / share);

	if (found->error < 0) {
		failed(c, found->sentence);
		return;
	}
	c->n_taken++;
	c->n_unlinked += !found->is_linked;
	c->run->counts.pauses += found->n_pauses;
	c->run->counts.paused_ns += found->paused_ns;
	census_series_add(c->series, found->wall_ns, found->types, found->n, &found->all);
	run_say(c->run, "census %u of process %d: %llu objects, stopped for %.1f ms", c->n_taken,
		(int)c->pid, (unsigned long long)found->all.objects,
		(double)found->paused_ns / 1e6);
	if (least_ns <= interval_ns(c))
		return;
	c->next_ns = c->begun_ns + least_ns;
	if (least_ns > c->longest_ns)
		c->longest_ns = least_ns;
}

static uint64_t link_max(const struct censuses *c)
{
	double bytes = c->run->cfg->census_s * LINKED_A_SECOND;

	return bytes < LINKED_MOST ? (uint64_t)bytes : LINKED_MOST;
}

static void begin(struct censuses *c, uint64_t now)
{
	struct err e = { 0 };
	pid_t pid = choose(c);

	c->begun_ns = now;
	c->next_ns = now + interval_ns(c);
	if (pid && census_begin(&c->child, pid, link_max(c), &e) < 0)
		failed(c, e.msg);
}

static int start(void *self, struct err *e)
{
	struct censuses *c = self;

	c->series = census_series_new();
	if (!c->series)
		return err_set(e, -ENOMEM, "out of memory");
	/* A command has nothing yet. */
	if (c->run->cfg->command)
		c->next_ns = session_start_ns(c->run->session) + interval_ns(c);
	return 0;
}

static void tick(void *self, uint64_t now)
{
	struct censuses *c = self;

	if (c->child.kid) {
		const struct census_result *found = census_ended(&c->child, 0);

		if (!found)
			return;
		take_result(c, found);
	}
	if (now >= c->next_ns)
		begin(c, now);
}

/* What is being counted belongs to the run. */
static void stop(void *self)
{
	struct censuses *c = self;
	const struct census_result *found =
		c->child.kid ? census_ended(&c->child, run_in_a_hurry() ? 0 : LAST_MS) : NULL;

	if (found)
		take_result(c, found);
	else if (c->child.kid)
		failed(c, "the run ended first");
}

/* --- what is said --- */

static void say_grown(struct censuses *c, char *out, size_t cap)
{
	const struct census_row *rows[GROWN];
	uint32_t n = census_series_grown(c->series, rows, GROWN), n_times;
	const int64_t *times;
	size_t at = 0;

	*out = '\0';
	n_times = census_series_times(c->series, &times);
	for (uint32_t i = 0; i < n && at < cap; i++) {
		const struct census_row *row = rows[i];
		uint32_t last = n_times - 1;

		at += (size_t)snprintf(out + at, cap - at, "%s%.80s by %s (%lld objects)",
				       i ? ", " : "; most grew ", row->name,
				       unit_bytes((int64_t)(row->bytes[last] - row->bytes[0])).s,
				       (long long)(row->objects[last] - row->objects[0]));
	}
}

static void report(void *self, struct run_summary *to)
{
	struct censuses *c = self;
	double run_ns = (double)(c->run->clock.end_ns - session_start_ns(c->run->session));
	char grown[512];

	(void)to;
	if (c->n_failed)
		run_note(c->run, true, "census: %u of %u failed; the last of them: %s", c->n_failed,
			 c->n_failed + c->n_taken, c->why);
	else if (!c->n_taken)
		run_note(c->run, true,
			 "census: the run was shorter than --census, or its targets had ended");
	if (!c->n_taken)
		return;
	say_grown(c, grown, sizeof(grown));
	run_note(c->run, false,
		 "census: %u of process %d%s; %llu pauses of %.1f ms in all, %.2f %% of the run%s",
		 c->n_taken, (int)c->pid, c->n_processes > 1 ? " and of others before it" : "",
		 (unsigned long long)c->run->counts.pauses, (double)c->run->counts.paused_ns / 1e6,
		 run_ns > 0 ? 100 * (double)c->run->counts.paused_ns / run_ns : 0, grown);
	if (c->n_unlinked)
		run_note(
			c->run, false,
			"census: in %u of %u the heap was larger than %s, so references were not looked at: types that are "
			"known by who refers to a block (C++ containers, tables) are (unknown) there; memscope heap "
			"census names them",
			c->n_unlinked, c->n_taken, unit_bytes((int64_t)link_max(c)).s);
	if (c->longest_ns)
		run_note(
			c->run, false,
			"census: every %.3g s at times, not every %g: its pauses would have been more than "
			"%g %% of the time (--max-overhead)",
			(double)c->longest_ns / 1e9, c->run->cfg->census_s,
			c->run->cfg->max_overhead);
}

static int write_csv(void *ctx, struct sink *sink, struct err *e)
{
	(void)e;
	census_csv_write(((struct censuses *)ctx)->series, sink);
	return 0;
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct censuses *c = self;

	return c->n_taken ? output_csv(to, "census", write_csv, c, e) : 0;
}

static void free_censuses(void *self)
{
	struct censuses *c = self;

	census_child_fini(&c->child);
	census_series_free(c->series);
}

static bool wanted(const struct run_config *cfg)
{
	return cfg->census_s > 0 && cfg->dir;
}

const struct component census_component = {
	.name = "census",
	.size = sizeof(struct censuses),
	.wanted = wanted,
	.start = start,
	.tick = tick,
	.stop = stop,
	.report = report,
	.write = write_files,
	.free = free_censuses,
};
