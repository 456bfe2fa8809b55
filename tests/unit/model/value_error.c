#include "model/value_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <math.h>

#include <cmocka.h>

static void close_to(double got, double want, double by)
{
	if (!(fabs(got - want) <= by) && got != want)
		fail_msg("%.15g, not %.15g", got, want);
}

static struct value_error read_again(const struct value_error *e, int64_t value, uint32_t *ret_n)
{
	struct value_error_number numbers[ERROR_LABELS_MAX];
	struct value_error got;

	*ret_n = value_error_write(e, value, numbers);
	value_error_begin(&got);
	for (uint32_t i = *ret_n; i--;) /* in any order */
		value_error_read(&got, value, numbers[i]);
	value_error_end(&got);
	return got;
}

static void labels_say_the_same_in_any_order(void **state)
{
	struct value_error e = {
		.samples = 7, .unseen = 900, .v = 250000, .vc = 1e8, .below = 300, .above = 500
	};
	struct value_error got;
	uint32_t n;

	(void)state;
	for (int g = 0; g < ERROR_GROUPS; g++)
		e.group[g] = g == 3 ? 0 : (g - 8) * 1000 - 1;
	got = read_again(&e, 1000, &n);
	assert_int_equal(n, 6 + 15); /* a group that does not deviate has no label */
	close_to(got.samples, 7, 0);
	close_to(got.unseen, 900, 0);
	close_to(got.v, 250000, 0);
	close_to(got.vc, 1e8, 0);
	close_to(got.below, 300, 0);
	close_to(got.above, 500, 0);
	for (int g = 0; g < ERROR_GROUPS; g++)
		close_to(got.group[g], e.group[g], 0);
}

static void what_is_not_there_is_not_written(void **state)
{
	struct value_error e = { .samples = 2, .unseen = INFINITY, .v = 100, .vc = 1000 }, got;
	uint32_t n;

	(void)state;
	got = read_again(&e, 50, &n);
	assert_int_equal(n, 3);
	assert_true(isinf(got.unseen) && got.below == 0 && !value_error_has_groups(&got));
	/* pprof drops labels of 0, so a bound there is said to be 1. */
	e = (struct value_error){ .samples = 2, .below = 50, .above = 10 };
	got = read_again(&e, 50, &n);
	close_to(got.below, 49, 0);
	close_to(got.above, 10, 0);
}

static void deviations_of_one_group_add_with_their_signs_and_groups_as_squares(void **state)
{
	struct value_error a = { .group = { 3, 4 } }, b = { .group = { -3, 4 } };

	(void)state;
	close_to(value_error_variance(&a), 25, 0);
	value_error_add(&a, &b);
	close_to(value_error_variance(&a), 64, 0);
}

static void what_is_subtracted_is_as_uncertain(void **state)
{
	struct value_error e = {
		.samples = 3, .unseen = 10, .v = 16, .vc = 8, .below = 1, .above = 2, .group = { 5 }
	};

	(void)state;
	value_error_negate(&e);
	assert_true(isinf(e.unseen));
	close_to(e.v, 16, 0);
	close_to(e.vc, -8, 0);
	close_to(e.below, 2, 0);
	close_to(e.group[0], -5, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_say_the_same_in_any_order),
		cmocka_unit_test(what_is_not_there_is_not_written),
		cmocka_unit_test(
			deviations_of_one_group_add_with_their_signs_and_groups_as_squares),
		cmocka_unit_test(what_is_subtracted_is_as_uncertain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
