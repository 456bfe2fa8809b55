/*
 * Generated series of seven kinds, and what is said of them: the confusion matrix is printed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/trend_shape.h"

#define EACH       30
#define MAX_POINTS 3000

static uint64_t state = 88172645463325252ULL;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

static double between(double low, double high)
{
	return low + (high - low) * uniform();
}

enum made { LEAK, SAW, SAW_LEAK, STEP, WARM_UP, NOISE, TOO_SHORT, N_MADE };

static const char *const made_names[] = { "leak",     "sawtooth", "sawtooth that leaks",
					  "step",     "warm-up",  "noise",
					  "too short" };
static const enum trend_shape_kind expected[] = { TREND_SHAPE_GROWING, TREND_SHAPE_SAWTOOTH,
						  TREND_SHAPE_GROWING, TREND_SHAPE_STEPPED,
						  TREND_SHAPE_SETTLED, TREND_SHAPE_FLAT,
						  TREND_SHAPE_SHORT };

/* Sizes in kB: a program of 20 MB to 2 GB, looked at once in 1 to 300 s. Noise is of the kind that
 * memory has: neighbours alike. */
static uint32_t make(enum made what, struct point *p)
{
	uint32_t n = (uint32_t)between(60, what % 2 ? 400 : MAX_POINTS);
	double base = 20000 * pow(100, uniform()), step = between(1, 300);
	double grown = base * between(0.2, 2), at = between(0.2, 0.7) * n, noise, walk = 0;
	uint32_t teeth = (uint32_t)between(5, 15);

	if (what == TOO_SHORT)
		n = (uint32_t)between(1, TREND_SHAPE_POINTS);
	noise = what == NOISE ? base * between(0.0005, 0.02) : base * between(0.0001, 0.003);
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)i / n, tooth = x * teeth - floor(x * teeth), y = base;

		walk = 0.6 * walk + 0.8 * normal();
		if (what == LEAK)
			y += grown * x;
		else if (what == SAW)
			y += grown * tooth;
		else if (what == SAW_LEAK)
			y += grown * tooth * 0.5 + grown * x * 1.5;
		else if (what == STEP)
			y += i >= at ? grown : 0;
		else if (what == WARM_UP)
			y += grown * (1 - exp(-x * 20));
		p[i] = (struct point){ i * step * between(0.999, 1.001), y + noise * walk };
	}
	return n;
}

static void trend_shapes_are_distinguished(void **unused)
{
	static struct point p[MAX_POINTS];
	uint32_t seen[N_MADE][N_TREND_SHAPES] = { 0 }, right = 0;

	for (uint32_t w = 0; w < N_MADE; w++) {
		for (uint32_t i = 0; i < EACH; i++) {
			struct trend_shape c;

			trend_shape_of(p, make(w, p), &c);
			seen[w][c.kind]++;
			right += c.kind == expected[w];
		}
	}
	printf("# %-20s", "");
	for (uint32_t k = 0; k < N_TREND_SHAPES; k++)
		printf(" %9s", trend_shape_name(k));
	printf("\n");
	for (uint32_t w = 0; w < N_MADE; w++) {
		printf("# %-20s", made_names[w]);
		for (uint32_t k = 0; k < N_TREND_SHAPES; k++)
			printf(" %9u", seen[w][k]);
		printf("\n");
	}
	/* A leak is never missed, and nothing that settles is called one. */
	assert_int_equal(seen[LEAK][TREND_SHAPE_GROWING], EACH);
	assert_int_equal(seen[SAW_LEAK][TREND_SHAPE_GROWING], EACH);
	assert_int_equal(seen[TOO_SHORT][TREND_SHAPE_SHORT], EACH);
	for (uint32_t w = 0; w < N_MADE; w++)
		if (expected[w] != TREND_SHAPE_GROWING)
			assert_true(seen[w][TREND_SHAPE_GROWING] == 0);
	assert_true(right >= 0.97 * N_MADE * EACH);
	(void)unused;
}

static void a_reason_says_how_much_and_since_when(void **unused)
{
	struct point p[200];
	struct trend_shape c;
	char text[256];

	for (int i = 0; i < 200; i++)
		p[i] = (struct point){ i, 100000 + (i < 100 ? 0 : 102400 * (i - 100) / 60.0) };
	trend_shape_of(p, 200, &c);
	trend_shape_reason(&c, text, sizeof(text));
	assert_int_equal(c.kind, TREND_SHAPE_GROWING);
	assert_string_equal(text, "it grew by 100.0 MiB a minute (95 % interval 100.0 MiB ± "
				  "<1 B) since 101 seconds after the start");
	assert_int_equal(c.n_changes, 1);
	for (int i = 0; i < 200; i++)
		p[i].y = i < 50 ? 100000 : 151200;
	trend_shape_of(p, 200, &c);
	trend_shape_reason(&c, text, sizeof(text));
	assert_string_equal(text, "it jumped up by 50.0 MiB, 50 seconds after the start, and "
				  "stayed there");
	for (int i = 0; i < 200; i++)
		p[i] = (struct point){ 3600 * i, 100000 + 1024 * i };
	trend_shape_of(p, 200, &c);
	trend_shape_reason(&c, text, sizeof(text));
	assert_string_equal(text, "it grew by 24.0 MiB a day (95 % interval 24.0 MiB ± <1 B) "
				  "throughout");
	trend_shape_of(p, 3, &c);
	trend_shape_reason(&c, text, sizeof(text));
	assert_string_equal(text, "3 points are too few to judge (12 are needed)");
	(void)unused;
}

static void series_that_never_changes_is_flat(void **unused)
{
	struct point p[50];
	struct trend_shape c;

	for (int i = 0; i < 50; i++)
		p[i] = (struct point){ i, 4096 };
	trend_shape_of(p, 50, &c);
	assert_int_equal(c.kind, TREND_SHAPE_FLAT);
	for (int i = 0; i < 50; i++)
		p[i] = (struct point){ 7, i * 4096 }; /* a clock that stands still */
	trend_shape_of(p, 50, &c);
	assert_int_equal(c.kind, TREND_SHAPE_SHORT);
	trend_shape_of(NULL, 0, &c);
	assert_int_equal(c.kind, TREND_SHAPE_SHORT);
	(void)unused;
}

static void endpoint_rule_uses_the_two_end_points(void **unused)
{
	assert_int_equal(plain_verdict(100, 151).kind, PLAIN_WARNING);
	assert_int_equal(plain_verdict(100, 150).kind, PLAIN_MONITOR);
	assert_int_equal(plain_verdict(100, 120).kind, PLAIN_MONITOR);
	assert_int_equal(plain_verdict(100, 119.9).kind, PLAIN_HEALTHY);
	assert_int_equal(plain_verdict(100, 50).kind, PLAIN_HEALTHY);
	assert_true(fabs(plain_verdict(100, 50).percent + 50) < 1e-12);
	assert_int_equal(plain_verdict(0, 50).kind, PLAIN_HEALTHY);
	(void)unused;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trend_shapes_are_distinguished),
		cmocka_unit_test(a_reason_says_how_much_and_since_when),
		cmocka_unit_test(series_that_never_changes_is_flat),
		cmocka_unit_test(endpoint_rule_uses_the_two_end_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
