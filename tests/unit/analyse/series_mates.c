#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "analyse/series_mates.h"

/* The reference was computed with exact fractions and 50 digits of a root (Python's fractions and decimal, 2026-11-24). */
static void correlations_equal_the_reference(void **state)
{
	double a[60], b[60], c[60], d[60];

	(void)state;
	for (int i = 0; i < 60; i++) {
		a[i] = i % 3 ? i * i * 37 % 1009 * 4096 : 0;
		b[i] = 3 * a[i] + i * i * 91 % 733 * 4096;
		c[i] = 1e15 + i * i * 37 % 1009; /* small movements of large values */
		d[i] = i - 7 * (i * i * 37 % 1009);
	}
	assert_true(fabs(series_correlation(a, b, 60) - .97742273920149193) < 1e-9);
	assert_true(fabs(series_correlation(c, d, 60) - -.99996922455523347) < 1e-9);
	assert_true(fabs(series_correlation(a, a, 60) - 1) < 1e-9);
	for (int i = 0; i < 60; i++)
		d[i] = .1;
	assert_true(isnan(series_correlation(a, d, 60)));
}

/* 0 and 2 have one shape in different sizes; 1 is the opposite of them; 3 is constant; 4 and 5 are alike in three moments only. */
static void each_series_has_the_one_that_it_follows_most(void **state)
{
	static const double values[6][8] = {
		{ 0, 1, 5, 9, 2, 0, 4, 1 },        { 9, 8, 4, 0, 7, 9, 5, 8 },
		{ 0, 22, 98, 181, 42, 1, 80, 19 }, { 3, 3, 3, 3, 3, 3, 3, 3 },
		{ 0, 5, 7, 6, 0, 0, 0, 0 },        { 0, 5, 7, 6, 0, 0, 0, 0 },
	};
	struct series_mate mates[6];

	(void)state;
	assert_int_equal(series_mates(&values[0][0], 6, 8, mates), 0);
	assert_int_equal(mates[0].mate, 2);
	assert_int_equal(mates[2].mate, 0);
	assert_true(mates[0].r > .99 && mates[0].r == mates[2].r);
	assert_true(fabs(mates[0].r - series_correlation(values[0], values[2], 8)) < 1e-12);
	assert_int_equal(mates[1].mate, NO_MATE);
	assert_int_equal(mates[3].mate, NO_MATE);
	assert_int_equal(mates[4].mate, NO_MATE);
	assert_int_equal(series_mates(NULL, 0, 8, mates), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(correlations_equal_the_reference),
		cmocka_unit_test(each_series_has_the_one_that_it_follows_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
