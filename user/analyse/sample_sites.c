#include "analyse/sample_sites.h"

#include "base/cleanup.h"
#include "model/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct site_row *row_find(const struct site_row *rows, int n,
				       const struct site_row *want)
{
	for (int i = 0; i < n; i++)
		if (strcmp(rows[i].function, want->function) == 0 &&
		    strcmp(rows[i].module, want->module) == 0 &&
		    strcmp(rows[i].comm, want->comm) == 0 && rows[i].wait == want->wait)
			return &rows[i];
	return NULL;
}

typedef int (*rank_fn)(const struct profile *p, uint32_t type, int count_type, struct site_row *out,
		       uint32_t cap);

/* `base`: the first of the value types. */
static int set_intervals(const struct spread *spread, uint32_t base, rank_fn rank,
			 struct site_row *rows, uint32_t n)
{
	uint32_t cap = profile_n_samples(spread->sums);
	_cleanup_(freep) struct site_row *v = calloc(cap + 1, sizeof(*v));
	_cleanup_(freep) struct site_row *seen = calloc(cap + 1, sizeof(*seen));
	int n_v, n_seen;

	if (!v || !seen)
		return -ENOMEM;
	n_v = rank(spread->sums, base + SPREAD_V, (int)base + SPREAD_VC, v, cap);
	n_seen = rank(spread->sums, base + SPREAD_SAMPLES, (int)base + SPREAD_SEEN, seen, cap);
	if (n_v < 0 || n_seen < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct site_row *of_v = row_find(v, n_v, &rows[i]);
		const struct site_row *of_seen = row_find(seen, n_seen, &rows[i]);
		struct estimate est = { .bytes = (double)rows[i].value };
		struct interval interval;

		if (of_v) {
			est.v = (double)of_v->value * spread->v_unit;
			est.vc = (double)of_v->count * spread->vc_unit;
		}
		if (of_seen) {
			est.samples = (uint64_t)of_seen->value;
			est.seen_bytes = (double)of_seen->count;
		}
		interval = estimate_interval(&est);
		rows[i].samples = est.samples;
		rows[i].low = (int64_t)interval.low;
		rows[i].high = (int64_t)interval.high;
	}
	return 0;
}

double spread_unit(double total)
{
	return total > 0x1p60 ? exp2(ceil(log2(total / 0x1p60))) : 1;
}

int sample_sites(const struct spread *spread, bool live, struct site_row *rows, uint32_t n)
{
	return set_intervals(spread, live ? SPREAD_TYPES : 0, sites_allocations, rows, n);
}

int sample_waits(const struct spread *spread, struct site_row *rows, uint32_t n)
{
	return set_intervals(spread, 0, sites_waits, rows, n);
}
