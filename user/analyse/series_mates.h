/*
 * Which of several series rise and fall together: for each the one that its values follow most closely.
 *
 * By Pearson's correlation of the values at the same moments. It says nothing of a cause, and two that only grow, each
 * for a reason of its own, are correlated as well. A series of few moments follows another by chance: those that are not 0 at
 * SERIES_MATE_MOMENTS of them at least are compared.
 */
#ifndef MEMSCOPE_ANALYSE_SERIES_MATES_H
#define MEMSCOPE_ANALYSE_SERIES_MATES_H

#include <stdint.h>

#define SERIES_MATE_LEAST   .9 /* a correlation below that is not worth a mark */
#define SERIES_MATE_MOMENTS 4
#define NO_MATE		    UINT32_MAX

struct series_mate {
	uint32_t mate; /* NO_MATE: it follows none */
	double r;
};

/* -1 … 1; NAN where one of them is constant. */
double series_correlation(const double *a, const double *b, uint32_t n);
/* Series i is values[i * n_moments …]. O(n_series² n_moments). 0 or -ENOMEM. */
int series_mates(const double *values, uint32_t n_series, uint32_t n_moments, struct series_mate *ret_mates);

#endif
