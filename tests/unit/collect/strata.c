#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/stream/sideband.h"
#include "collect/stream/strata.h"

#include <math.h>
#include <stdlib.h>

static void a_load_that_stays_the_same_has_no_error(void **state)
{
	const double sums[] = { 5, 5, 5, 5, 5, 5 };

	(void)state;
	assert_true(strata_collapsed(sums, 6) == 0);
	assert_true(strata_collapsed(sums, 5) == 0);
}

/* Sums that scatter by 1 around their mean: the sum of 60 scatters by sqrt(60). */
static void the_error_is_that_by_which_sums_scatter(void **state)
{
	double squares = 0;
	unsigned seed = 5;

	(void)state;
	for (int run = 0; run < 2000; run++) {
		double sums[60];

		for (int i = 0; i < 60; i++)
			sums[i] = 100 + (rand_r(&seed) % 2 ? 1 : -1);
		squares += pow(strata_collapsed(sums, 60), 2);
	}
	/* The mean of 2,000 variances, each of 30 pairs: its own standard error is 60 * sqrt(1/30/2000), 0.25. */
	assert_true(fabs(squares / 2000 - 60) < 5 * 0.25);
}

static void rings_of_a_large_host_are_smaller(void **state)
{
	static const uint32_t cpus[] = { 1, 2, 8, 42, 64, 128, 256, 512 };

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		struct sideband_pages p = sideband_pages(cpus[i], 4096);

		assert_int_equal(p.prompt & (p.prompt - 1), 0);
		assert_int_equal(p.calm & (p.calm - 1), 0);
		assert_true(p.calm >= 4 && p.prompt >= 4);
		assert_true((uint64_t)cpus[i] * (p.prompt + p.calm) * 4096 <= 16U << 20);
	}
	assert_int_equal(sideband_pages(2, 4096).prompt, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_that_stays_the_same_has_no_error),
		cmocka_unit_test(the_error_is_that_by_which_sums_scatter),
		cmocka_unit_test(rings_of_a_large_host_are_smaller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
