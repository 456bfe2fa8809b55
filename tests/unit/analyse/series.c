#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/series.h"

static void assert_near(double got, double wanted)
{
	assert_true(fabs(got - wanted) <= 1e-9 * fmax(fabs(wanted), 1));
}

/* Of 1 and 2 degrees of freedom there are closed forms; the others are from numerical integration of
 * the density. */
static void student_t_is_that_of_the_definition(void **state)
{
	assert_near(student_t_quantile(0.975, 1), tan(0.475 * M_PI));
	assert_near(student_t_quantile(0.975, 2), 0.95 / sqrt(2 * 0.975 * 0.025));
	assert_near(student_t_quantile(0.975, 5), 2.570581835636);
	assert_near(student_t_quantile(0.975, 8), 2.306004135204);
	assert_near(student_t_quantile(0.975, 10), 2.228138851986);
	assert_near(student_t_quantile(0.975, 30), 2.042272456301);
	assert_near(student_t_quantile(0.975, 100), 1.983971518524);
	assert_near(student_t_quantile(0.995, 10), 3.169272672617);
	assert_near(student_t_quantile(0.95, 4), 2.131846786327);
	assert_near(student_t_quantile(0.5, 7), 0);
	(void)state;
}

/* The reference: the same formulas in exact fractions, rounded once. */
static void line_and_its_interval_equal_a_reference(void **state)
{
	static const struct point p[] = { { 0, 10 }, { 1, 12 }, { 2, 11 }, { 4, 15 },  { 5, 18 },
					  { 7, 17 }, { 8, 21 }, { 9, 20 }, { 11, 26 }, { 12, 25 } };
	struct series_line line;
	struct series_facts f;

	series_line(p, 10, &line);
	assert_near(line.at, 9.810070108349267);
	assert_near(line.slope, 1.3033779477374123);
	assert_near(line.r2, 0.94350722234442774);
	assert_near(line.slope_low, 1.1726827389271059);
	assert_near(line.slope_high, 1.4340731565477187);
	series_facts(p, 10, &f);
	assert_near(f.first, 10);
	assert_near(f.last, 25);
	assert_near(f.min, 10);
	assert_near(f.max, 26);
	assert_near(f.mean, 17.5);
	(void)state;
}

static void line_of_few_points_promises_nothing(void **state)
{
	static const struct point p[] = { { 3, 5 }, { 4, 7 }, { 4, 9 } };
	struct series_line line;

	series_line(p, 1, &line);
	assert_near(line.slope, 0);
	assert_near(line.at, 5);
	assert_true(isinf(line.slope_low) && isinf(line.slope_high));
	series_line(p, 2, &line);
	assert_near(line.slope, 2);
	assert_true(isinf(line.slope_low));
	series_line(p + 1, 2, &line); /* a clock that stands still */
	assert_near(line.slope, 0);
	assert_near(line.at, 8);
	(void)state;
}

/* Large offsets: epochs in seconds, terabytes in kB. */
static void far_away_from_zero_nothing_is_lost(void **state)
{
	struct series_line line;
	struct point p[1000];

	for (int i = 0; i < 1000; i++)
		p[i] = (struct point){ 1.7e9 + i, 4e9 + 0.25 * i };
	series_line(p, 1000, &line);
	assert_near(line.slope, 0.25);
	assert_near(line.at, 4e9);
	(void)state;
}

static void pieces_begin_where_the_course_changes(void **state)
{
	uint32_t begin[SERIES_PIECES];
	struct point p[SERIES_POINTS];

	for (int i = 0; i < 200; i++)
		p[i] = (struct point){ i, i < 60 ? 1000 : i < 130 ? 5000 : 5000 + 100 * (i - 130) };
	assert_int_equal(series_pieces(p, 200, 4, begin), 3);
	assert_int_equal(begin[0], 0);
	assert_int_equal(begin[1], 60);
	assert_true(begin[2] == 130 || begin[2] == 131);
	assert_int_equal(series_pieces(p, 60, 4, begin), 1);
	assert_int_equal(series_pieces(p, 5, 4, begin), 1);
	for (int i = 0; i < 200; i++)
		p[i].y = 1000 + (i * 7919 % 13);
	assert_int_equal(series_pieces(p, 200, 4, begin), 1);
	(void)state;
}

static void thinned_series_keeps_its_mean(void **state)
{
	struct point p[1000], few[SERIES_POINTS];

	for (int i = 0; i < 1000; i++)
		p[i] = (struct point){ i, 3 * i };
	assert_int_equal(series_thin(p, 1000, few, SERIES_POINTS), 250);
	assert_near(few[0].t, 1.5);
	assert_near(few[0].y, 4.5);
	assert_near(few[249].y, 3 * 997.5);
	assert_int_equal(series_thin(p, 1, few, SERIES_POINTS), 1);
	assert_int_equal(series_thin(p, 257, few, SERIES_POINTS), 128);
	assert_int_equal(series_thin(p, 0, few, SERIES_POINTS), 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student_t_is_that_of_the_definition),
		cmocka_unit_test(line_and_its_interval_equal_a_reference),
		cmocka_unit_test(line_of_few_points_promises_nothing),
		cmocka_unit_test(far_away_from_zero_nothing_is_lost),
		cmocka_unit_test(pieces_begin_where_the_course_changes),
		cmocka_unit_test(thinned_series_keeps_its_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
