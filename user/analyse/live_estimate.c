#include "analyse/live_estimate.h"

#include <math.h>

/* 97.5 % quantile of Student's distribution with LIVE_GROUPS - 1 degrees of freedom. */
#define T_GROUPS 2.131
#define Z        1.96 /* … of the normal one */

void live_estimate_merge(struct live_estimate *to, const struct live_estimate *from)
{
	to->seen += from->seen;
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->plain += from->plain;
	to->old_blocks += from->old_blocks;
	for (int g = 0; g < LIVE_GROUPS; g++)
		to->without[g] += from->without[g];
	to->v += from->v;
	to->vc += from->vc;
	to->model += from->model;
	to->most += from->most;
	to->if_low += from->if_low;
	to->if_high += from->if_high;
	to->power += from->power;
	to->ends += from->ends;
}

/* As model/estimate.h, which takes in that the variance grows with what is estimated; the variance
 * itself is the jackknife's. */
struct interval live_interval(const struct live_estimate *est)
{
	struct interval i = { est->bytes, est->bytes };
	double mean = 0, v = 0, c, half;

	for (int g = 0; g < LIVE_GROUPS; g++)
		mean += est->without[g] / LIVE_GROUPS;
	for (int g = 0; g < LIVE_GROUPS; g++)
		v += (est->without[g] - mean) * (est->without[g] - mean);
	v = v * (LIVE_GROUPS - 1.0) / LIVE_GROUPS + est->model;
	if (v > 0) {
		/* What is known of pools takes from the skew, as it does from the variance; less than a
		 * third of that is more than the jackknife's own chance. */
		c = est->v > 0 ? est->vc / est->v * fmin(1, 3 * v / est->v) : 0;
		half = sqrt(T_GROUPS * T_GROUPS * c * c / 4 + v);
		i.low += T_GROUPS * (T_GROUPS * c / 2 - half);
		i.high += T_GROUPS * (T_GROUPS * c / 2 + half);
	}
	i.low = fmax(i.low, 0);
	i.high = fmin(i.high, fmax(est->most, est->bytes));
	return i;
}

static struct value_error scaled(const struct value_error *e, double by)
{
	struct value_error out = { .samples = e->samples,
				   .unseen = e->unseen * by,
				   .v = e->v * by * by,
				   .vc = e->vc * by * by * by };

	for (int g = 0; g < ERROR_GROUPS; g++)
		out.group[g] = e->group[g] * by;
	return out;
}

void live_errors(const struct live_estimate *est, struct value_error *ret_blocks,
		 struct value_error *ret_bytes)
{
	struct value_error e = { .samples = (double)est->seen,
				 .unseen = est->bytes,
				 .v = est->model };
	double mean = 0;

	_Static_assert((int)LIVE_GROUPS == (int)ERROR_GROUPS, "groups of bursts");
	for (int g = 0; g < LIVE_GROUPS; g++)
		mean += est->without[g] / LIVE_GROUPS;
	/* The squares add up to the jackknife's variance. */
	for (int g = 0; g < LIVE_GROUPS; g++)
		e.group[g] = (mean - est->without[g]) * sqrt((LIVE_GROUPS - 1.0) / LIVE_GROUPS);
	*ret_bytes = e;
	*ret_blocks = scaled(&e, est->bytes > 0 ? est->blocks / est->bytes : 0);
}

void live_walk_error(const struct live_estimate *est, double *ret_low2, double *ret_high2)
{
	struct interval i = live_interval(est);
	double seen2 = Z * Z * est->v;

	*ret_low2 = fmax(pow(est->bytes - i.low, 2), seen2);
	*ret_high2 = fmax(pow(i.high - est->bytes, 2), seen2);
}

void live_weight_error(const struct live_estimate *est, double *ret_below, double *ret_above)
{
	*ret_below = fmax(0, est->bytes - fmin(est->if_low, est->if_high));
	*ret_above = fmax(0, fmax(est->if_low, est->if_high) - est->bytes);
}
