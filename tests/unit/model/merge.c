#include "model/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

static struct dict *d;
static struct err e;

static int setup(void **state)
{
	d = dict_new();
	return 0;
}

static int teardown(void **state)
{
	dict_free(d);
	return 0;
}

static struct profile *profile_of(const struct value_type *types, uint32_t n)
{
	struct profile *p = profile_new(d, types, n);

	assert_non_null(p);
	return p;
}

static module_id module_at(const char *path, const char *build_id, uint64_t start, uint64_t off)
{
	struct module m = { .kind = MODULE_ELF,
			    .path = dict_string(d, path),
			    .build_id = dict_string(d, build_id),
			    .start = start,
			    .limit = start + 0x1000,
			    .file_off = off };

	return dict_module(d, &m);
}

static void add(struct profile *p, module_id m, uint64_t vaddr, int64_t a, int64_t b)
{
	location_id loc = dict_location(d, m, vaddr);
	int64_t values[] = { a, b };

	assert_int_equal(profile_add(p, dict_stack(d, &loc, 1), (labels_id){ 0 }, values), 0);
}

static const struct value_type two[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type turned[] = { { "cpu", "nanoseconds" }, { "samples", "count" } };

static void the_order_of_value_types_does_not_matter(void **state)
{
	struct profile *sum = NULL, *a = profile_of(two, 2), *b = profile_of(turned, 2);
	module_id m = module_at("/x", "", 0, 0);

	add(a, m, 1, 3, 30);
	add(b, m, 1, 40, 4);
	assert_int_equal(profile_merge(&sum, a, "a", MERGE_SAME, NULL, &e), 0);
	assert_int_equal(profile_merge(&sum, b, "b", MERGE_SAME, NULL, &e), 0);
	assert_int_equal(profile_n_samples(sum), 1);
	assert_int_equal(profile_total(sum, 0), 7);
	assert_int_equal(profile_total(sum, 1), 70);
	profile_free(a);
	profile_free(b);
	profile_free(sum);
}

static void other_value_types_are_refused_or_left_out_as_asked(void **state)
{
	struct profile *sum = NULL, *a = profile_of(two, 2), *b = profile_of(two, 1);
	module_id m = module_at("/x", "", 0, 0);

	add(a, m, 1, 3, 30);
	add(b, m, 1, 4, 0);
	assert_int_equal(profile_merge(&sum, a, "a", MERGE_SAME, NULL, &e), 0);
	assert_int_equal(profile_merge(&sum, b, "b", MERGE_SAME, NULL, &e), -EDOM);
	assert_int_equal(profile_total(sum, 0), 3);
	assert_int_equal(profile_merge(&sum, b, "b", MERGE_COMMON, NULL, &e), 0);
	assert_int_equal(profile_n_types(sum), 1);
	assert_int_equal(profile_total(sum, 0), 7);
	profile_free(a);
	profile_free(b);
	profile_free(sum);
}

static void a_profile_without_samples_has_no_say_in_the_types(void **state)
{
	struct profile *sum = NULL, *none = profile_of(two, 1), *a = profile_of(two, 2);

	add(a, module_at("/x", "", 0, 0), 1, 3, 30);
	assert_int_equal(profile_merge(&sum, none, "none", MERGE_COMMON, NULL, &e), 0);
	assert_int_equal(profile_merge(&sum, a, "a", MERGE_COMMON, NULL, &e), 0);
	assert_int_equal(profile_merge(&sum, none, "none", MERGE_COMMON, NULL, &e), 0);
	assert_int_equal(profile_n_types(sum), 2);
	assert_int_equal(profile_total(sum, 1), 30);
	profile_free(a);
	profile_free(none);
	profile_free(sum);
}

static void images_of_one_build_id_are_one(void **state)
{
	struct profile *sum = NULL, *a = profile_of(two, 1), *b = profile_of(two, 1);
	struct merge_info info = { 0 };

	/* The same place, by the file's address and by that of a process. */
	add(a, module_at("/usr/lib/x.so", "abcd", 0x1000, 0x1000), 0x1234, 1, 0);
	add(b, module_at("/other/x.so", "abcd", 0x7f0000001000, 0x1000), 0x7f0000001234, 2, 0);
	add(b, module_at("/other/y.so", "ef01", 0x1000, 0x1000), 0x1234, 4, 0);
	assert_int_equal(profile_merge(&sum, a, "a", MERGE_SAME, &info, &e), 0);
	assert_int_equal(profile_merge(&sum, b, "b", MERGE_SAME, &info, &e), 0);
	assert_int_equal(profile_n_samples(sum), 2);
	assert_int_equal(profile_sample(sum, 0).values[0], 3);
	assert_int_equal(profile_sample(sum, 1).values[0], 4);
	assert_false(info.build_ids_differ);
	profile_free(a);
	profile_free(b);
	profile_free(sum);
}

static void two_builds_at_one_path_are_reported(void **state)
{
	struct profile *sum = NULL, *a = profile_of(two, 1);
	struct merge_info info = { 0 };

	add(a, module_at("/x", "abcd", 0, 0), 1, 1, 0);
	add(a, module_at("/x", "ef01", 0, 0), 1, 1, 0);
	assert_int_equal(profile_merge(&sum, a, "a", MERGE_SAME, &info, &e), 0);
	assert_true(info.build_ids_differ);
	assert_int_equal(profile_n_samples(sum), 2);
	profile_free(a);
	profile_free(sum);
}

static void durations_add_and_the_larger_period_stays(void **state)
{
	struct profile *sum = NULL, *a = profile_of(two, 1), *b = profile_of(two, 1);
	struct merge_info info = { 0 };
	struct profile_meta meta = { .time_ns = 200,
				     .duration_ns = 7,
				     .period = 10,
				     .period_type = { "cpu", "nanoseconds" } };

	assert_int_equal(profile_set_meta(a, &meta), 0);
	meta.time_ns = 100;
	meta.period = 20;
	assert_int_equal(profile_set_meta(b, &meta), 0);
	assert_int_equal(profile_merge(&sum, a, "a", MERGE_SAME, &info, &e), 0);
	assert_false(info.periods_differ);
	assert_int_equal(profile_merge(&sum, b, "b", MERGE_SAME, &info, &e), 0);
	assert_true(info.periods_differ);
	assert_int_equal(profile_get_meta(sum)->duration_ns, 14);
	assert_int_equal(profile_get_meta(sum)->time_ns, 100);
	assert_int_equal(profile_get_meta(sum)->period, 20);
	profile_free(a);
	profile_free(b);
	profile_free(sum);
}

static void comments_of_both_are_kept_each_once(void **state)
{
	struct profile *sum = NULL, *a = profile_of(two, 1), *b = profile_of(two, 1);
	const char *of_a[] = { "Label: env=prod", "Label: host=a", NULL };
	const char *of_b[] = { "Label: host=b", "Label: env=prod", NULL };
	struct profile_meta meta = { .period_type = { "", "" }, .comments = of_a };
	const char *const *c;

	assert_int_equal(profile_set_meta(a, &meta), 0);
	meta.comments = of_b;
	assert_int_equal(profile_set_meta(b, &meta), 0);
	assert_int_equal(profile_merge(&sum, a, "a", MERGE_SAME, NULL, &e), 0);
	assert_int_equal(profile_merge(&sum, b, "b", MERGE_SAME, NULL, &e), 0);
	c = profile_get_meta(sum)->comments;
	assert_string_equal(c[0], "Label: env=prod");
	assert_string_equal(c[1], "Label: host=a");
	assert_string_equal(c[2], "Label: host=b");
	assert_null(c[3]);
	profile_free(a);
	profile_free(b);
	profile_free(sum);
}

static void what_is_taken_away_is_negative(void **state)
{
	struct profile *a = profile_of(two, 1);
	uint32_t from[] = { 0 };

	add(a, module_at("/x", "", 0, 0), 1, INT64_MIN, 0);
	assert_int_equal(profile_add_all(a, a, from, -1), 0);
	assert_int_equal(profile_total(a, 0), -1);
	profile_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		FACT(the_order_of_value_types_does_not_matter),
		FACT(other_value_types_are_refused_or_left_out_as_asked),
		FACT(a_profile_without_samples_has_no_say_in_the_types),
		FACT(images_of_one_build_id_are_one),
		FACT(two_builds_at_one_path_are_reported),
		FACT(durations_add_and_the_larger_period_stays),
		FACT(comments_of_both_are_kept_each_once),
		FACT(what_is_taken_away_is_negative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
