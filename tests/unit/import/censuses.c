#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "import/censuses.h"
#include "model/about.h"

#define S 1000000000ull

static struct dict *d;
static struct censuses l;

static int setup(void **state)
{
	d = dict_new();
	censuses_init(&l, S);
	return 0;
}

static int teardown(void **state)
{
	censuses_fini(&l);
	dict_free(d);
	return 0;
}

static stack_id stack_of(void *ctx, uint64_t key)
{
	struct line line = { .function = dict_string(d, key == 1   ? "one"
							: key == 2 ? "two"
								   : "three") };
	location_id at = dict_location_lines(d, (module_id){ 0 }, 0, &line, 1);

	return dict_stack(d, &at, 1);
}

static struct profile *finish(uint64_t end_ns, bool whole)
{
	struct censuses_made how = {
		.stack_of = stack_of, .end_ns = end_ns, .tick_ns = 1000000, .whole = whole
	};
	struct profile *p = NULL;

	assert_int_equal(censuses_finish(&l, d, &how, &p), 0);
	return p;
}

static void census(uint64_t ns, int64_t one, int64_t two)
{
	censuses_begin(&l, ns);
	assert_int_equal(censuses_add(&l, 1, one), 0);
	assert_int_equal(censuses_add(&l, 2, two), 0);
	assert_int_equal(censuses_end(&l), 0);
}

static int64_t value(const struct profile *p, uint32_t sample, const char *type)
{
	int t = profile_find_type(p, type);

	assert_true(t >= 0);
	return profile_sample(p, sample).values[t];
}

/* What bin `bin` has of a sample; its first timed type. */
static int64_t in_bin(const struct profile *p, uint32_t sample, uint32_t bin)
{
	int64_t sum[SAMPLE_TIMES_TYPES];

	sample_times_sum(profile_times(p), sample, bin, bin + 1, sum);
	return sum[0];
}

/* A triangle up to 1 s, a rectangle to 3 s, a triangle to 4 s: 1,000 × (0.5 + 2 + 0.5). */
static void the_area_is_that_below_straight_lines(void **state)
{
	struct profile *p;

	census(1 * S, 1000, 0);
	census(3 * S, 1000, 0);
	p = finish(4 * S, true);
	assert_int_equal(profile_n_samples(p), 1);
	assert_int_equal(value(p, 0, "space_time"), 3000 * 1000);
	assert_int_equal(value(p, 0, "mean_space"), 750);
	assert_int_equal(value(p, 0, "peak_space"), 1000);
	assert_int_equal(value(p, 0, "inuse_space"), 1000);
	assert_int_equal(in_bin(p, 0, 0), 500 * 1000);
	assert_int_equal(in_bin(p, 0, 1), 1000 * 1000);
	assert_int_equal(in_bin(p, 0, 3), 500 * 1000);
	assert_int_equal(profile_get_meta(p)->duration_ns, 4 * S);
	profile_free(p);
}

static void a_slope_is_cut_at_the_bins_it_goes_through(void **state)
{
	struct profile *p;

	census(4 * S, 4000, 0); /* 1,000 bytes a second from 0 on */
	p = finish(4 * S, false);
	for (int64_t bin = 0; bin < 4; bin++)
		assert_int_equal(in_bin(p, 0, (uint32_t)bin), (bin * 1000 + 500) * 1000);
	profile_free(p);
}

static void what_a_census_does_not_name_is_gone(void **state)
{
	struct profile *p;

	census(1 * S, 600, 0);
	census(2 * S, 0, 400);
	census(3 * S, 0, 0);
	p = finish(3 * S, true);
	assert_int_equal(value(p, 0, "space_time"), 600 * 1000);
	assert_int_equal(value(p, 1, "space_time"), 400 * 1000);
	assert_int_equal(value(p, 0, "peak_space"), 600);
	assert_int_equal(value(p, 1, "peak_space"),
			 0); /* it holds something in another census than that of the peak */
	assert_int_equal(value(p, 1, "inuse_space"), 0);
	assert_string_equal(profile_about(p, ABOUT_PEAK, 0), "1.000000 s after the start");
	profile_free(p);
}

static void a_part_of_a_census_may_come_in_pieces(void **state)
{
	struct profile *p;

	censuses_begin(&l, S);
	censuses_add(&l, 1, 10);
	censuses_add(&l, 2, 1);
	censuses_add(&l, 1, 30);
	censuses_end(&l);
	censuses_add(&l, 1, 1000); /* in no census */
	p = finish(S, false);
	assert_int_equal(value(p, 0, "peak_space"), 40);
	assert_int_equal(l.n_censuses, 1);
	profile_free(p);
}

