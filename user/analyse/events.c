#include "analyse/events.h"

#include "analyse/sites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z_95 1.96

static int by_count(const void *a, const void *b)
{
	const struct event_row *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->part, y->part);
}

uint32_t events_rank(struct event_row *rows, uint32_t n, uint32_t parts)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n;) {
		uint32_t first = i + 1, end = first;

		while (end < n && *rows[end].part)
			end++;
		if (end > first)
			qsort(&rows[first], end - first, sizeof(*rows), by_count);
		rows[kept++] = rows[i];
		for (uint32_t k = first; k < end && k - first < parts && rows[k].count; k++)
			rows[kept++] = rows[k];
		i = end;
	}
	return kept;
}

void events_divide(const double *rates, uint32_t n, double each_ns, double percent,
		   uint32_t *ret_one_in)
{
	double left = percent * 1e7 / each_ns; /* events a second */
	uint32_t sharing = n;
	bool settled = false;

	for (uint32_t i = 0; i < n; i++)
		ret_one_in[i] = 0;
	/* Who needs less than an equal share leaves the rest to the others. */
	while (!settled && sharing) {
		double share = left / sharing;

		settled = true;
		for (uint32_t i = 0; i < n; i++)
			if (!ret_one_in[i] && rates[i] <= share) {
				ret_one_in[i] = 1;
				left -= rates[i];
				sharing--;
				settled = false;
			}
	}
	for (uint32_t i = 0; i < n; i++)
		if (!ret_one_in[i]) {
			double most = ceil(rates[i] * sharing / (left > 1 ? left : 1));

			ret_one_in[i] = most < 1e9 ? (uint32_t)most : 1000000000;
		}
}

int events_look(const struct profile *p, uint32_t type, struct event_row *row)
{
	struct site_row site;
	double variance = 0;
	int n = sites_allocations(p, type, -1, &site, 1);

	if (n < 0)
		return n;
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		struct value_error error;

		if (profile_error(&s, type, &error))
			variance += value_error_variance(&error);
	}
	row->on_stacks = profile_total(p, type);
	row->on_stacks_error = llround(Z_95 * sqrt(variance));
	row->function = row->module = "";
	if (!n)
		return 0;
	row->function = *site.function ? site.function : site.leaf;
	row->module = site.module;
	row->function_value = site.value;
	return 0;
}
