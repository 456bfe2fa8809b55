#include "preload/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define RATE 524288.0

static void logarithm_and_exponential_are_those_of_libm(void **state)
{
	uint64_t s = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		double u = ((double)(draw_word(&s) >> 11) + 1) * 0x1p-53;
		double x = u * 60;

		assert_true(fabs(draw_log(u) - log(u)) <= 1e-12 * fabs(log(u)) + 1e-15);
		assert_true(fabs(draw_exp_minus(x) - exp(-x)) <= 1e-12 * exp(-x));
	}
	assert_true(draw_log(1) == 0);
	assert_true(draw_exp_minus(0) == 1);
	assert_true(draw_exp_minus(1e6) == 0);
}

static void weight_is_size_over_probability_at_every_size(void **state)
{
	(void)state;
	for (double size = 1; size < 1e13; size *= 1.37) {
		double want = size / -expm1(-size / RATE);

		assert_true(fabs(draw_weight(size, RATE) - want) <= 1e-9 * want);
	}
}

/* Mean of n exponentials: standard error rate/sqrt(n); 5 of them. */
static void mean_interval_is_the_rate(void **state)
{
	const int n = 400000;
	uint64_t s = 7;
	double sum = 0;

	(void)state;
	for (int i = 0; i < n; i++) {
		uint64_t x = draw_interval(&s, RATE);

		assert_true(x >= 1);
		sum += (double)x;
	}
	assert_true(fabs(sum / n - RATE) < 5 * RATE / sqrt(n) + 1);
}

/* The share of blocks hit, against 1 - exp(-size/rate), within 5 sigma of a binomial. */
static void a_block_is_hit_with_the_probability_of_its_size(void **state)
{
	static const uint64_t sizes[] = { 1, 16, 1000, 65536, 524288, 2000000 };
	const int n = 300000;

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		double rate = sizes[k] < 1000 ? 100 : RATE, p = -expm1(-(double)sizes[k] / rate);
		uint64_t s = 100 + k, until = draw_interval(&s, rate);
		int hits = 0;

		for (int i = 0; i < n; i++) {
			if (sizes[k] < until) {
				until -= sizes[k];
			} else {
				hits++;
				until = draw_interval(&s, rate);
			}
		}
		assert_true(fabs(hits - n * p) < 5 * sqrt(n * p * (1 - p)) + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logarithm_and_exponential_are_those_of_libm),
		cmocka_unit_test(weight_is_size_over_probability_at_every_size),
		cmocka_unit_test(mean_interval_is_the_rate),
		cmocka_unit_test(a_block_is_hit_with_the_probability_of_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
