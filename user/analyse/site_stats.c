#include "analyse/site_stats.h"

#include <math.h>

void site_stats_spans(const struct point *p, uint32_t n, double *ret_span_s)
{
	for (uint32_t i = 0; i < n; i++)
		ret_span_s[i] = (p[i + 1 < n ? i + 1 : i].t - p[i ? i - 1 : i].t) / 2;
	if (n == 1)
		ret_span_s[0] = 1;
}

static double part_of(const struct point *p, const double *span_s, uint32_t i)
{
	return p[i].y > 0 ? p[i].y * span_s[i] : 0;
}

bool site_burst(const struct point *p, const double *span_s, uint32_t n, uint32_t *ret_from,
		uint32_t *ret_to)
{
	double all = 0, sum = 0, time_s = 0, best_s = INFINITY, best = 0;
	uint32_t from = 0;

	for (uint32_t i = 0; i < n; i++)
		all += part_of(p, span_s, i);
	for (uint32_t to = 0; to < n && all > 0; to++) {
		sum += part_of(p, span_s, to);
		time_s += span_s[to];
		/* Sums in two orders differ in their last digits: a hair less will do. */
		while (from < to &&
		       sum - part_of(p, span_s, from) >= SITE_BURST * all * (1 - 1e-12)) {
			sum -= part_of(p, span_s, from);
			time_s -= span_s[from++];
		}
		if (sum < SITE_BURST * all * (1 - 1e-12) || time_s > best_s * (1 + 1e-12) ||
		    (time_s > best_s * (1 - 1e-12) && sum <= best))
			continue;
		best_s = time_s;
		best = sum;
		*ret_from = from;
		*ret_to = to + 1;
	}
	return all > 0;
}

void site_stats(const struct point *p, const double *span_s, uint32_t n,
		struct site_stats *ret_stats)
{
	struct site_stats s = {
		.first_s = NAN, .last_s = NAN, .burst_from_s = NAN, .burst_to_s = NAN
	};
	struct series_line line;
	double time_s = 0, squares = 0;
	uint32_t from, to;

	for (uint32_t i = 0; i < n; i++) {
		time_s += span_s[i];
		s.integral += p[i].y * span_s[i];
		if (p[i].y == 0)
			continue;
		s.first_s = isnan(s.first_s) ? p[i].t : s.first_s;
		s.last_s = p[i].t;
	}
	s.mean = time_s > 0 ? s.integral / time_s : p[0].y;
	for (uint32_t i = 0; i < n; i++)
		squares += (p[i].y - s.mean) * (p[i].y - s.mean) * span_s[i];
	s.deviation = time_s > 0 ? sqrt(squares / time_s) : 0;
	series_line(p, n, &line);
	s.intercept = line.at - line.slope * p[0].t;
	s.slope = line.slope;
	s.slope_low = line.slope_low;
	s.slope_high = line.slope_high;
	s.r2 = line.r2;
	if (site_burst(p, span_s, n, &from, &to)) {
		s.burst_from_s = p[from].t - span_s[from] / 2;
		s.burst_to_s = p[to - 1].t + span_s[to - 1] / 2;
	}
	*ret_stats = s;
}
