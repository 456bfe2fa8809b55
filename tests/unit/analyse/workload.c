/*
 * Programs whose growth is known, under work that is known, on a clock that is not: what is said of them, and
 * how often the intervals hold. Seeds are fixed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/workload.h"

#include <math.h>

#define RUNS 1000
#define DAY  86400.0
#define N    256

static uint64_t state;

static double uniform(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((double)(state * 0x2545f4914f6cdd1dULL >> 11) + 1) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

struct program {
	double per_s, per_request; /* bytes that leak                                      */
	double noise, walk; /* bytes: of each measurement; of what stays, by the root of a second */
	double even;        /* part of the requests that come evenly; the rest by day */
};

/* A day of 2,000 requests a second at noon and none at night. */
static void run(const struct program *prog, struct workload_point *p)
{
	double requests = 0, leaked = 200e6, step = DAY / N;

	for (int i = 0; i < N; i++) {
		double t = (i + 1) * step, day = sin(M_PI * t / DAY);
		double n =
			1000 * step *
			(prog->even + (1 - prog->even) * 2 * day * day * (0.7 + 0.6 * uniform()));

		requests += n;
		leaked += prog->per_s * step + prog->per_request * n +
			  prog->walk * sqrt(step) * normal();
		p[i] = (struct workload_point){ t, leaked + prog->noise * normal(), requests };
	}
}

/* How often each is said in RUNS days, and how often the intervals hold. */
static void days(const struct program *prog, uint32_t says[N_WORKLOADS], uint32_t *ret_unit_holds,
		 uint32_t *ret_idle_holds)
{
	static struct workload_point p[N];

	state = 0x9e3779b97f4a7c15ULL;
	*ret_unit_holds = *ret_idle_holds = 0;
	for (int i = 0; i < N_WORKLOADS; i++)
		says[i] = 0;
	for (int i = 0; i < RUNS; i++) {
		struct workload_fit f;

		run(prog, p);
		workload_fit(p, N, &f);
		says[f.says]++;
		*ret_unit_holds +=
			f.unit_low <= prog->per_request && prog->per_request <= f.unit_high;
		*ret_idle_holds += f.idle_low <= prog->per_s && prog->per_s <= f.idle_high;
	}
	print_message("steady %u work %u idle %u both %u unknown %u; holds %u %u of %u\n",
		      says[WORKLOAD_STEADY], says[WORKLOAD_WITH], says[WORKLOAD_IDLE],
		      says[WORKLOAD_BOTH], says[WORKLOAD_UNTOLD], *ret_unit_holds, *ret_idle_holds,
		      RUNS);
}

static void a_day_of_a_leak_by_request_is_told_from_one_by_time(void **unused)
{
	static const struct {
		struct program prog;
		enum workload_says says;
	} of[] = {
		{ { 0, 1, 1e6, 1e3, 0 }, WORKLOAD_WITH },
		{ { 1000, 0, 1e6, 1e3, 0 }, WORKLOAD_IDLE },
		{ { 1000, 1, 1e6, 1e3, 0 }, WORKLOAD_BOTH },
		{ { 0, 0, 5e6, 1e3, 0 }, WORKLOAD_STEADY },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		uint32_t says[N_WORKLOADS], unit, idle;

		days(&of[i].prog, says, &unit, &idle);
		assert_in_range(says[of[i].says],
				RUNS * (of[i].says == WORKLOAD_STEADY ? 97 : 95) / 100, RUNS);
	}
}

static void intervals_hold_whatever_the_noise(void **unused)
{
	static const struct program of[] = {
		{ 0, 1, 0, 1e4, 0 }, /* what is gained stays: a random walk            */
		{ 500, 1, 0, 3e4, 0.3 },
		{ 500, 1, 5e6, 1e4, 0.3 }, /* and is measured at any moment                  */
		{ 500, 1, 5e6, 0, 0.3 },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		uint32_t says[N_WORKLOADS], unit, idle;

		days(&of[i], says, &unit, &idle);
		assert_in_range(unit, RUNS * 92 / 100, RUNS);
		assert_in_range(idle, RUNS * 92 / 100, RUNS);
	}
}

