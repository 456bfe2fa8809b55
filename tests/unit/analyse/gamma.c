#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/gamma.h"

#define EULER 0.57721566490153286

static void near(double got, double want)
{
	assert_true(fabs(got - want) <= 1e-8 * fmax(1, fabs(want)));
}

/* Abramowitz and Stegun 6.3.2, 6.3.3, 6.4.2 and 6.4.4. */
static void values_are_those_of_the_tables(void **state)
{
	(void)state;
	near(digamma(1), -EULER);
	near(digamma(0.5), -EULER - 2 * log(2));
	near(digamma(4), -EULER + 1 + 1 / 2. + 1 / 3.);
	near(trigamma(1), M_PI * M_PI / 6);
	near(trigamma(0.5), M_PI * M_PI / 2);
	near(trigamma(3), M_PI * M_PI / 6 - 1 - 1 / 4.);
}

static void the_inverse_finds_where_a_value_is(void **state)
{
	(void)state;
	for (double x = 0.01; x < 1e5; x *= 7)
		near(trigamma_inverse(trigamma(x)), x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_those_of_the_tables),
		cmocka_unit_test(the_inverse_finds_where_a_value_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