static void a_census_that_does_not_end_is_left_out(void **state)
{
	struct profile *p;

	census(1 * S, 100, 0);
	censuses_begin(&l, 2 * S);
	censuses_add(&l, 1, 9999);
	censuses_add(&l, 3, 1);
	p = finish(2 * S, false);
	assert_int_equal(value(p, 0, "peak_space"), 100);
	assert_int_equal(value(p, 0, "inuse_space"), 100);
	assert_int_equal(value(p, 0, "space_time"), 50 * 1000);
	assert_int_equal(value(p, 1, "peak_space"), 0);
	profile_free(p);
}

static void a_time_that_goes_back_is_the_one_before(void **state)
{
	struct profile *p;

	census(2 * S, 100, 0);
	census(1 * S, 300, 0);
	p = finish(3 * S, true);
	assert_int_equal(value(p, 0, "space_time"), (100 + 150) * 1000);
	assert_int_equal(value(p, 0, "peak_space"), 300);
	profile_free(p);
}

/* However bins round, and however often they are joined: a part's bins add up to its whole. */
static void bins_add_up_to_the_whole(void **state)
{
	struct profile *p;
	int64_t one = 0, two = 0, sum[SAMPLE_TIMES_TYPES];

	censuses_fini(&l);
	censuses_init(&l, 1000);
	for (uint64_t i = 1; i <= 3000; i++) {
		one = (one * 7919 + 13) % 1000003;
		two = (two * 104729 + 7) % 17;
		census(i * 777777, one, two);
	}
	p = finish(3000 * 777777ull + 1, true);
	for (uint32_t i = 0; i < 2; i++) {
		sample_times_sum(profile_times(p), i, 0, UINT32_MAX, sum);
		assert_int_equal(sum[0], value(p, i, "space_time"));
	}
	assert_true(sample_times_n_entries(profile_times(p)) <= SAMPLE_TIMES_MAX);
	profile_free(p);
}

/* 31 years: as many bins as of a minute. */
static void censuses_far_apart_take_no_longer(void **state)
{
	struct profile *p;

	census(S, 8, 0);
	census(1000000000 * S, 8, 0);
	p = finish(1000000000 * S, false);
	assert_true(sample_times_n_bins(profile_times(p)) <= 1 << 16);
	assert_int_equal(value(p, 0, "space_time"), 4 * 1000 + 8 * (1000000000ll - 1) * 1000);
	profile_free(p);
}

static void samples_of_the_time_stand_beside(void **state)
{
	struct profile *p;

	censuses_tick(&l, 2, 1 * S);
	census(1 * S, 100, 0);
	censuses_tick(&l, 2, 2 * S);
	p = finish(2 * S, false);
	assert_int_equal(value(p, 0, "samples"), 2);
	assert_int_equal(value(p, 0, "cpu"), 2000000);
	assert_int_equal(value(p, 1, "mean_space"), 25);
	assert_int_equal(sample_times_n_types(profile_times(p)), 2);
	profile_free(p);
}

static void without_a_census_there_are_only_samples_of_the_time(void **state)
{
	struct profile *p;

	censuses_tick(&l, 1, 1 * S);
	censuses_tick(&l, 2, 3 * S);
	p = finish(4 * S, true);
	assert_int_equal(profile_n_types(p), 2);
	assert_int_equal(profile_find_type(p, "samples/count"), 0);
	assert_int_equal(in_bin(p, 1, 3), 1);
	profile_free(p);
}

static void more_than_64_bits_hold_is_the_highest_value(void **state)
{
	struct profile *p;

	census(S, INT64_MAX, INT64_MAX);
	census(100000 * S, INT64_MAX, 1);
	p = finish(100000 * S, true);
	assert_int_equal(value(p, 0, "space_time"), INT64_MAX);
	assert_true(value(p, 0, "mean_space") > INT64_MAX / 2);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_area_is_that_below_straight_lines, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_slope_is_cut_at_the_bins_it_goes_through, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_census_does_not_name_is_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_part_of_a_census_may_come_in_pieces, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_census_that_does_not_end_is_left_out, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_time_that_goes_back_is_the_one_before, setup,
						teardown),
		cmocka_unit_test_setup_teardown(bins_add_up_to_the_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(censuses_far_apart_take_no_longer, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_of_the_time_stand_beside, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_census_there_are_only_samples_of_the_time,
						setup, teardown),
		cmocka_unit_test_setup_teardown(more_than_64_bits_hold_is_the_highest_value, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
