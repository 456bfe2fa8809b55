#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "analyse/site_stats.h"

/* Relative to the reference, which was computed with exact fractions (Python's, 2026-11-24). */
static void assert_near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fabs(want)))
		fail_msg("%.17g, wanted %.17g", got, want);
}

static void readings_at_uneven_times_equal_the_reference(void **state)
{
	static const struct point p[] = {
		{ 0.5, 1048576 }, { 1.5, 1100000 }, { 2.75, 1050000 },  { 4, 1200000 },
		{ 7, 1310720 },   { 7.5, 1299999 }, { 11.25, 1500000 }, { 20, 2097152 },
	};
	static const double want[] = { 0.5, 1.125, 1.25, 2.125, 1.75, 2.125, 6.25, 4.375 };
	struct site_stats s;
	double span[8];

	(void)state;
	site_stats_spans(p, 8, span);
	for (int i = 0; i < 8; i++)
		assert_near(span[i], want[i]);
	site_stats(p, span, 8, &s);
	assert_near(s.integral, 29230585.875);
	assert_near(s.mean, 1499004.4038461538);
	assert_near(s.deviation, 353301.56571332138);
	assert_near(s.intercept, 960964.52856831311);
	assert_near(s.slope, 53554.693054192561);
	assert_near(s.r2, 0.97166307090948678);
	assert_true(s.slope_low < s.slope && s.slope < s.slope_high);
	assert_true(s.first_s == 0.5 && s.last_s == 20);
}

static void bins_with_a_short_last_one_equal_the_reference(void **state)
{
	struct point p[60];
	double span[60];
	struct site_stats s;

	(void)state;
	for (int i = 0; i < 60; i++) {
		p[i] = (struct point){ i + .5, i % 3 ? i * i * 37 % 1009 * 4096 : 0 };
		span[i] = 1;
	}
	p[59].t = 59.125;
	span[59] = .25;
	site_stats(p, span, 60, &s);
	assert_near(s.integral, 86538240);
	assert_near(s.mean, 1460561.0126582279);
	assert_near(s.deviation, 1465948.1258493664);
	assert_near(s.intercept, 1255235.7343626774);
	assert_near(s.slope, 7353.3007922424667);
	assert_near(s.r2, 0.0075670591326896632);
	assert_true(s.first_s == 1.5);
}

/* In real units: twice as many readings of the same shape are the same integral, mean and slope. */
static void how_often_is_read_changes_nothing(void **state)
{
	struct point coarse[11], fine[41];
	struct site_stats a, b;
	double span[41];

	(void)state;
	for (int i = 0; i <= 10; i++)
		coarse[i] = (struct point){ i, 1000 + 50 * i };
	for (int i = 0; i <= 40; i++)
		fine[i] = (struct point){ i / 4.0, 1000 + 12.5 * i };
	site_stats_spans(coarse, 11, span);
	site_stats(coarse, span, 11, &a);
	site_stats_spans(fine, 41, span);
	site_stats(fine, span, 41, &b);
	assert_near(a.integral, 12500);
	assert_near(b.integral, 12500);
	assert_near(a.slope, 50);
	assert_near(b.slope, 50);
	assert_near(b.intercept, 1000);
	assert_near(b.r2, 1);
}

static void one_reading_and_nothing_at_all_have_no_slope(void **state)
{
	static const struct point zero[] = { { 1, 0 }, { 2, 0 }, { 3, 0 } };
	struct site_stats s;
	double span[3];

	(void)state;
	site_stats_spans(zero, 1, span);
	site_stats(&(struct point){ 4, 7 }, span, 1, &s);
	assert_true(s.integral == 7 && s.mean == 7 && s.deviation == 0 && s.slope == 0);
	assert_true(isinf(s.slope_low) && isinf(s.slope_high));
	site_stats_spans(zero, 3, span);
	site_stats(zero, span, 3, &s);
	assert_true(s.integral == 0 && s.slope == 0 && s.slope_low == 0 && s.slope_high == 0);
	assert_true(isnan(s.first_s) && isnan(s.last_s));
}

/* Four fifths of all that came, in the shortest time. */
static void a_burst_is_the_shortest_time_that_has_most(void **state)
{
	struct point p[20];
	double span[20];
	struct site_stats s;
	uint32_t from, to;

	(void)state;
	for (int i = 0; i < 20; i++) {
		p[i] = (struct point){ i + .5, i == 7 ? 40 : i == 8 ? 50 : 1 };
		span[i] = 1;
	}
	site_stats(p, span, 20, &s); /* of 108: 87 are enough */
	assert_true(s.burst_from_s == 7 && s.burst_to_s == 9);
	p[8].y = 5; /* of 63: 51 */
	assert_true(site_burst(p, span, 20, &from, &to));
	assert_true(from <= 7 && to >= 9 && to - from == 8);
	for (int i = 0; i < 20; i++)
		p[i].y = 3;
	assert_true(site_burst(p, span, 20, &from, &to));
	assert_true(from == 0 && to == 16);
	for (int i = 0; i < 20; i++)
		p[i].y = i == 4 ? -1 : 0;
	site_stats(p, span, 20, &s);
	assert_true(isnan(s.burst_from_s) && isnan(s.burst_to_s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_at_uneven_times_equal_the_reference),
		cmocka_unit_test(bins_with_a_short_last_one_equal_the_reference),
		cmocka_unit_test(how_often_is_read_changes_nothing),
		cmocka_unit_test(one_reading_and_nothing_at_all_have_no_slope),
		cmocka_unit_test(a_burst_is_the_shortest_time_that_has_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
