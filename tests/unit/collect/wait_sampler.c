#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/wait_sampler.h"
#include "model/estimate.h"
#include "wait_sites.h"

#include <math.h>
#include <string.h>

/* --- which waits are looked at, and what comes of it (bpf/wait_sites.h) --- */

#define GAP_NS       1000000ULL
#define SHORT_GAP_NS (GAP_NS / 20) /* as many looks in a shorter run */
#define STACKS       4

/* A thread whose waits are told as offcpu.bpf.c and drain.c tell them; the stack is its hash's low half. */
struct sim {
	struct ms_sampled_thread b;
	uint64_t clock, gap_ns, waits, looks;
	double told_ns[STACKS], told[STACKS], true_ns[STACKS], true_n[STACKS];
	struct estimate spread[STACKS];
	uint64_t random;
};

static double uniform(struct sim *s)
{
	s->random = s->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((double)(s->random >> 11) + 0.5) / 0x1p53;
}

static void flush(struct sim *s, struct ms_wait_site *p)
{
	s->told[p->user.lo] += (double)p->blocked;
	s->told_ns[p->user.lo] += (double)p->blocked_ns;
	p->blocked = p->blocked_ns = 0;
}

static void move(struct sim *s, struct ms_wait_site *p, uint64_t ns)
{
	double w = (double)(1ULL << s->b.weight);
	struct estimate one = { 0 };
	uint64_t to = s->b.user.lo, from = p->user.lo;

	estimate_add(&one, ns, ns << s->b.weight);
	s->told[to] += w;
	s->told_ns[to] += w * (double)ns;
	s->told[from] -= w;
	s->told_ns[from] -= w * (double)ns;
	estimate_merge(&s->spread[to], &one);
	one.vc = -one.vc;
	estimate_merge(&s->spread[from], &one);
	if (!wait_site_is_sure(p)) {
		flush(s, p);
		wait_site_expect(p, &s->b, 0);
	}
}

/* One wait at `where` with `stack`, of `ns`, after `run_ns` on a CPU. */
static void wait(struct sim *s, uint64_t where, uint64_t stack, uint64_t ns, uint64_t run_ns)
{
	s->clock += run_ns;
	s->waits++;
	s->true_n[stack]++;
	s->true_ns[stack] += (double)ns;
	s->b.state = MS_RUN_BLOCKED;
	if (wait_site_enter(&s->b, where, s->clock, s->gap_ns)) {
		struct ms_wait_site *p = wait_site_of(&s->b);

		s->looks++;
		s->b.user.lo = stack;
		if (p->where && p->where != where)
			flush(s, p);
		wait_site_sampled(&s->b, where, 0, s->clock, s->gap_ns);
	}
	s->clock += ns;
	wait_site_leave(&s->b, ns, 0);
	if (s->b.reassigned)
		move(s, wait_site_of(&s->b), ns);
}

static void begin(struct sim *s, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->random = seed * 0x9e3779b97f4a7c15ULL;
	s->b.random = seed * 0x9e3779b97f4a7c15ULL | 1;
	s->clock = 1000000000;
	s->gap_ns = GAP_NS;
	uniform(s);
}

static void end(struct sim *s)
{
	for (int i = 0; i < MS_WAIT_SITES; i++)
		flush(s, &s->b.sites[i]);
}

static struct interval interval(const struct sim *s, int stack)
{
	struct estimate est = s->spread[stack];

	est.bytes = s->told_ns[stack];
	return estimate_interval(&est);
}

#define PLACE_A (1ULL << 63 | 1ULL << 40)
#define PLACE_B (1ULL << 63 | 2ULL << 40)

static void one_stack_at_a_place_is_told_exactly_and_hardly_looked_at(void **state)
{
	struct sim s;

	(void)state;
	begin(&s, 1);
	for (int i = 0; i < 1000000; i++)
		wait(&s, PLACE_A, 1, 1000, 1000);
	end(&s);
	assert_true(s.told[1] == 1000000 && s.told_ns[1] == s.true_ns[1]);
	assert_true(s.looks > 500 && s.looks < 8000); /* about one in a gap, of 2,000 */
}

static void rare_long_wait_at_a_place_of_its_own_is_told_exactly(void **state)
{
	struct sim s;

	(void)state;
	begin(&s, 2);
	for (int i = 0; i < 400000; i++) {
		wait(&s, PLACE_A, 1, 1000, 1000);
		if (i == 300000)
			wait(&s, PLACE_B, 2, 50000000, 1000);
	}
	end(&s);
	assert_true(s.told[2] == 1 && s.told_ns[2] == 50e6 && s.told_ns[1] == s.true_ns[1]);
}

static void waits_of_a_calm_thread_are_all_looked_at(void **state)
{
	struct sim s;

	(void)state;
	begin(&s, 3);
	for (uint64_t i = 0; i < 1000; i++)
		wait(&s, PLACE_A, i % STACKS, 10000000, 1000);
	end(&s);
	assert_int_equal(s.looks, s.waits);
	for (int i = 0; i < STACKS; i++)
		assert_true(s.told_ns[i] == s.true_ns[i]);
}

/*
 * Stacks that cannot be told apart by their place, of very different lengths, at random: the estimate is
 * unbiased, and its interval holds the truth as often as it says; what is estimated adds up to what was.
 */
