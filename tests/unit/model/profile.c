#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "model/profile.h"

static const struct value_type types[2] = {
	{ "samples", "count" },
	{ "cpu", "nanoseconds" },
};

static struct profile *profile;
static struct dict *dict;

static int setup(void **state)
{
	dict = dict_new();
	profile = profile_new(dict, types, 2);
	return profile ? 0 : -1;
}

static int teardown(void **state)
{
	profile_free(profile);
	dict_free(dict);
	return 0;
}

static void same_stack_and_labels_add_up_in_one_sample(void **state)
{
	struct label l = { .key = dict_string(dict, "tid"), .num = 1 };
	labels_id tid = dict_labels(dict, &l, 1);
	location_id frame = dict_location(dict, (module_id){ 0 }, 1);
	stack_id s = dict_stack(dict, &frame, 1);

	assert_int_equal(profile_add(profile, s, tid, (int64_t[]){ 1, 10 }), 0);
	assert_int_equal(profile_add(profile, s, (labels_id){ 0 }, (int64_t[]){ 3, 30 }), 0);
	assert_int_equal(profile_add(profile, s, tid, (int64_t[]){ 2, 20 }), 0);
	assert_int_equal(profile_n_samples(profile), 2);
	assert_int_equal(profile_sample(profile, 0).stack.ix, s.ix);
	assert_int_equal(profile_sample(profile, 0).labels.ix, tid.ix);
	assert_int_equal(profile_sample(profile, 0).values[0], 3);
	assert_int_equal(profile_sample(profile, 0).values[1], 30);
	assert_int_equal(profile_total(profile, 1), 60);
}

static void values_and_totals_saturate_at_both_ends(void **state)
{
	stack_id none = { 0 };
	labels_id l = { 0 };
	location_id frame = dict_location(dict, (module_id){ 0 }, 1);

	profile_add(profile, none, l, (int64_t[]){ INT64_MAX - 1, INT64_MIN + 1 });
	profile_add(profile, none, l, (int64_t[]){ 5, -5 });
	assert_true(profile_sample(profile, 0).values[0] == INT64_MAX);
	assert_true(profile_sample(profile, 0).values[1] == INT64_MIN);
	profile_add(profile, dict_stack(dict, &frame, 1), l, (int64_t[]){ 1, -1 });
	assert_true(profile_total(profile, 0) == INT64_MAX);
	assert_true(profile_total(profile, 1) == INT64_MIN);
}

static void value_type_is_found_by_name_and_by_name_with_unit(void **state)
{
	assert_int_equal(profile_find_type(profile, "cpu"), 1);
	assert_int_equal(profile_find_type(profile, "cpu/nanoseconds"), 1);
	assert_int_equal(profile_find_type(profile, "cpu/bytes"), -1);
	assert_int_equal(profile_find_type(profile, "cp"), -1);
	assert_int_equal(profile_find_type(profile, "cpus"), -1);
	assert_int_equal(profile_find_type(profile, ""), -1);
}

static void types_and_meta_are_copied(void **state)
{
	char name[] = "cpu", comment[] = "hello";
	const char *comments[] = { comment, NULL };
	struct profile_meta meta = { .time_ns = 7,
				     .period_type = { name, "nanoseconds" },
				     .period = 3,
				     .default_type = 1,
				     .comments = comments };
	struct value_type t = { name, "nanoseconds" };
	struct profile *p = profile_new(dict, &t, 1);

	assert_int_equal(profile_set_meta(profile, &meta), 0);
	assert_int_equal(profile_set_meta(p, &meta), 0);
	memset(name, 'x', 3);
	memset(comment, 'x', 5);
	comments[0] = NULL;
	assert_string_equal(profile_type(p, 0)->name, "cpu");
	assert_string_equal(profile_get_meta(profile)->period_type.name, "cpu");
	assert_string_equal(profile_get_meta(profile)->comments[0], "hello");
	assert_null(profile_get_meta(profile)->comments[1]);
	assert_int_equal(profile_get_meta(profile)->default_type, 1);
	assert_int_equal(profile_get_meta(p)->default_type, 0); /* it has one type only */
	profile_free(p);
}

static void number_of_types_is_bounded(void **state)
{
	struct value_type many[PROFILE_MAX_TYPES + 1] = { 0 };
	struct profile *p = profile_new(dict, many, PROFILE_MAX_TYPES);

	assert_non_null(p);
	profile_free(p);
	assert_null(profile_new(dict, many, PROFILE_MAX_TYPES + 1));
	assert_null(profile_new(dict, many, 0));
}

static void many_samples_are_kept_in_order(void **state)
{
	enum { N = 300000 };

	for (uint32_t i = 0; i < N; i++) {
		location_id frame = dict_location(dict, (module_id){ 0 }, i);

		assert_int_equal(profile_add(profile, dict_stack(dict, &frame, 1), (labels_id){ 0 },
					     (int64_t[]){ 1, i }),
				 0);
	}
	assert_int_equal(profile_n_samples(profile), N);
	assert_int_equal(profile_sample(profile, N - 1).values[1], N - 1);
	assert_int_equal(profile_total(profile, 0), N);
}

#define test(fact) cmocka_unit_test_setup_teardown(fact, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(same_stack_and_labels_add_up_in_one_sample),
		test(values_and_totals_saturate_at_both_ends),
		test(value_type_is_found_by_name_and_by_name_with_unit),
		test(types_and_meta_are_copied),
		test(number_of_types_is_bounded),
		test(many_samples_are_kept_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
