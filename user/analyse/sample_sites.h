/*
 * How sure the figures of sites are that samples gave: a 95 % interval for each.
 *
 * Beside the alloc and heap profiles there is one with the same stacks and labels that holds the
 * sums of model/estimate.h, in whole units so chosen that none of them overflows.
 */
#ifndef MEMSCOPE_ANALYSE_SAMPLE_SITES_H
#define MEMSCOPE_ANALYSE_SAMPLE_SITES_H

#include "analyse/sites.h"

/* Value types of the profile of sums: those of what was allocated, then those of what lives. */
enum {
	SPREAD_V,
	SPREAD_VC,
	SPREAD_SAMPLES,
	SPREAD_SEEN,
	SPREAD_TYPES,
};

struct spread {
	struct profile *sums;   /* 2 * SPREAD_TYPES value types */
	double v_unit, vc_unit; /* what 1 of those stands for   */
};

/* A unit for sums of `total`: twice as large as needed for none of them to overflow. */
double spread_unit(double total);

/* Sets low, high and samples of `rows`, as sites_allocations() gave them for bytes. 0 or -ENOMEM. */
int sample_sites(const struct spread *spread, bool live, struct site_row *rows, uint32_t n);
/* The same of `rows` as sites_waits() gave them for blocked ns. `spread` has value types of one kind. */
int sample_waits(const struct spread *spread, struct site_row *rows, uint32_t n);

#endif
