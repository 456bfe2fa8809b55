/*
 * The estimator against simulated samplers: known sizes, points at exponential distances, and how
 * often the interval holds the truth. Seeds are fixed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/estimate.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define RUNS 10000
#define RATE 524288.0

/* An independent source of random numbers (xorshift64*), and libm's functions: nothing is shared
 * with the sampler. */
static uint64_t state;

static double uniform(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((double)(state * 0x2545f4914f6cdd1dULL >> 11) + 1) * 0x1p-53;
}

static double left; /* bytes to the next point */

static void begin(uint64_t seed)
{
	state = seed;
	left = -log(uniform()) * RATE;
}

/* One block in the stream of bytes; `points`: weighed by points times rate, as other samplers do. */
static void block(struct estimate *est, uint64_t size, bool points)
{
	double end = (double)size;
	uint64_t n = 0;

	while (left <= end) {
		n++;
		left += -log(uniform()) * RATE;
		if (!points) {
			left = end + -log(uniform()) * RATE;
			break;
		}
	}
	left -= end;
	if (n)
		estimate_add(
			est, size,
			(uint64_t)((points ? (double)n * RATE : end / -expm1(-end / RATE)) + 0.5));
}

/* What a stack allocates in one run: sizes by a rule, until so many samples are expected. */
struct shape {
	const char *name;
	uint64_t (*size)(uint32_t i);
	double expected; /* rates' worth of bytes */
};

static uint64_t all_4k(uint32_t i)
{
	(void)i;
	return 4096;
}

static uint64_t around_the_rate(uint32_t i)
{
	return 100000 + i * 7919 % 800000;
}

static uint64_t mixed_small(uint32_t i)
{
	return i % 100 ? 500 + i * 31 % 9000 : 100000;
}

/* Most bytes are in blocks that are sampled for certain, and beside them many small ones. */
static uint64_t mixed_large(uint32_t i)
{
	return i % 2000 == 0 ? 8 << 20 : i % 300 == 0 ? 300000 : 1000 + i % 2000;
}

static const struct shape shapes[] = {
	{ "4 KiB, 5 samples", all_4k, 5 },     { "4 KiB, 20 samples", all_4k, 20 },
	{ "4 KiB, 100 samples", all_4k, 100 }, { "around the rate", around_the_rate, 40 },
	{ "mixed small", mixed_small, 30 },    { "mixed large", mixed_large, 120 },
};

static void interval_holds_the_truth_in_93_to_97_percent_of_runs(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
		const struct shape *shape = &shapes[k];
		/* 4 sigma of the Poisson number of samples in all runs */
		double sigma4 = 4 / sqrt(shape->expected * RUNS), sum = 0, truths = 0;
		double tolerance = sigma4 > 0.01 ? sigma4 : 0.01;
		uint32_t holds = 0;

		begin(1000 + k);
		for (int run = 0; run < RUNS; run++) {
			struct estimate est = { 0 };
			struct interval i;
			double truth = 0;

			for (uint32_t b = 0; truth < shape->expected * RATE; b++) {
				uint64_t size = shape->size(b);

				block(&est, size, false);
				truth += (double)size;
			}
			i = estimate_interval(&est);
			holds += i.low <= truth && truth <= i.high;
			sum += est.bytes;
			truths += truth;
		}
		if (holds < RUNS * 0.93 || holds > RUNS * 0.97 ||
		    fabs(sum / truths - 1) > tolerance)
			fail_msg("%s: %.2f %% hold, bias %.3f %%", shape->name,
				 100.0 * holds / RUNS, 100 * (sum / truths - 1));
	}
}

