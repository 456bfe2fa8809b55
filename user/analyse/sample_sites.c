#include "analyse/sample_sites.h"

#include "analyse/row_sums.h"
#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct site_row *row_find(const struct site_row *rows, int n,
				       const struct site_row *want)
{
	for (int i = 0; i < n; i++)
		if (site_row_same(&rows[i], want))
			return &rows[i];
	return NULL;
}

/* --- allocations --- */

static struct site_row *site_of_sample(struct dict *d, stack_id stack, struct site_row *rows,
				       uint32_t n, int *ret_error)
{
	struct site_row of;

	*ret_error = site_of_stack(d, stack, &of);
	return *ret_error < 0 ? NULL : (struct site_row *)row_find(rows, (int)n, &of);
}

/* What the rows' stacks add up to; behind the rows' sums that of the whole. */
static int add_samples(const struct profile *p, uint32_t type, struct site_row *rows, uint32_t n,
		       struct row_sum *sums, struct profile_sums *of)
{
	bool group[ERROR_GROUPS] = { false };

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		struct site_row *row;
		struct value_error error;
		int r;

		if (sample_error(p, &s, type, ERROR_OF_RUN, &error))
			of->estimated |= value_error_as_written(&error, s.values[type]);
		row = site_of_sample(profile_dict(p), s.stack, rows, n, &r);
		if (r < 0)
			return r;
		row_sum_add(&of->all, (double)s.values[type], &error);
		if (row)
			row_sum_add(&sums[row - rows], (double)s.values[type], &error);
		for (int g = 0; g < ERROR_GROUPS; g++)
			group[g] |= error.group[g] != 0;
	}
	for (int g = 0; g < ERROR_GROUPS; g++)
		of->groups += group[g];
	return 0;
}

static void set_interval(struct site_row *row, const struct row_sum *sum,
			 const struct profile_sums *of)
{
	struct interval i = row_interval(sum, of);

	row->low = llround(i.low);
	row->high = llround(i.high);
	row->samples = (uint64_t)llround(sum->error.samples);
}

int site_intervals(const struct profile *p, uint32_t type, struct site_row *rows, uint32_t n,
		   struct site_row *ret_all)
{
	_cleanup_(freep) struct row_sum *sums = calloc(n + 1ul, sizeof(*sums));
	struct profile_sums of = { 0 };
	int r = sums ? add_samples(p, type, rows, n, sums, &of) : -ENOMEM;

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		set_interval(&rows[i], &sums[i], &of);
	*ret_all = (struct site_row){ .value = llround(of.all.value) };
	set_interval(ret_all, &of.all, &of);
	return 0;
}

/* --- waits --- */

int sample_waits(const struct spread *spread, struct site_row *rows, uint32_t n)
{
	uint32_t cap = profile_n_samples(spread->sums);
	_cleanup_(freep) struct site_row *v = calloc(cap + 1, sizeof(*v));
	_cleanup_(freep) struct site_row *seen = calloc(cap + 1, sizeof(*seen));
	int n_v, n_seen;

	if (!v || !seen)
		return -ENOMEM;
	n_v = sites_waits(spread->sums, SPREAD_V, SPREAD_VC, v, cap);
	n_seen = sites_waits(spread->sums, SPREAD_SAMPLES, SPREAD_SEEN, seen, cap);
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
