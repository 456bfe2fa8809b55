/*
 * What each stack holds over time, while every allocation is traced, or by a sampler that reports frees.
 */
#include "analyse/leaks.h"
#include "base/clock.h"
#include "base/hash.h"
#include "render/render.h"
#include "render/tables/live_series_csv.h"
#include "run/component.h"
#include "run/output/files.h"

#include <stdlib.h>

#define KEPT_AGE_S 30.0 /* or half of what was traced, if that is less */

struct image {
	struct proc_id proc;
	uint32_t number;
	UT_hash_handle hh;
};

struct live {
	struct run *run;
	struct live_series *series; /* NULL: not traced exactly                     */
	struct image *images;       /* whose they are                               */
	double leak_age_s;          /* how old a block must be to count as retained */
};

/* 0: out of memory. */
static uint32_t image_number(struct live *ls, const struct proc_id *proc)
{
	struct image *image = hash_get(ls->images, proc, proc);

	if (!image)
		return 0;
	if (!image->number)
		image->number = HASH_COUNT(ls->images);
	return image->number;
}

/* Seconds since the run began. */
static double run_seconds(const struct live *ls, uint64_t ns)
{
	uint64_t start = session_start_ns(ls->run->session);

	return ns > start ? (double)(ns - start) / 1e9 : 0;
}

/* How old a block must be at the end: there must have been time to free it. */
static double kept_age_s(const struct live *ls)
{
	double traced = (double)(ls->run->alloc.to_ns - ls->run->alloc.from_ns) / 1e9;

	return traced / 2 < KEPT_AGE_S ? traced / 2 : KEPT_AGE_S;
}

/* A sample that lives and stands for `bytes`: Poisson's variance, about. */
static void add_error(struct live *ls, uint32_t image, stack_id stack, double bytes)
{
	double half2 = 1.96 * 1.96 * bytes * bytes;

	live_series_error(ls->series, image, stack,
			  &(struct live_series_error){ .low2 = half2, .high2 = half2 });
}

static void on_alloc(void *ctx, const struct proc_id *proc, stack_id stack, int64_t blocks,
		     int64_t bytes, uint64_t born_ns)
{
	struct live *ls = ctx;
	uint32_t image;

	if (ls->run->alloc.tier == ALLOC_TIER_BURSTS)
		return; /* what lives is not known any more */
	image = image_number(ls, proc);
	if (!ls->series)
		ls->series = live_series_new();
	if (!ls->series || !image) {
		ls->run->oom = true;
	} else if (!born_ns) {
		ls->run->oom |= live_series_add(ls->series, image, stack, blocks, bytes) < 0;
	} else {
		ls->leak_age_s = kept_age_s(ls);
		if (ls->run->alloc.to_ns > born_ns &&
		    (double)(ls->run->alloc.to_ns - born_ns) / 1e9 >= ls->leak_age_s)
			live_series_old(ls->series, image, stack, 1);
		if (ls->run->alloc.tier == ALLOC_TIER_SAMPLED)
			add_error(ls, image, stack, (double)bytes);
	}
}

static void drop(void *self)
{
	struct live *ls = self;

	hash_free(ls->images);
	live_series_free(TAKE_PTR(ls->series));
}

static int attach(void *self, struct err *e)
{
	struct live *ls = self;

	(void)e;
	ingest_on_alloc(ls->run->ingest, on_alloc, ls);
	ls->run->alloc.lives = on_alloc;
	ls->run->alloc.lives_ctx = ls;
	return 0;
}

/* What each stack holds now. */
static void row(void *self, uint64_t now)
{
	struct live *ls = self;
	struct image *image, *next;

	if (ls->run->alloc.tier == ALLOC_TIER_BURSTS)
		drop(ls);
	if (!ls->series || (!ls->run->alloc.tracing && ls->run->alloc.tier != ALLOC_TIER_SAMPLED))
		return;
	HASH_ITER (hh, ls->images, image, next)
		if (ingest_gone(ls->run->ingest, &image->proc))
			live_series_drop(ls->series, image->number);
	live_series_tick(ls->series, run_seconds(ls, now));
}

static void closing(void *self)
{
	row(self, now_ns());
}

static bool is_known(const struct live *ls)
{
	return ls->series && (ls->run->alloc.tier == ALLOC_TIER_EXACT ||
			      ls->run->alloc.tier == ALLOC_TIER_SAMPLED);
}

static void report(void *self, struct run_summary *s)
{
	struct live *ls = self;

	if (is_known(ls))
		leaks_of(ls->series, ls->run->dict, ls->leak_age_s, &s->alloc);
	if (is_known(ls) && ls->run->alloc.tier == ALLOC_TIER_SAMPLED)
		leaks_peak(ls->series, &s->alloc);
}

static int write_series(void *ctx, struct sink *sink, struct err *e)
{
	struct live *ls = ctx;

	return live_series_csv_write(ls->series, ls->run->dict, ls->run->clock.start_wall_ns, sink,
				     e);
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	return is_known(self) ? output_csv(to, "live_series", write_series, self, e) : 0;
}

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_ALLOC] && cfg->alloc != ALLOC_OFF;
}

const struct component live_series_component = {
	.name = "live series",
	.size = sizeof(struct live),
	.wanted = wanted,
	.attach = attach,
	.row = row,
	.closing = closing,
	.report = report,
	.write = write_files,
	.free = drop,
};
