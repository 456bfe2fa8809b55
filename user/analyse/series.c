#include "analyse/series.h"

#include "analyse/beta.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_PIECE 4

void series_facts(const struct point *p, uint32_t n, struct series_facts *ret_facts)
{
	struct series_facts f = {
		.first = p[0].y, .last = p[n - 1].y, .min = p[0].y, .max = p[0].y
	};

	for (uint32_t i = 0; i < n; i++) {
		f.min = fmin(f.min, p[i].y);
		f.max = fmax(f.max, p[i].y);
		f.mean += (p[i].y - f.mean) / (i + 1);
	}
	*ret_facts = f;
}

/* --- Student's t --- */

/* P(T > t), t > 0. */
double student_t_tail(double t, double df)
{
	return 0.5 * beta_inc(df / 2, 0.5, df / (df + t * t));
}

double student_t_quantile(double p, double df)
{
	double low = 0, high = 1;

	if (p <= 0.5)
		return 0;
	while (student_t_tail(high, df) > 1 - p && high < 1e300)
		high *= 2;
	for (int i = 0; i < 200 && high - low > 1e-13 * high; i++) {
		double mid = (low + high) / 2;

		if (student_t_tail(mid, df) > 1 - p)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

/* --- a line --- */

/* The variance of the slope: Newey and West. */
static double slope_variance(const struct point *p, uint32_t n, double t_mean, double sxx,
			     const struct series_line *line)
{
	uint32_t lag = (uint32_t)floor(4 * pow(n / 100.0, 2.0 / 9));
	double sum = 0;

	for (uint32_t l = 0; l <= lag && l < n; l++) {
		double weight = l ? 2 * (1 - l / (lag + 1.0)) : 1, s = 0;

		for (uint32_t i = l; i < n; i++) {
			const struct point *a = &p[i], *b = &p[i - l];

			s += (a->t - t_mean) * (a->y - line->at - line->slope * (a->t - p[0].t)) *
			     (b->t - t_mean) * (b->y - line->at - line->slope * (b->t - p[0].t));
		}
		sum += weight * s;
	}
	return fmax(sum, 0) / (sxx * sxx) * n / (n - 2);
}

void series_line(const struct point *p, uint32_t n, struct series_line *ret_line)
{
	struct series_line line = {
		.n = n, .slope_low = -INFINITY, .slope_high = INFINITY, .r2 = 1
	};
	double t_mean = 0, y_mean = 0, sxx = 0, sxy = 0, syy = 0, half;

	for (uint32_t i = 0; i < n; i++) {
		t_mean += (p[i].t - t_mean) / (i + 1);
		y_mean += (p[i].y - y_mean) / (i + 1);
	}
	for (uint32_t i = 0; i < n; i++) {
		double t = p[i].t - t_mean, y = p[i].y - y_mean;

		sxx += t * t;
		sxy += t * y;
		syy += y * y;
	}
	if (sxx > 0)
		line.slope = sxy / sxx;
	line.at = y_mean - line.slope * (t_mean - p[0].t);
	if (sxx > 0 && syy > 0)
		line.r2 = sxy * sxy / (sxx * syy);
	if (sxx > 0 && n > 2) {
		half = student_t_quantile(0.975, n - 2) *
		       sqrt(slope_variance(p, n, t_mean, sxx, &line));
		line.slope_low = line.slope - half;
		line.slope_high = line.slope + half;
	}
	*ret_line = line;
}

/* --- pieces --- */

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How far half of the differences over `lag` points are from the middle one: of a normal
 * distribution 0.6745 of its deviation, whatever a few steps in it do. */
static double spread(const struct point *p, uint32_t n, uint32_t lag)
{
	double d[SERIES_POINTS], middle;
	uint32_t k = n - lag;

	for (uint32_t i = 0; i < k; i++)
		d[i] = p[i + lag].y - p[i].y;
	qsort(d, k, sizeof(d[0]), by_size);
	middle = d[k / 2];
	for (uint32_t i = 0; i < k; i++)
		d[i] = fabs(d[i] - middle);
	qsort(d, k, sizeof(d[0]), by_size);
	return d[k / 2] / 0.6745;
}

/*
 * The variance of the noise as sums over many points have it. Neighbours that are alike (rho, of an
 * autoregression of order 1) have differences of variance 2 s^2 (1 - rho), and over two points
 * 2 s^2 (1 - rho^2); sums have s^2 (1 + rho) / (1 - rho) a point.
 */
static double noise_variance(const struct point *p, uint32_t n)
{
	double one, two, rho;

	if (n < 4)
		return 0;
	one = spread(p, n, 1);
	two = spread(p, n, 2);
	if (one <= 0)
		return 0;
	rho = fmin(fmax(two * two / (one * one) - 1, 0), 0.9);
	return one * one / (2 * (1 - rho)) * (1 + rho) / (1 - rho);
}

/* Sums over the first i points, from which those of any piece follow. */
struct sums {
	double t, y, tt, ty, yy;
};

/* Squared residuals of the line through the points [from, to). */
static double residuals(const struct sums *s, uint32_t from, uint32_t to)
{
	double n = to - from;
	double t = s[to].t - s[from].t, y = s[to].y - s[from].y;
	double sxx = s[to].tt - s[from].tt - t * t / n;
	double sxy = s[to].ty - s[from].ty - t * y / n;
	double syy = s[to].yy - s[from].yy - y * y / n;

	return fmax(sxx > 0 ? syy - sxy * sxy / sxx : syy, 0);
}

uint32_t series_pieces(const struct point *p, uint32_t n, double noise,
		       uint32_t ret_begin[SERIES_PIECES])
{
	struct sums s[SERIES_POINTS + 1] = { 0 };
	double best[SERIES_POINTS + 1], penalty, mean = 0;
	double variance = fmax(noise_variance(p, n), noise * noise);
	uint32_t from[SERIES_POINTS + 1], begins[SERIES_POINTS], k = 0;

	ret_begin[0] = 0;
	if (n < 2 * MIN_PIECE || n > SERIES_POINTS || variance <= 0)
		return 1;
	for (uint32_t i = 0; i < n; i++)
		mean += (p[i].y - mean) / (i + 1);
	for (uint32_t i = 0; i < n; i++) {
		double t = p[i].t - p[0].t, y = p[i].y - mean;

		s[i + 1] = (struct sums){ s[i].t + t, s[i].y + y, s[i].tt + t * t, s[i].ty + t * y,
					  s[i].yy + y * y };
	}
	penalty = 3 * log(n) * variance;
	best[0] = -penalty;
	for (uint32_t to = 1; to <= n; to++) {
		best[to] = INFINITY;
		for (uint32_t f = 0; f + MIN_PIECE <= to; f++) {
			double cost = best[f] + residuals(s, f, to) + penalty;

			if (cost < best[to]) {
				best[to] = cost;
				from[to] = f;
			}
		}
	}
	for (uint32_t to = n; to > 0; to = from[to])
		begins[k++] = from[to];
	if (k > SERIES_PIECES)
		k = 1; /* no few lines describe it */
	for (uint32_t i = 1; i < k; i++)
		ret_begin[i] = begins[k - 1 - i];
	return k;
}

uint32_t series_thin(const struct point *p, uint32_t n, struct point *ret_points, uint32_t max)
{
	uint32_t run = (n + max - 1) / max, k = 0;

	for (uint32_t i = 0; i < n; i += run) {
		uint32_t m = n - i < run ? n - i : run;
		struct point sum = { 0 };

		if (m < run && k) /* a rest says less than the others */
			break;
		for (uint32_t j = 0; j < m; j++) {
			sum.t += p[i + j].t;
			sum.y += p[i + j].y;
		}
		ret_points[k++] = (struct point){ sum.t / m, sum.y / m };
	}
	return k;
}
