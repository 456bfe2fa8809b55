/*
 * How sure the figures of sites are that were estimated: a 95 % interval for each.
 *
 * Of allocations, the profile has the errors (model/value_error.h), and the intervals are those that `memscope
 * report` prints of the file: one source, and the same digits. Of waits whose stacks are sampled, a profile with the
 * same stacks and labels holds the sums of model/estimate.h, in whole units so chosen that none of them overflows.
 */
#ifndef MEMSCOPE_ANALYSE_SAMPLE_SITES_H
#define MEMSCOPE_ANALYSE_SAMPLE_SITES_H

#include "analyse/sites.h"

/* Value types of the profile of sums. */
enum {
	SPREAD_V,
	SPREAD_VC,
	SPREAD_SAMPLES,
	SPREAD_SEEN,
	SPREAD_TYPES,
};

struct spread {
	struct profile *sums;   /* SPREAD_TYPES value types */
	double v_unit, vc_unit; /* what 1 of those stands for   */
};

/* A unit for sums of `total`: twice as large as needed for none of them to overflow. */
double spread_unit(double total);

/*
 * Sets low, high and samples of `rows`, as sites_allocations() gave them for `type` of `p`; and of *ret_all those
 * and the value of all of the profile. Equal ends: counted. 0 or -ENOMEM.
 */
int site_intervals(const struct profile *p, uint32_t type, struct site_row *rows, uint32_t n,
		   struct site_row *ret_all);
/* The same of `rows` as sites_waits() gave them for blocked ns. */
int sample_waits(const struct spread *spread, struct site_row *rows, uint32_t n);

#endif
