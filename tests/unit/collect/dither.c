#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/dither.h"
#include "sample_weight.h"

#include <math.h>
#include <string.h>

#define N_RATES 4
static const uint32_t rates[N_RATES] = { 49, 99, 499, 999 };

/* One CPU for some seconds: what samples find of a program whose cycle is divided 70/20/10. */
struct sim {
	__u64 from_ns, to_ns, last_ns;
	double n, weight_ns;
	double found[3], found_ns[3];
};

static void sample(struct sim *s, uint64_t now_ns, uint64_t mean_ns, uint64_t cycle_ns)
{
	double phase = (double)(now_ns % cycle_ns) / (double)cycle_ns;
	double ns = (double)sample_weight_ns(&s->last_ns, now_ns, mean_ns);
	int part = phase < 0.7 ? 0 : phase < 0.9 ? 1 : 2;

	s->n++;
	s->weight_ns += ns;
	s->found[part]++;
	s->found_ns[part] += ns;
}

static struct sim simulate(uint32_t hz, uint64_t cycle_ns, double samples, uint64_t seed)
{
	struct sim s = { .from_ns = 1000000000 + seed * 7919 };
	struct dither d;
	uint64_t now = s.from_ns;

	dither_init(&d, hz, 0, seed * 0xd1342543de82ef95ULL);
	s.to_ns = now + (uint64_t)(samples * 1e9 / hz);
	s.last_ns = now;
	while (now < s.to_ns) {
		uint64_t until = now + dither_hold_ns(&d), period = dither_period_ns(&d);

		for (uint64_t at = now + period; at < until && at < s.to_ns; at += period)
			sample(&s, at, 1000000000 / hz, cycle_ns);
		now = until;
	}
	return s;
}

static void no_cycle_is_in_step_with_the_samples(void **state)
{
	static const double share[3] = { 0.7, 0.2, 0.1 };
	/* ns; those of the promise, and the period of each rate, a half and twice as much, to the ns */
	uint64_t cycles[5 + 3 * N_RATES] = { 1000000, 2000000, 5000000, 10000000, 100000000 };

	(void)state;
	for (int i = 0; i < N_RATES; i++)
		for (int k = 0; k < 3; k++)
			cycles[5 + 3 * i + k] = (1000000000ULL << k) / 2 / rates[i];
	for (int i = 0; i < N_RATES; i++) {
		for (size_t c = 0; c < sizeof(cycles) / sizeof(*cycles); c++) {
			struct sim s = simulate(rates[i], cycles[c], 4600, 1 + c);

			for (int k = 0; k < 3; k++) {
				double sigma = sqrt(share[k] * (1 - share[k]) / s.n);

				assert_true(fabs(s.found[k] / s.n - share[k]) < 5 * sigma);
				assert_true(fabs(s.found_ns[k] / s.weight_ns - share[k]) <
					    5 * sigma);
			}
		}
	}
}

static void weights_add_up_to_the_time_that_passed(void **state)
{
	(void)state;
	for (int i = 0; i < N_RATES; i++) {
		struct sim s = simulate(rates[i], 10000000, 2000, 3);

		/* No more is missing than has passed since the last sample. */
		assert_true(s.weight_ns == (double)(s.last_ns - s.from_ns));
		assert_true(s.to_ns - s.last_ns < 4000000000ULL / rates[i]);
	}
}

static void samples_come_at_the_rate_asked_for(void **state)
{
	(void)state;
	for (int i = 0; i < N_RATES; i++) {
		double sum = 0, squares = 0;

		for (uint64_t seed = 1; seed <= 100; seed++) {
			double off = simulate(rates[i], 10000000, 10000, seed).n - 10000;

			sum += off;
			squares += off * off;
		}
		/* That many independent ones would scatter by 100, and their mean by 10. */
		assert_true(fabs(sum / 100) < 50);
		assert_true(sqrt(squares / 100) < 75);
	}
}

static void periods_keep_their_bounds_at_any_rate(void **state)
{
	static const uint32_t hz[] = { 1, 99, 999, 9999, 100000 };

	(void)state;
	for (size_t i = 0; i < sizeof(hz) / sizeof(*hz); i++) {
		double most = MS_PERIOD_MOST_PERCENT * 1e7 / hz[i];
		struct dither d;

		dither_init(&d, hz[i], 0, 42);
		for (int k = 0; k < 10000; k++) {
			uint64_t ns = dither_period_ns(&d);

			assert_true(ns >= 10000 && (double)ns <= most);
			assert_true(dither_hold_ns(&d) >= 15000000);
		}
	}
}

static void periods_hold_as_long_as_is_asked_for_at_the_same_rate(void **state)
{
	const uint64_t least_ns = 4000000000;
	struct dither d;
	double samples = 0, ns = 0;

	(void)state;
	dither_init(&d, 19, least_ns, 42);
	for (int k = 0; k < 10000; k++) {
		double hold = (double)dither_hold_ns(&d);

		assert_true(hold >= 0.75 * (double)least_ns && hold <= 1.25 * (double)least_ns);
		samples += hold / (double)dither_period_ns(&d) - 0.5;
		ns += hold;
	}
	/* 1 / p of uniform p in mean * [0.5, 1.5] scatters by 0.33 of its mean; the pairs take some of it away. */
	assert_true(fabs(samples / (ns / 1e9) / 19 - 1) < 4 * 0.33 / 100);
}

static void what_fires_first_stands_for_the_mean(void **state)
{
	__u64 last = 0;

	(void)state;
	assert_int_equal(sample_weight_ns(&last, 123456789, 1000000), 1000000);
	assert_int_equal(last, 123456789);
	assert_int_equal(sample_weight_ns(&last, 124000000, 1000000), 543211);
}

static void a_machine_that_stood_still_is_nobodys_time(void **state)
{
	__u64 last = 1000000000;

	(void)state;
	assert_int_equal(sample_weight_ns(&last, 61000000000, 1000000), 3500000);
	assert_int_equal(sample_weight_ns(&last, 61001000000, 1000000), 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_cycle_is_in_step_with_the_samples),
		cmocka_unit_test(weights_add_up_to_the_time_that_passed),
		cmocka_unit_test(samples_come_at_the_rate_asked_for),
		cmocka_unit_test(periods_keep_their_bounds_at_any_rate),
		cmocka_unit_test(periods_hold_as_long_as_is_asked_for_at_the_same_rate),
		cmocka_unit_test(what_fires_first_stands_for_the_mean),
		cmocka_unit_test(a_machine_that_stood_still_is_nobodys_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
