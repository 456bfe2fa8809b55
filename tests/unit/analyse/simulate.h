/*
 * Runs of a simulated program of known truth, as each tier of memscope would see them. Seeds are fixed, and
 * nothing is shared with the samplers. For the tests of this folder.
 *
 * Functions f0, f1 … are called by main; each has a mean of its own.
 */
#ifndef MEMSCOPE_TESTS_UNIT_ANALYSE_SIMULATE_H
#define MEMSCOPE_TESTS_UNIT_ANALYSE_SIMULATE_H

#include "analyse/bursts.h"
#include "model/estimate.h"
#include "model/profile.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SIM_FUNCTIONS = 20, SIM_BURSTS = 24, SIM_SLICES = 5 };

enum sim_tier { SIM_ON_CPU, SIM_SAMPLED, SIM_BURST, SIM_WAITS, SIM_COUNTED, SIM_TIERS };

static const char *const sim_names[SIM_TIERS] = { "on-CPU", "sampled allocations", "bursts", "waits",
						  "counted" };

static uint64_t sim_state = 88172645463325252u;

static inline double sim_uniform(void)
{
	sim_state ^= sim_state >> 12;
	sim_state ^= sim_state << 25;
	sim_state ^= sim_state >> 27;
	return (double)((sim_state * 0x2545f4914f6cdd1du) >> 11) * 0x1p-53 + 0x1p-54;
}

static inline double sim_normal(void)
{
	return sqrt(-2 * log(sim_uniform())) * cos(2 * M_PI * sim_uniform());
}

static inline double sim_poisson(double mean)
{
	double at = 0, n = -1;

	if (mean > 200)
		return fmax(0, floor(mean + sqrt(mean) * sim_normal() + 0.5));
	for (; at < mean; n++)
		at -= log(sim_uniform());
	return n;
}

static inline stack_id sim_stack(struct dict *d, int function)
{
	struct line line = { .function = dict_string(d, "main") };
	stack_id s = dict_stack_push(d, (stack_id){ 0 },
				     dict_location_lines(d, (module_id){ 0 }, 0, &line, 1));
	char name[16];

	snprintf(name, sizeof(name), "f%d", function);
	line.function = dict_string(d, name);
	return dict_stack_push(d, s, dict_location_lines(d, (module_id){ 0 }, 0, &line, 1));
}

/* f0 has the largest part; they add up to 1. */
static inline double sim_part(int function)
{
	double sum = 0;

	for (int i = 0; i < SIM_FUNCTIONS; i++)
		sum += 1.0 / (2 + i);
	return 1.0 / (2 + function) / sum;
}

/* A run: `amount` of each function says how much; `truth` (NULL: not asked) is what happened in it. */
struct sim_run {
	double amount[SIM_FUNCTIONS]; /* expected samples, calls in bursts, waits */
	double truth[SIM_FUNCTIONS];
	double unlike; /* how much runs differ, as a part of each function: counted ones */
	double steady; /* 1: bursts of the run are all alike, 0: some are quiet, and functions take turns */
};

static inline void sim_put(struct profile *p, int function, const int64_t *values)
{
	profile_add(p, sim_stack(profile_dict(p), function), (labels_id){ 0 }, values);
}

static inline struct profile *sim_on_cpu(struct dict *d, struct sim_run *r)
{
	static const struct value_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
	struct profile *p = profile_new(d, types, 2);
	double all = 0, at;
	int64_t n[SIM_FUNCTIONS] = { 0 };

	for (int i = 0; i < SIM_FUNCTIONS; i++)
		all += r->amount[i];
	/* The number of samples is that of the CPU time; whose each is, is chance. */
	for (int i = 0; i < SIM_FUNCTIONS && all > 5000; i++)
		n[i] = (int64_t)sim_poisson(r->amount[i]);
	for (int k = 0; k < (int)(all + 0.5) && all <= 5000; k++) {
		int i = 0;

		for (at = sim_uniform() * all; i < SIM_FUNCTIONS - 1 && at >= r->amount[i]; i++)
			at -= r->amount[i];
		n[i]++;
	}
	for (int i = 0; i < SIM_FUNCTIONS; i++) {
		r->truth[i] = r->amount[i] * 1e7;
		if (n[i])
			sim_put(p, i, (int64_t[]){ n[i], n[i] * 10000000 });
	}
	return p;
}

