/*
 * What each stack holds over time, while every allocation is traced.
 */
#include "cmd/run_parts.h"

#include <stdlib.h>

#define KEPT_AGE_S 30.0 /* or half of what was traced, if that is less */

struct image {
	struct ms_proc proc;
	uint32_t number;
	UT_hash_handle hh;
};

/* 0: out of memory. */
static uint32_t image_number(struct run *r, const struct ms_proc *proc)
{
	struct image *image = hash_get(r->images, proc, proc);

	if (!image)
		return 0;
	if (!image->number)
		image->number = HASH_COUNT(r->images);
	return image->number;
}

/* Seconds since the run began. */
static double run_seconds(const struct run *r, uint64_t ns)
{
	uint64_t start = session_start_ns(r->session);

	return ns > start ? (double)(ns - start) / 1e9 : 0;
}

/* How old a block must be at the end: there must have been time to free it. */
static double kept_age_s(const struct run *r)
{
	double traced = (double)(r->alloc_to_ns - r->alloc_from_ns) / 1e9;

	return traced / 2 < KEPT_AGE_S ? traced / 2 : KEPT_AGE_S;
}

void run_on_alloc(void *ctx, const struct ms_proc *proc, stack_id stack, int64_t blocks,
		  int64_t bytes, uint64_t born_ns)
{
	struct run *r = ctx;
	uint32_t image;

	if (r->tier == ALLOC_TIER_SLICES)
		return; /* what lives is not known any more */
	image = image_number(r, proc);
	if (!r->bands)
		r->bands = bands_new();
	if (!r->bands || !image) {
		r->oom = true;
	} else if (!born_ns) {
		r->oom |= bands_add(r->bands, image, stack, blocks, bytes) < 0;
	} else {
		r->leak_age_s = kept_age_s(r);
		if (r->alloc_to_ns > born_ns &&
		    (double)(r->alloc_to_ns - born_ns) / 1e9 >= r->leak_age_s)
			bands_old(r->bands, image, stack);
	}
}

void run_bands_tick(struct run *r)
{
	struct image *image, *next;

	if (!r->bands || !run_tracing_allocs(r))
		return;
	HASH_ITER (hh, r->images, image, next)
		if (ingest_gone(r->ingest, &image->proc))
			bands_drop(r->bands, image->number);
	bands_tick(r->bands, run_seconds(r, run_now_ns()));
}

void run_leak_facts(struct run *r, struct summary_alloc *to)
{
	struct leak leaks[SUMMARY_LEAKS];
	uint32_t n = r->bands ? bands_leaks(r->bands, r->leak_age_s, leaks, SUMMARY_LEAKS) : 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct series_line *l = &leaks[i].course.tail;
		struct summary_leak *leak = &to->leaks[to->n_leaks];

		if (site_of_stack(r->dict, leaks[i].band->stack, &leak->site) < 0)
			continue;
		leak->live = leaks[i].band->live;
		leak->slope = l->slope * 1024;
		leak->slope_low = l->slope_low * 1024;
		leak->slope_high = l->slope_high * 1024;
		leak->r2 = l->r2;
		leak->since_s = leaks[i].course.since_s;
		leak->survived = leaks[i].survived;
		leak->age_s = leaks[i].age_s;
		to->n_leaks++;
	}
}

void run_bands_free(struct run *r)
{
	hash_free(r->images);
	bands_free(TAKE_PTR(r->bands));
}
