/*
 * The pieces of the summary's section of allocations: alloc.c puts them together.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_ALLOC_PARTS_H
#define MEMSCOPE_RENDER_SUMMARY_ALLOC_PARTS_H

#include "analyse/summary.h"
#include "base/sink.h"
#include "base/units.h"
#include "render/json_doc.h"

/* alloc_estimates.c: ALLOC_TIER_SAMPLED and ALLOC_TIER_BURSTS, with their intervals. */
void alloc_sampled_text(const struct summary_alloc *a, struct sink *out);
void alloc_bursts_text(const struct summary_alloc *a, struct sink *out);
void alloc_estimates_json(struct json_doc *d, cJSON *alloc, const struct summary_alloc *a);

/* alloc_live.c: what lives, of ALLOC_TIER_BURSTS. */
void alloc_live_text(const struct summary_alloc *a, struct sink *out);
/* The most that was live, estimated: in bursts or by a sampler. */
void alloc_live_peak_text(const struct summary_alloc *a, struct sink *out);
void alloc_live_peak_json(struct json_doc *d, cJSON *alloc, const struct summary_alloc *a);
void alloc_live_json(struct json_doc *d, cJSON *alloc, const struct summary_alloc *a);

/* alloc_unseen.c: what an interpreter keeps in arenas, which no malloc is called for. */
void alloc_unseen_text(const struct run_summary *s, struct sink *out);
void alloc_unseen_json(struct json_doc *d, cJSON *alloc, const struct run_summary *s);

/* "± 25.0%": half of the interval's width as a share of the estimate; "exact" without an interval. */
struct unit_text half_interval(int64_t value, int64_t low, int64_t high);

/* alloc_fates.c: ALLOC_TIER_EXACT. */
void alloc_fates_text(const struct summary_alloc *a, struct sink *out);
void alloc_more_sites_text(const struct summary_alloc *a, struct sink *out);
void alloc_fates_json(struct json_doc *d, cJSON *alloc, const struct summary_alloc *a);
/* Stacks whose live memory grows and stays. */
void alloc_leaks_text(const struct summary_alloc *a, struct sink *out);
void alloc_leaks_json(struct json_doc *d, cJSON *alloc, const struct summary_alloc *a);

#endif
