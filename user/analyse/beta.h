/*
 * The regularised incomplete beta function, from which the tails of Student's t and of the binomial
 * distribution come (Abramowitz and Stegun 26.5 and 26.7).
 */
#ifndef MEMSCOPE_ANALYSE_BETA_H
#define MEMSCOPE_ANALYSE_BETA_H

/* I_x(a, b) for a, b > 0; 0 for x <= 0, 1 for x >= 1. To about 1e-14 of its value. */
double beta_inc(double a, double b, double x);
/* P(X >= k), X binomial of n and p; k and n may be fractions. */
double binomial_tail(double n, double k, double p);

#endif