static void mixed_stacks_are_estimated_without_bias_and_within_their_interval(void **state)
{
	static const double chance[STACKS] = { 0, 0.15, 0.5, 1 };
	static const double mean_ns[STACKS] = { 0, 12000, 3000, 800 };
	enum { RUNS = 2000, WAITS = 50000 };
	double bias[STACKS] = { 0 }, count_bias[STACKS] = { 0 };
	int held[STACKS] = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		double sum = 0, truth = 0;
		struct sim s;

		begin(&s, seed);
		s.gap_ns = SHORT_GAP_NS;
		for (int i = 0; i < WAITS; i++) {
			double u = uniform(&s);
			uint64_t stack = 1;

			while (u > chance[stack])
				stack++;
			wait(&s, PLACE_A, stack, (uint64_t)(-mean_ns[stack] * log(uniform(&s))),
			     500);
		}
		end(&s);
		for (int i = 1; i < STACKS; i++) {
			struct interval in = interval(&s, i);

			bias[i] += s.told_ns[i] / s.true_ns[i] - 1;
			count_bias[i] += s.told[i] / s.true_n[i] - 1;
			held[i] += in.low <= s.true_ns[i] && s.true_ns[i] <= in.high;
			sum += s.told_ns[i];
			truth += s.true_ns[i];
		}
		assert_true(fabs(sum - truth) < 1);
	}
	for (int i = 1; i < STACKS; i++) {
		print_message("stack %d: bias %+.3f %% of ns, %+.3f %% of waits, held %.1f %%\n", i,
			      100 * bias[i] / RUNS, 100 * count_bias[i] / RUNS,
			      100.0 * held[i] / RUNS);
		assert_true(fabs(bias[i] / RUNS) < 0.01 && fabs(count_bias[i] / RUNS) < 0.01);
		assert_true(held[i] >= 0.93 * RUNS && held[i] <= 0.97 * RUNS);
	}
}

/* Coroutines: each waits with its own stack pointer. Every place would be looked at. */
static void places_that_are_too_many_are_told_apart_less(void **state)
{
	struct sim s;
	uint64_t before;

	(void)state;
	begin(&s, 4);
	for (uint64_t i = 0; i < 20000; i++)
		wait(&s, s.b.coarse ? PLACE_A : 1ULL << 63 | i % 1000 << 40, i % 2, 1000, 1000);
	assert_int_equal(s.b.coarse, 1);
	before = s.looks;
	for (uint64_t i = 0; i < 200000; i++)
		wait(&s, PLACE_A, i % 2, 1000, 1000);
	assert_true(s.looks - before < 3000);
	end(&s);
	assert_true(s.told[0] + s.told[1] == 220000);
}

/* --- what it may cost --- */

#define TICK_NS 100000000ULL

struct load {
	struct sample_gap g;
	uint64_t now, looks;
};

/* A thread that is switched so often, for a while. */
static void run(struct load *l, double seconds, double per_s)
{
	for (double s = 0; s < seconds; s += 0.1) {
		double most = l->g.gap_ns ? 1e9 / (double)l->g.gap_ns : 1e12;

		l->now += TICK_NS;
		l->looks += (uint64_t)((per_s < most ? per_s : most) / 10);
		sample_gap_tick(&l->g, l->now, l->looks);
	}
}

static void few_waits_are_all_looked_at(void **state)
{
	struct load l = { .g = { .max_percent = 5, .look_ns = LOOK_USUAL_NS } };

	(void)state;
	run(&l, 60, 10000);
	assert_int_equal(l.g.gap_ns, 0);
}

static void more_than_the_budget_makes_a_gap(void **state)
{
	struct load l = { .g = { .max_percent = 5, .look_ns = LOOK_USUAL_NS } };

	(void)state;
	run(&l, 1, 200000);
	assert_int_equal(l.g.gap_ns, SAMPLE_GAP_MIN_NS);
}

static void gap_grows_while_looking_costs_too_much_and_then_shrinks_but_stays(void **state)
{
	struct load l = { .g = { .max_percent = 0.1, .look_ns = LOOK_USUAL_NS } };

	(void)state;
	run(&l, 10, 200000);
	assert_true(l.g.gap_ns >= 2 * SAMPLE_GAP_MIN_NS && l.g.gap_ns <= 32 * SAMPLE_GAP_MIN_NS);
	run(&l, 60, 1);
	assert_int_equal(l.g.gap_ns, SAMPLE_GAP_MIN_NS);
}

/* Those whose stacks would take half of the limit; later those that wait more often than the gap allows. */
static void thread_that_floods_is_known_by_its_switches_in_ten_milliseconds(void **state)
{
	struct sample_gap g = { .max_percent = 5, .look_ns = 3500 };

	(void)state;
	assert_int_equal(sample_gap_often(&g), 71); /* 250 us */
	g.gap_ns = SAMPLE_GAP_MIN_NS;
	assert_int_equal(sample_gap_often(&g), 10);
	g.gap_ns = SAMPLE_GAP_MAX_NS;
	assert_int_equal(sample_gap_often(&g), OFTEN_LEAST);
	g = (struct sample_gap){ .max_percent = 1e9, .look_ns = 500 };
	assert_int_equal(sample_gap_often(&g), UINT16_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_stack_at_a_place_is_told_exactly_and_hardly_looked_at),
		cmocka_unit_test(rare_long_wait_at_a_place_of_its_own_is_told_exactly),
		cmocka_unit_test(waits_of_a_calm_thread_are_all_looked_at),
		cmocka_unit_test(mixed_stacks_are_estimated_without_bias_and_within_their_interval),
		cmocka_unit_test(places_that_are_too_many_are_told_apart_less),
		cmocka_unit_test(few_waits_are_all_looked_at),
		cmocka_unit_test(more_than_the_budget_makes_a_gap),
		cmocka_unit_test(gap_grows_while_looking_costs_too_much_and_then_shrinks_but_stays),
		cmocka_unit_test(thread_that_floods_is_known_by_its_switches_in_ten_milliseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
