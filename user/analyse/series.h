/*
 * Statistics of a series of measurements over time: a line through it, with an interval that can be
 * believed, and the moments at which its shape changes.
 *
 * Times are in seconds and rise; they need not be evenly spaced. Values have any unit, and so have
 * slopes per second.
 */
#ifndef MEMSCOPE_ANALYSE_SERIES_H
#define MEMSCOPE_ANALYSE_SERIES_H

#include <stdint.h>

struct point {
	double t, y;
};

/* Of at least one point. */
struct series_facts {
	double first, last, min, max, mean;
};

void series_facts(const struct point *p, uint32_t n, struct series_facts *ret_facts);

/*
 * The least-squares line y = at + slope * (t - t[0]).
 *
 * The interval of the slope (95 %) allows for neighbouring residuals that are alike, as those of
 * memory are: the heteroskedasticity and autocorrelation consistent variance of Newey and West
 * (1987) with Bartlett weights up to a lag of 4 (n / 100)^(2/9), times n / (n - 2), and Student's t
 * of n - 2 degrees of freedom. The usual interval is several times too narrow there. Under 3 points
 * it is infinite. r2 is the share of the variance that the line explains; 1 for a constant.
 */
struct series_line {
	uint32_t n;
	double at, slope;
	double slope_low, slope_high;
	double r2;
};

/* At least 1 point; of one the slope is 0. */
void series_line(const struct point *p, uint32_t n, struct series_line *ret_line);

/*
 * Where pieces begin if the series is cut so that lines through its pieces fit best: optimal
 * partitioning (Jackson et al. 2005) by dynamic programming, with a penalty for each piece of 3 ln
 * n times the variance of the noise (a line and a place are three numbers: BIC). The variance is
 * estimated from the differences of neighbours and of every second one, by medians, allowing for
 * correlated neighbours; its root is at least `noise`.
 * The first is always 0. At most SERIES_PIECES, each of at least 4 points; n at most SERIES_POINTS.
 * Returns how many, at least 1.
 */
#define SERIES_POINTS 256
#define SERIES_PIECES 16

uint32_t series_pieces(const struct point *p, uint32_t n, double noise,
		       uint32_t ret_begin[SERIES_PIECES]);

/* Reduces n points to at most `max`: means of runs of equal length. Returns how many. */
uint32_t series_thin(const struct point *p, uint32_t n, struct point *ret_points, uint32_t max);

/* The number that Student's t with `df` (at least 1) degrees of freedom exceeds with probability
 * 1 - p, for 0.5 <= p < 1. To 12 digits. */
double student_t_quantile(double p, double df);
/* The probability of more than t. */
double student_t_tail(double t, double df);

#endif