/* Blocks of sizes that differ by function, by points at exponential distances. */
static inline struct profile *sim_sampled(struct dict *d, struct sim_run *r)
{
	static const struct value_type types[] = { { "alloc_objects", "count" },
						   { "alloc_space", "bytes" } };
	const double rate = 524288;
	struct profile *p = profile_new(d, types, 2);

	for (int i = 0; i < SIM_FUNCTIONS; i++) {
		double size = 100 * exp2(i % 12), p1 = -expm1(-size / rate);
		/* So many blocks, of which each is sampled with p1: the gaps are geometric. */
		double blocks = floor(r->amount[i] / p1 + 0.5), at = 0;
		struct estimate est = { 0 };
		struct value_error errors[2];

		r->truth[i] = blocks * size;
		while ((at += floor(log(sim_uniform()) / log1p(-p1)) + 1) <= blocks)
			estimate_add(&est, (uint64_t)size, (uint64_t)(size / p1 + 0.5));
		if (!est.samples)
			continue;
		estimate_errors(&est, &errors[0], &errors[1]);
		sim_put(p, i, (int64_t[]){ llround(est.blocks), llround(est.bytes) });
		for (uint32_t t = 0; t < 2; t++)
			profile_add_error(p, sim_stack(d, i), (labels_id){ 0 }, t, &errors[t]);
	}
	return p;
}

/* One of SIM_SLICES of the time is a burst. The program is busier at times, and its functions by turns. */
static inline struct profile *sim_bursts(struct dict *d, struct sim_run *r)
{
	static const struct value_type types[] = { { "alloc_objects", "count" },
						   { "alloc_space", "bytes" } };
	struct profile *p = profile_new(d, types, 2);
	struct bursts *b = bursts_new(0);
	const uint64_t slice = 1000000;

	memset(r->truth, 0, sizeof(r->truth));
	for (int k = 0; k < SIM_BURSTS * SIM_SLICES; k++) {
		double wild = 1 - r->steady, busy = 1 + wild * (sim_uniform() - 0.5),
		       turn = 0.5 + wild * (sim_uniform() - 0.5);
		struct burst_calls calls[SIM_FUNCTIONS];
		bool burst = k % SIM_SLICES == SIM_SLICES / 2;
		uint32_t n = 0;

		for (int i = 0; i < SIM_FUNCTIONS; i++) {
			double mean = r->amount[i] / SIM_BURSTS * busy * (i % 2 ? 2 * turn : 2 - 2 * turn);
			double made = sim_poisson(mean), size = 100 * exp2(i % 12);

			r->truth[i] += made * size;
			if (burst && made > 0)
				calls[n++] = (struct burst_calls){ (uint32_t)i, 1, (uint64_t)made,
								   (uint64_t)(made * size) };
		}
		if (burst)
			bursts_add(b,
				   &(struct burst_span){ (uint64_t)k * slice,
							 (uint64_t)(k + 1) * slice, 0, 0 },
				   calls, n, NULL, 0);
	}
	bursts_finish(b, (uint64_t)SIM_BURSTS * SIM_SLICES * slice, NULL, 0);
	for (int i = 0; i < SIM_FUNCTIONS; i++) {
		const struct burst_estimate *est = bursts_row(b, (uint32_t)i);
		struct value_error errors[2];

		if (!est->seen_calls)
			continue;
		burst_errors(est, &errors[0], &errors[1]);
		sim_put(p, i, (int64_t[]){ llround(est->calls), llround(est->bytes) });
		for (uint32_t t = 0; t < 2; t++)
			profile_add_error(p, sim_stack(d, i), (labels_id){ 0 }, t, &errors[t]);
	}
	bursts_free(b);
	return p;
}

/* Lengths are exponential. */
static inline struct profile *sim_waits(struct dict *d, struct sim_run *r)
{
	static const struct value_type types[] = { { "blocked", "count" },
						   { "blocked", "nanoseconds" } };
	struct profile *p = profile_new(d, types, 2);

	for (int i = 0; i < SIM_FUNCTIONS; i++) {
		double n = sim_poisson(r->amount[i]), sum = 0;

		for (int k = 0; k < (int)n && n <= 1000; k++)
			sum -= 1e6 * log(sim_uniform());
		if (n > 1000)
			sum = 1e6 * (n + sqrt(n) * sim_normal());
		r->truth[i] = sum;
		if (n > 0)
			sim_put(p, i, (int64_t[]){ (int64_t)n, llround(sum) });
	}
	return p;
}

static inline struct profile *sim_counted(struct dict *d, struct sim_run *r)
{
	static const struct value_type types[] = { { "alloc_objects", "count" },
						   { "alloc_space", "bytes" } };
	struct profile *p = profile_new(d, types, 2);

	for (int i = 0; i < SIM_FUNCTIONS; i++) {
		int64_t n = llround(fmax(1, r->amount[i] * (1 + r->unlike * sim_normal())));

		r->truth[i] = (double)n * 100;
		sim_put(p, i, (int64_t[]){ n, n * 100 });
	}
	return p;
}

static inline struct profile *sim_profile(struct dict *d, enum sim_tier tier, struct sim_run *r)
{
	switch (tier) {
	case SIM_ON_CPU:
		return sim_on_cpu(d, r);
	case SIM_SAMPLED:
		return sim_sampled(d, r);
	case SIM_BURST:
		return sim_bursts(d, r);
	case SIM_WAITS:
		return sim_waits(d, r);
	case SIM_COUNTED:
	case SIM_TIERS:
		break;
	}
	return sim_counted(d, r);
}

/* The value that is compared: time or bytes. */
enum { SIM_TYPE = 1 };

#endif
