#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/beta.h"

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-9 * fmax(1, fabs(want)))
		fail_msg("%.15g, not %.15g", got, want);
}

static void binomial_tails_are_those_of_the_tables(void **state)
{
	(void)state;
	near(binomial_tail(10, 8, 0.5), 56.0 / 1024);
	near(binomial_tail(10, 0, 0.5), 1);
	near(binomial_tail(10, 10, 0.5), 1.0 / 1024);
	near(binomial_tail(4, 1, 0.25), 1 - 0.31640625);
	near(binomial_tail(5, 6, 0.5), 0);
	/* By exact fractions. */
	near(binomial_tail(120, 50, 0.3), 0.004354320130847698);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binomial_tails_are_those_of_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
