#include "analyse/series_mates.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* The values less their mean, by the root of their squares' sum. false: they are constant. */
static bool normalize(const double *from, uint32_t n, double *to)
{
	double mean = 0, squares = 0, largest = 0, rest = 0;

	for (uint32_t i = 0; i < n; i++)
		mean += from[i] / n;
	for (uint32_t i = 0; i < n; i++) /* what rounding left of a large mean */
		rest += (from[i] - mean) / n;
	for (uint32_t i = 0; i < n; i++) {
		to[i] = from[i] - mean - rest;
		squares += to[i] * to[i];
		largest = fmax(largest, fabs(from[i]));
	}
	/* What rounding leaves of a constant is no movement. */
	if (!(sqrt(squares) > 1e-12 * largest))
		return false;
	for (uint32_t i = 0; i < n; i++)
		to[i] /= sqrt(squares);
	return true;
}

static double product(const double *a, const double *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return fmin(1, fmax(-1, sum));
}

double series_correlation(const double *a, const double *b, uint32_t n)
{
	_cleanup_(freep) double *x = calloc(2 * (size_t)n + 1, sizeof(*x));

	return x && normalize(a, n, x) && normalize(b, n, x + n) ? product(x, x + n, n) : NAN;
}

static uint32_t moments(const double *values, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += values[i] != 0;
	return found;
}

static void offer(struct series_mate *to, uint32_t mate, double r)
{
	if (r >= SERIES_MATE_LEAST && (to->mate == NO_MATE || r > to->r))
		*to = (struct series_mate){ mate, r };
}

int series_mates(const double *values, uint32_t n_series, uint32_t n_moments,
		 struct series_mate *ret_mates)
{
	_cleanup_(freep) double *x = calloc((size_t)n_series * n_moments + 1, sizeof(*x));
	_cleanup_(freep) bool *moves = calloc((size_t)n_series + 1, sizeof(*moves));

	if (!x || !moves)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_series; i++) {
		const double *own = values + (size_t)i * n_moments;

		ret_mates[i] = (struct series_mate){ NO_MATE, 0 };
		moves[i] = moments(own, n_moments) >= SERIES_MATE_MOMENTS &&
			   normalize(own, n_moments, x + (size_t)i * n_moments);
	}
	for (uint32_t i = 0; i < n_series; i++)
		for (uint32_t k = 0; moves[i] && k < i; k++) {
			double r;

			if (!moves[k])
				continue;
			r = product(x + (size_t)i * n_moments, x + (size_t)k * n_moments,
				    n_moments);
			offer(&ret_mates[i], k, r);
			offer(&ret_mates[k], i, r);
		}
	return 0;
}