static void where_work_goes_on_evenly_nothing_is_claimed(void **unused)
{
	static const struct program even = { 0, 1, 1e6, 1e4, 1 }, steady = { 1000, 0, 1e6, 1e4, 1 };
	uint32_t says[N_WORKLOADS], unit, idle;

	(void)unused;
	days(&even, says, &unit, &idle);
	assert_in_range(says[WORKLOAD_UNTOLD], RUNS * 99 / 100, RUNS);
	days(&steady, says, &unit, &idle);
	assert_in_range(says[WORKLOAD_UNTOLD], RUNS * 99 / 100, RUNS);
}

static void a_cache_that_follows_its_keys_grows_with_them(void **unused)
{
	struct workload_point p[100];
	struct workload_fit f;

	(void)unused;
	state = 7;
	/* Keys come and go, and in the end there are more: 100 bytes each. */
	for (int i = 0; i < 100; i++) {
		double keys = 1e5 + 1e5 * i / 100 + 5e4 * sin(i / 5.0);

		p[i] = (struct workload_point){ i, 50e6 + 100 * keys + 2e4 * normal(), keys };
	}
	workload_fit(p, 100, &f);
	assert_int_equal(f.says, WORKLOAD_WITH);
	assert_true(f.unit_low < 100 && 100 < f.unit_high);
	assert_true(f.unit_high - f.unit_low < 10);
	assert_true(f.r2 > 0.9);
}

static void a_long_time_in_which_nobody_looked_spoils_nothing(void **unused)
{
	struct workload_point p[60];
	struct workload_fit f;
	double t = 0;

	(void)unused;
	state = 11;
	/* 400 KiB a second; a third of the time is one step, with a third of the work. */
	for (int i = 0; i < 60; i++) {
		double step = i == 1 ? 9 : 0.3;

		t += step;
		p[i] = (struct workload_point){ t, 8e6 + 4e5 * t + 3e4 * normal(),
						(i ? p[i - 1].work : 0) +
							(i == 1 ? 900 : i / 10 % 2 * 60) };
	}
	workload_fit(p, 60, &f);
	assert_int_equal(f.says, WORKLOAD_IDLE);
	assert_true(f.idle_low < 4e5 && 4e5 < f.idle_high && f.idle_low > 3e5);
}

static void of_few_points_or_of_none_that_matter_nothing_is_said(void **unused)
{
	struct workload_point p[WORKLOAD_LEAST];
	struct workload_fit f;

	(void)unused;
	for (int i = 0; i < WORKLOAD_LEAST; i++)
		p[i] = (struct workload_point){ i, 1e6 + 1000.0 * i, i * i };
	workload_fit(p, WORKLOAD_LEAST - 1, &f);
	assert_int_equal(f.says, WORKLOAD_SHORT);
	workload_fit(p, WORKLOAD_LEAST, &f); /* 11 kB: certain, and too little */
	assert_int_equal(f.says, WORKLOAD_STEADY);
	assert_string_equal(workload_name(f.says), "steady");
	for (int i = 0; i < WORKLOAD_LEAST; i++)
		p[i].work = 0; /* nothing was done at all */
	workload_fit(p, WORKLOAD_LEAST, &f);
	assert_int_equal(f.says, WORKLOAD_STEADY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_of_a_leak_by_request_is_told_from_one_by_time),
		cmocka_unit_test(intervals_hold_whatever_the_noise),
		cmocka_unit_test(where_work_goes_on_evenly_nothing_is_claimed),
		cmocka_unit_test(a_cache_that_follows_its_keys_grows_with_them),
		cmocka_unit_test(a_long_time_in_which_nobody_looked_spoils_nothing),
		cmocka_unit_test(of_few_points_or_of_none_that_matter_nothing_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
