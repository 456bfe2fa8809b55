/*
 * The first two derivatives of the logarithm of the gamma function (Abramowitz and Stegun 6.3 and 6.4).
 */
#ifndef MEMSCOPE_ANALYSE_GAMMA_H
#define MEMSCOPE_ANALYSE_GAMMA_H

/* For x > 0. To about 1e-8. */
double digamma(double x);
double trigamma(double x);
/* The x in [1e-3, 1e6] whose trigamma() is y; it falls. */
double trigamma_inverse(double y);

#endif
