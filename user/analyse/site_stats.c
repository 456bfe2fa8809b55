#include "analyse/site_stats.h"

#include <math.h>

void site_stats_spans(const struct point *p, uint32_t n, double *ret_span_s)
{
	for (uint32_t i = 0; i < n; i++)
		ret_span_s[i] = (p[i + 1 < n ? i + 1 : i].t - p[i ? i - 1 : i].t) / 2;
	if (n == 1)
		ret_span_s[0] = 1;
}

void site_stats(const struct point *p, const double *span_s, uint32_t n,
		struct site_stats *ret_stats)
{
	struct site_stats s = { .first_s = NAN, .last_s = NAN };
	struct series_line line;
	double time_s = 0, squares = 0;

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
	*ret_stats = s;
}
