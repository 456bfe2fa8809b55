/*
 * How fast each stack allocates over time, however allocations are gathered.
 */
#include "analyse/alloc_series.h"
#include "base/clock.h"
#include "base/units.h"
#include "render/tables/alloc_series_csv.h"
#include "run/component.h"
#include "run/output/files.h"

struct series {
	struct run *run;
	struct alloc_series *rates; /* NULL: nothing was allocated yet   */
	uint64_t drained_ns;        /* exact: what comes is of after then */
};

/* Seconds since the run began. */
static double run_seconds(const struct series *s, uint64_t ns)
{
	uint64_t start = session_start_ns(s->run->session);

	return ns > start ? (double)(ns - start) / 1e9 : 0;
}

static void allocated(void *ctx, const stack_id *stack, double bytes, uint64_t from_ns,
		      uint64_t to_ns)
{
	struct series *s = ctx;

	if (!s->rates)
		s->rates = alloc_series_new();
	s->run->oom |=
		!s->rates || alloc_series_add(s->rates, stack, bytes, run_seconds(s, from_ns),
					      run_seconds(s, to_ns)) < 0;
}

static void on_alloc(void *ctx, const struct proc_id *proc, stack_id stack, int64_t blocks,
		     int64_t bytes, uint64_t born_ns)
{
	struct series *s = ctx;

	(void)proc;
	if (blocks > 0 && !born_ns)
		allocated(s, &stack, (double)bytes, s->drained_ns, now_ns());
}

static int attach(void *self, struct err *e)
{
	struct series *s = self;

	ingest_on_alloc(s->run->ingest, on_alloc, s);
	s->run->alloc.allocated = allocated;
	s->run->alloc.allocated_ctx = s;
	(void)e;
	return 0;
}

static void drained(void *self, uint64_t now)
{
	((struct series *)self)->drained_ns = now;
}

static void row(void *self, uint64_t now)
{
	struct series *s = self;

	if (!s->rates && s->run->alloc.following)
		s->rates = alloc_series_new();
	if (s->rates)
		alloc_series_tick(s->rates, run_seconds(s, now));
}

/* Estimates of what was gathered before may still come. */
static void closed(void *self)
{
	struct series *s = self;

	if (s->rates)
		alloc_series_end(s->rates, run_seconds(s, s->run->clock.end_ns));
}

static void report(void *self, struct run_summary *to)
{
	const struct series *s = self;
	struct alloc_series_moved moved = { 0 };

	(void)to;
	if (s->rates)
		moved = alloc_series_moved(s->rates);
	if (moved.rows)
		run_note(
			s->run, false,
			"alloc_series: there were more stacks than it has room for (%d): %s times one "
			"with little made room for another; %s of theirs are in OTHER",
			ALLOC_SERIES_MAX, unit_count((int64_t)moved.rows).s,
			unit_bytes((int64_t)moved.bytes).s);
}

static int write_rates(void *ctx, struct sink *sink, struct err *e)
{
	struct series *s = ctx;

	return alloc_series_csv_write(s->rates, s->run->dict, s->run->clock.start_wall_ns, sink, e);
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct series *s = self;

	return s->rates ? output_csv(to, "alloc_series", write_rates, s, e) : 0;
}

static void free_series(void *self)
{
	alloc_series_free(((struct series *)self)->rates);
}

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_ALLOC] && cfg->alloc != ALLOC_OFF;
}

const struct component alloc_series_component = {
	.name = "allocation series",
	.size = sizeof(struct series),
	.wanted = wanted,
	.attach = attach,
	.drained = drained,
	.row = row,
	.closed = closed,
	.report = report,
	.write = write_files,
	.free = free_series,
};
