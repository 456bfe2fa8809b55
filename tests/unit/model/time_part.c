#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/sample_times.h"
#include "model/time_part.h"

#include <errno.h>
#include <string.h>

#define SECOND 1000000000ULL

static const struct value_type types[] = { { "blocked", "count" },
					   { "blocked", "nanoseconds" },
					   { "runnable", "count" },
					   { "runnable", "nanoseconds" } };

struct fixture {
	struct dict *d;
	struct profile *p;
};

static stack_id stack(struct dict *d, uint64_t n)
{
	location_id l = dict_location(d, (module_id){ 0 }, n);

	return dict_stack(d, &l, 1);
}

/* In second s stack s waits for s + 1 ns, and stack 100 is runnable for 10 ns. */
static int setup(void **state)
{
	static struct fixture f;
	struct profile_meta meta = { .time_ns = 1000 * (int64_t)SECOND,
				     .duration_ns = (int64_t)(9 * SECOND + SECOND / 2),
				     .default_type = 1 };

	f.d = dict_new();
	f.p = profile_new(f.d, types, 4);
	profile_set_times(f.p, sample_times_new((uint32_t[]){ 1, 3 }, 2, SECOND, 1000));
	for (uint64_t s = 0; s < 10; s++) {
		uint32_t i;

		assert_int_equal(profile_add_to(f.p, stack(f.d, s), (labels_id){ 0 },
						(int64_t[]){ 1, 1 + (int64_t)s, 0, 0 }, &i),
				 0);
		assert_int_equal(sample_times_add(profile_times(f.p), i, s * SECOND,
						  (int64_t[]){ 1 + (int64_t)s, 0 }),
				 0);
		assert_int_equal(profile_add_to(f.p, stack(f.d, 100), (labels_id){ 0 },
						(int64_t[]){ 0, 0, 1, 10 }, &i),
				 0);
		assert_int_equal(
			sample_times_add(profile_times(f.p), i, s * SECOND, (int64_t[]){ 0, 10 }),
			0);
	}
	assert_int_equal(profile_set_meta(f.p, &meta), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	profile_free(f->p);
	dict_free(f->d);
	return 0;
}

static void a_part_has_what_its_bins_have(void **state)
{
	const struct fixture *f = *state;
	struct profile *part;
	struct err e = { 0 };

	assert_int_equal(profile_time_part(f->p, 2 * SECOND, 5 * SECOND, &part, &e), 0);
	assert_int_equal(profile_n_types(part), 2);
	assert_string_equal(profile_type(part, 0)->name, "blocked");
	assert_string_equal(profile_type(part, 1)->unit, "nanoseconds");
	assert_int_equal(profile_n_samples(part), 4);
	assert_int_equal(profile_total(part, 0), 3 + 4 + 5);
	assert_int_equal(profile_total(part, 1), 30);
	assert_int_equal(profile_get_meta(part)->time_ns, 1002 * SECOND);
	assert_int_equal(profile_get_meta(part)->duration_ns, 3 * SECOND);
	assert_int_equal(profile_get_meta(part)->default_type, 0);
	assert_int_equal(sample_times_n_bins(profile_times(part)), 3);
	profile_free(part);
}

static void bins_that_reach_into_it_are_in_it_whole(void **state)
{
	const struct fixture *f = *state;
	struct profile *part;
	struct err e = { 0 };

	assert_int_equal(profile_time_part(f->p, 2 * SECOND + 1, 4 * SECOND + 1, &part, &e), 0);
	assert_int_equal(profile_total(part, 0), 3 + 4 + 5);
	profile_free(part);
	assert_int_equal(profile_time_part(f->p, 8 * SECOND, UINT64_MAX, &part, &e), 0);
	assert_int_equal(profile_total(part, 0), 9 + 10);
	/* The run ended within its last bin. */
	assert_int_equal(profile_get_meta(part)->duration_ns, SECOND + SECOND / 2);
	profile_free(part);
}

static void all_parts_add_up_to_the_whole(void **state)
{
	const struct fixture *f = *state;
	int64_t sums[2] = { 0 };

	for (uint64_t s = 0; s < 10; s += 2) {
		struct profile *part;

		assert_int_equal(profile_time_part(f->p, s * SECOND, (s + 2) * SECOND, &part, NULL),
				 0);
		sums[0] += profile_total(part, 0);
		sums[1] += profile_total(part, 1);
		profile_free(part);
	}
	assert_int_equal(sums[0], profile_total(f->p, 1));
	assert_int_equal(sums[1], profile_total(f->p, 3));
}

static void a_time_of_which_nothing_is_there_is_said(void **state)
{
	const struct fixture *f = *state;
	struct profile *part = NULL;
	struct err e = { 0 };

	assert_int_equal(profile_time_part(f->p, 10 * SECOND, 20 * SECOND, &part, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "10 s after its begin"));
	assert_null(part);
}

static void a_window_has_the_times_of_its_stretch_and_adds_up(void **state)
{
	const struct fixture *f = *state;
	struct profile *window = profile_new(f->d, types, 4);
	int64_t sums[SAMPLE_TIMES_TYPES];

	/* Of what came from 3 s on it has a part; and something whose time nobody knows. */
	assert_int_equal(
		profile_add(window, stack(f->d, 100), (labels_id){ 0 }, (int64_t[]){ 0, 0, 2, 14 }),
		0);
	assert_int_equal(
		profile_add(window, stack(f->d, 999), (labels_id){ 0 }, (int64_t[]){ 1, 7, 0, 0 }),
		0);
	assert_int_equal(profile_part_times(f->p, window, 3 * SECOND, 5 * SECOND), 0);
	sample_times_sum(profile_times(window), 0, 0, 1, sums);
	assert_int_equal(sums[1], 7);
	sample_times_sum(profile_times(window), 0, 0, 9, sums);
	assert_int_equal(sums[1], 14);
	sample_times_sum(profile_times(window), 1, 0, 9, sums);
	assert_int_equal(sums[0], 7);
	profile_free(window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_part_has_what_its_bins_have, setup, teardown),
		cmocka_unit_test_setup_teardown(bins_that_reach_into_it_are_in_it_whole, setup,
						teardown),
		cmocka_unit_test_setup_teardown(all_parts_add_up_to_the_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(a_time_of_which_nothing_is_there_is_said, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_window_has_the_times_of_its_stretch_and_adds_up,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
