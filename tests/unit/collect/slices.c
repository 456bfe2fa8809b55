#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/slices.h"
#include "slices.h"

#include <math.h>
#include <string.h>

#define STRATA  60
#define SITES   4 /* where a thread waits; site 0: it is on a CPU */
#define DRAWS   2000
#define MAX_SEG 600000

/* What a thread really did: stretches at sites, one after the other. */
struct segment {
	uint64_t from_ns;
	uint32_t site;
};

static struct segment truth[MAX_SEG];
static uint32_t n_truth;

static uint64_t random_state;

static uint64_t draw(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static double uniform(void)
{
	return (double)(draw() >> 11) / 0x1p53;
}

/* What programs find of the thread: the rules of offcpu.bpf.c. */
struct found {
	double ns[SITES], ended[SITES];
	uint64_t since_ns, clock_ns; /* by the slices' clock */
	uint32_t site, seg;          /* what it was last seen in */
};

static uint32_t segment_at(uint64_t ns)
{
	uint32_t lo = 0, hi = n_truth;

	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		if (truth[mid].from_ns <= ns)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static void close_at(struct found *f, uint64_t clock_ns)
{
	f->ns[f->site] += (double)(clock_ns - f->since_ns);
	f->since_ns = clock_ns;
}

static void see_slice(struct found *f, const struct ms_slice *s)
{
	uint32_t i = segment_at(s->from_ns);

	/* thread_resume(): what the count of its switches says is another stretch. */
	if (i != f->seg) {
		close_at(f, s->at_ns);
		f->seg = i;
		f->site = truth[i].site;
	}
	while (f->seg + 1 < n_truth && truth[f->seg + 1].from_ns < s->until_ns) {
		close_at(f, slice_clock(s, truth[f->seg + 1].from_ns));
		f->ended[f->site] += (double)(1u << s->shift);
		f->site = truth[++f->seg].site;
	}
	f->clock_ns = slice_clock(s, s->until_ns);
}

/* `shifts`: of each stratum, one after the other. */
static struct found look(const uint32_t *shifts, uint32_t n_shifts)
{
	struct found f = { .site = truth[0].site };

	for (uint64_t i = 0; i < STRATA; i++) {
		uint32_t shift = shifts[i % n_shifts];
		struct ms_slice s = { .at_ns = i * STRATUM_NS, .shift = shift };

		s.from_ns = slice_begin_ns(s.at_ns, shift, draw());
		s.until_ns = s.from_ns + (STRATUM_NS >> shift);
		see_slice(&f, &s);
	}
	close_at(&f, f.clock_ns);
	return f;
}

static struct found all_of_it(void)
{
	static const uint32_t all[] = { 0 };

	return look(all, 1);
}

/* The mean of many draws is the truth within 4.5 standard errors, for each site's time and number of waits. */
static void is_unbiased(const uint32_t *shifts, uint32_t n_shifts)
{
	struct found is = all_of_it();
	double sum[2 * SITES] = { 0 }, squares[2 * SITES] = { 0 };

	for (int i = 0; i < DRAWS; i++) {
		struct found f = look(shifts, n_shifts);
		double total = 0;

		for (int j = 0; j < SITES; j++) {
			double x[2] = { f.ns[j], f.ended[j] };

			for (int k = 0; k < 2; k++) {
				sum[2 * j + k] += x[k];
				squares[2 * j + k] += x[k] * x[k];
			}
			total += f.ns[j];
		}
		/* On and off CPUs is all of the time, whatever is drawn. */
		assert_true(fabs(total - (double)STRATA * STRATUM_NS) < 1);
	}
	for (int j = 0; j < 2 * SITES; j++) {
		double mean = sum[j] / DRAWS, truth_of = j % 2 ? is.ended[j / 2] : is.ns[j / 2];
		double sd = sqrt(fmax(squares[j] / DRAWS - mean * mean, 0));
		double wrong = fabs(mean - truth_of), allowed = 4.5 * sd / sqrt(DRAWS);

		/* The one that is open in the end has not ended. */
		if (wrong > allowed + 1e-6 * truth_of + 1)
			fail_msg("site %d, %s: %.6g of %.6g, allowed %.3g", j / 2,
				 j % 2 ? "waits" : "ns", mean, truth_of, allowed);
	}
}

static void add_segment(uint64_t *at, double ns, uint32_t site)
{
	assert_true(n_truth < MAX_SEG);
	truth[n_truth++] = (struct segment){ *at, site };
	*at += ns < 1 ? 1 : (uint64_t)ns;
}

static void begin_truth(uint64_t seed)
{
	random_state = seed;
	n_truth = 0;
}

static const uint32_t one[] = { 4 }, mixed[] = { 0, 3, 7, 5, 1, 7 };

static void waits_of_every_length_are_estimated_without_bias(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 4; seed++) {
		uint64_t at = 0;

		begin_truth(seed);
		/* From 0.1 ms to some 30 s: exponents are uniform, site 3 has the long ones. */
		while (at < STRATA * STRATUM_NS) {
			double e = uniform() * 5.5;

			add_segment(&at, 1e5 * uniform(), 0);
			add_segment(&at, 1e5 * pow(10, e), e > 4 ? 3 : e > 2 ? 2 : 1);
		}
		is_unbiased(one, 1);
		is_unbiased(mixed, 6);
	}
}

/* Loads whose period is that of strata, of slices, or a part or multiple of either. */
static void periodic_loads_are_estimated_without_bias(void **state)
{
	static const double periods[] = { 1, 0.5, 2, 1.0 / 16, 1.0 / 8, 1.0 / 32, 3, 1.0 / 128 };

	(void)state;
	for (uint32_t i = 0; i < sizeof(periods) / sizeof(*periods); i++) {
		double period = periods[i] * STRATUM_NS;
		uint64_t at = 0;

		begin_truth(100 + i);
		add_segment(&at, uniform() * 1e6,
			    0); /* a switch at the very ns in which a slice begins is no case */
		while (at < STRATA * STRATUM_NS) {
			add_segment(&at, period * 0.05, 0);
			add_segment(&at, period * 0.15, 1);
			add_segment(&at, period * 0.8, 2);
		}
		is_unbiased(one, 1);
		is_unbiased(mixed, 6);
	}
}

/* One wait over 50 strata is known as if it had been looked at all the time, but for the strata in which it begins and ends. */
static void a_wait_over_many_slices_is_neither_lost_nor_counted_twice(void **state)
{
	uint64_t at = 0;

	(void)state;
	begin_truth(7);
	add_segment(&at, 3.3 * STRATUM_NS, 0);
	add_segment(&at, 50 * (double)STRATUM_NS, 1);
	add_segment(&at, 10 * (double)STRATUM_NS, 0);
	for (int i = 0; i < 200; i++) {
		struct found f = look(one, 1);

		assert_true(fabs(f.ns[1] - 50 * (double)STRATUM_NS) <= 2 * (double)STRATUM_NS);
	}
}

static void every_cell_of_a_stratum_is_drawn_equally_often(void **state)
{
	uint32_t cells[16] = { 0 };
	double chi = 0;

	(void)state;
	random_state = 3;
	for (int i = 0; i < 160000; i++) {
		uint64_t at = slice_begin_ns(1000, 4, draw()) - 1000;

		assert_int_equal(at % (STRATUM_NS / 16), 0);
		cells[at / (STRATUM_NS / 16)]++;
	}
	for (int i = 0; i < 16; i++)
		chi += pow(cells[i] - 10000.0, 2) / 10000.0;
	assert_true(chi < 50); /* of 15 degrees of freedom: once in 80,000 */
}

static void without_slices_the_clock_is_that_of_the_day(void **state)
{
	const struct ms_slice all = { .until_ns = UINT64_MAX },
			      later = { 5000, UINT64_MAX, 5000, 0, 0 };

	(void)state;
	assert_int_equal(slice_clock(&all, 123456789), 123456789);
	assert_int_equal(slice_clock(&later, 123456789), 123456789);
}

static void the_clock_stands_still_between_slices(void **state)
{
	const struct ms_slice s = { 4000, 5000, 3000, 2, 0 };

	(void)state;
	assert_int_equal(slice_clock(&s, 1000), 3000);
	assert_int_equal(slice_clock(&s, 4000), 3000);
	assert_int_equal(slice_clock(&s, 4100), 3400);
	assert_int_equal(slice_clock(&s, 5000), 7000);
	assert_int_equal(slice_clock(&s, 6000), 7000);
	assert_false(slice_has(&s, 3999));
	assert_true(slice_has(&s, 4000));
	assert_false(slice_has(&s, 5000));
}

/* What runs take in two seconds, against what it takes to attach and detach once in that time. */
static void programs_stay_attached_where_that_costs_less(void **state)
{
	(void)state;
	assert_true(slices_rest_pays(20000, 90, 3700000));
	assert_false(slices_rest_pays(20000, 90, 3500000));
	assert_false(slices_rest_pays(20000, 180, 3700000));
	assert_false(slices_rest_pays(1000, 90, 100000));
	assert_true(slices_rest_pays(500, 90, 100000));
	assert_false(slices_rest_pays(0, 90, 0));
	assert_false(slices_rest_pays(1e18, 90, 11000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_stay_attached_where_that_costs_less),
		cmocka_unit_test(without_slices_the_clock_is_that_of_the_day),
		cmocka_unit_test(the_clock_stands_still_between_slices),
		cmocka_unit_test(every_cell_of_a_stratum_is_drawn_equally_often),
		cmocka_unit_test(a_wait_over_many_slices_is_neither_lost_nor_counted_twice),
		cmocka_unit_test(waits_of_every_length_are_estimated_without_bias),
		cmocka_unit_test(periodic_loads_are_estimated_without_bias),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