/* The weights of samplers that count points: the same sums, without knowing so. */
static void points_times_rate_are_estimated_as_well(void **unused)
{
	double sum = 0, truths = 0;
	uint32_t holds = 0;

	(void)unused;
	begin(77);
	for (int run = 0; run < RUNS; run++) {
		struct estimate est = { 0 };
		struct interval i;
		double truth = 0;

		for (uint32_t b = 0; truth < 60 * RATE; b++) {
			uint64_t size = around_the_rate(b);

			block(&est, size, true);
			truth += (double)size;
		}
		i = estimate_interval(&est);
		holds += i.low <= truth && truth <= i.high;
		sum += est.bytes;
		truths += truth;
	}
	assert_true(fabs(sum / truths - 1) < 0.01);
	assert_true(holds >= RUNS * 0.93 && holds <= RUNS * 0.97);
}

/* Many stacks in one stream: each by itself, and their sum. */
static void stacks_that_share_a_thread_are_each_unbiased(void **unused)
{
	enum { STACKS = 5 };
	static const uint64_t sizes[STACKS] = { 700, 3000, 20000, 150000, 2 << 20 };
	double sum[STACKS] = { 0 }, blocks[STACKS] = { 0 }, truth[STACKS] = { 0 }, all = 0,
	       whole = 0;
	uint32_t holds = 0;

	(void)unused;
	begin(5);
	for (int run = 0; run < 2000; run++) {
		struct estimate est[STACKS], total = { 0 };
		struct interval i;
		double bytes = 0;

		memset(est, 0, sizeof(est));
		for (uint32_t b = 0; b < 4000; b++) {
			uint32_t s = b % 64 == 0 ? 4 : b % 8 == 0 ? 3 : b % 3;

			block(&est[s], sizes[s], false);
			truth[s] += (double)sizes[s];
			bytes += (double)sizes[s];
		}
		for (int s = 0; s < STACKS; s++) {
			sum[s] += est[s].bytes;
			blocks[s] += est[s].blocks * (double)sizes[s];
			estimate_merge(&total, &est[s]);
		}
		i = estimate_interval(&total);
		holds += i.low <= bytes && bytes <= i.high;
		all += total.bytes;
		whole += bytes;
	}
	assert_true(fabs(all / whole - 1) < 0.002);
	assert_true(holds >= 2000 * 0.93 && holds <= 2000 * 0.97);
	/* 5 sigma of a Poisson number of samples, at least 1 %. */
	for (int s = 0; s < STACKS; s++) {
		double sigma = sqrt(RATE / truth[s]),
		       tolerance = 5 * sigma > 0.01 ? 5 * sigma : 0.01;

		assert_true(fabs(sum[s] / truth[s] - 1) < tolerance);
		assert_true(fabs(blocks[s] / truth[s] - 1) < tolerance);
	}
}

static void blocks_that_are_sampled_for_certain_are_exact(void **unused)
{
	struct estimate est = { 0 };
	struct interval i;

	(void)unused;
	begin(3);
	for (int b = 0; b < 7; b++)
		block(&est, 50 << 20, false);
	i = estimate_interval(&est);
	assert_int_equal(est.samples, 7);
	assert_true(est.bytes == 7.0 * (50 << 20) && est.blocks == 7);
	assert_true(i.low == est.bytes && i.high == est.bytes);
}

static void nothing_is_an_estimate_of_nothing(void **unused)
{
	struct estimate est = { 0 };
	struct interval i;

	(void)unused;
	estimate_add(&est, 0, 512);
	i = estimate_interval(&est);
	assert_true(est.bytes == 0 && i.low == 0 && i.high == 0);
	/* A weight below the size is what counting points gives now and then. */
	estimate_add(&est, 1000000, 524288);
	i = estimate_interval(&est);
	assert_true(i.low == est.bytes && i.high == est.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interval_holds_the_truth_in_93_to_97_percent_of_runs),
		cmocka_unit_test(points_times_rate_are_estimated_as_well),
		cmocka_unit_test(stacks_that_share_a_thread_are_each_unbiased),
		cmocka_unit_test(blocks_that_are_sampled_for_certain_are_exact),
		cmocka_unit_test(nothing_is_an_estimate_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
