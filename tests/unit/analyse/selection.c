#include "analyse/selection.h"
#include "model/about.h"
#include "model/sample_times.h"
#include "unit/profile_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND 1000000000ULL

static const struct value_type samples = { "samples", "count" };

static struct fixture some(void)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, "server;main;loop;parse;token_[i];deep_[i]", 4);
	fixture_add1(&f, "server;main;loop;read;sys_read_[k]", 2);
	fixture_add1(&f, "server;main;loop;parse;loop;read", 3);
	fixture_add1(&f, "server;main;idle", 1);
	return f;
}

static int apply(struct fixture *f, const struct selection_args *args, struct profile **ret_part,
		 struct err *e)
{
	_cleanup_(selection_freep) struct selection *s = NULL;
	int r = selection_new(args, &s, e);

	return r == 0 ? selection_apply(s, f->p, ret_part, e) : r;
}

/* The sum of what is left, and how many stacks. */
static int64_t left(struct fixture *f, const struct selection_args *args, uint32_t *ret_n)
{
	_cleanup_(profile_freep) struct profile *part = NULL;
	struct err e = { 0 };

	if (apply(f, args, &part, &e) < 0)
		fail_msg("%s", e.msg);
	if (ret_n)
		*ret_n = profile_n_samples(part);
	return profile_total(part, 0);
}

static void a_pattern_is_part_of_a_name_or_an_expression(void **state)
{
	struct fixture f = some();

	assert_int_equal(left(&f, &(struct selection_args){ .filter = { { "pars" }, 1 } }, NULL),
			 7);
	assert_int_equal(
		left(&f, &(struct selection_args){ .filter = { { "^(token|idle)$" }, 1 } }, NULL),
		5);
	assert_int_equal(
		left(&f, &(struct selection_args){ .ignore = { { "parse", "idle" }, 2 } }, NULL),
		2);
	fixture_add1(&f, "server;main;operator[](int)", 8);
	assert_int_equal(
		left(&f, &(struct selection_args){ .filter = { { "tor[](int)" }, 1 } }, NULL), 8);
	fixture_free(&f);
}

static void several_filters_must_all_be_there(void **state)
{
	struct fixture f = some();

	assert_int_equal(
		left(&f, &(struct selection_args){ .filter = { { "parse", "read" }, 2 } }, NULL),
		3);
	assert_int_equal(left(&f,
			      &(struct selection_args){ .filter = { { "parse" }, 1 },
							.ignore = { { "read" }, 1 } },
			      NULL),
			 4);
	fixture_free(&f);
}

static void a_module_is_meant_by_its_own_name(void **state)
{
	struct fixture f = some();

	assert_int_equal(
		left(&f, &(struct selection_args){ .filter = { { "module:kernel" }, 1 } }, NULL),
		2);
	assert_int_equal(left(&f,
			      &(struct selection_args){ .ignore = { { "module:^\\[kernel" }, 1 } },
			      NULL),
			 8);
	fixture_free(&f);
}

/* "a;b" */
static void path_of(struct dict *d, stack_id stack, char *out, size_t cap)
{
	size_t len = 0;
	location_id locations[16];
	uint32_t n = 0;

	for (; stack.ix; stack = dict_stack_parent(d, stack))
		locations[n++] = dict_stack_leaf(d, stack);
	*out = 0;
	while (n-- > 0) {
		const struct location *l = dict_location_get(d, locations[n]);

		for (uint32_t k = l->n_lines; k-- > 0;)
			len += (size_t)snprintf(out + len, cap - len, "%s%s", len ? ";" : "",
						dict_str(d, l->lines[k].function));
	}
}

static void from_a_function_on_stacks_begin_at_its_outermost_call(void **state)
{
	struct fixture f = some();
	_cleanup_(profile_freep) struct profile *part = NULL;
	struct err e = { 0 };
	char path[200];

	assert_int_equal(apply(&f, &(struct selection_args){ .focus = "loop" }, &part, &e), 0);
	assert_int_equal(profile_n_samples(part), 3);
	assert_int_equal(profile_total(part, 0), 9);
	path_of(f.d, profile_sample(part, 2).stack, path, sizeof(path));
	assert_string_equal(path, "loop;parse;loop;read");
	assert_string_equal(
		dict_str(f.d, dict_label_find(f.d, profile_sample(part, 2).labels, "comm")->str),
		"server");
	fixture_free(&f);
}

static void an_inlined_function_is_the_root_without_what_it_is_inlined_into(void **state)
{
	struct fixture f = some();
	_cleanup_(profile_freep) struct profile *part = NULL;
	struct err e = { 0 };
	char path[200];

	assert_int_equal(apply(&f, &(struct selection_args){ .focus = "token" }, &part, &e), 0);
	assert_int_equal(profile_n_samples(part), 1);
	path_of(f.d, profile_sample(part, 0).stack, path, sizeof(path));
	assert_string_equal(path, "token;deep");
	fixture_free(&f);
}

static void stacks_that_become_equal_are_one_sample_with_the_times_of_both(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	_cleanup_(profile_freep) struct profile *part = NULL;
	struct err e = { 0 };
	int64_t sums[SAMPLE_TIMES_TYPES];

	fixture_add1(&f, ";a;work", 2);
	fixture_add1(&f, ";b;work", 3);
	profile_set_times(f.p, sample_times_new((uint32_t[]){ 0 }, 1, SECOND, 100));
	assert_int_equal(sample_times_add(profile_times(f.p), 0, 5 * SECOND, (int64_t[]){ 2 }), 0);
	assert_int_equal(sample_times_add(profile_times(f.p), 1, SECOND, (int64_t[]){ 3 }), 0);
	assert_int_equal(apply(&f, &(struct selection_args){ .focus = "work" }, &part, &e), 0);
	assert_int_equal(profile_n_samples(part), 1);
	sample_times_sum(profile_times(part), 0, 0, 4, sums);
	assert_int_equal(sums[0], 3);
	sample_times_sum(profile_times(part), 0, 4, 6, sums);
	assert_int_equal(sums[0], 2);
	fixture_free(&f);
}

static void errors_of_estimates_and_comments_stay(void **state)
{
	struct fixture f = some();
	struct profile_meta meta = { .comments = (const char *const[]){ "Title: x", NULL } };
	struct profile_sample s = profile_sample(f.p, 1);
	_cleanup_(profile_freep) struct profile *part = NULL;
	struct value_error error;
	struct err e = { 0 };

	assert_int_equal(profile_set_meta(f.p, &meta), 0);
	assert_int_equal(
		profile_add_error(f.p, s.stack, s.labels, 0, &(struct value_error){ .v = 9 }), 0);
	assert_int_equal(
		apply(&f, &(struct selection_args){ .filter = { { "sys_read" }, 1 } }, &part, &e),
		0);
	s = profile_sample(part, 0);
	assert_true(profile_error(&s, 0, &error));
	assert_true(error.v == 9);
	assert_string_equal(profile_about(part, ABOUT_TITLE, 0), "x");
	assert_string_equal(profile_about(part, ABOUT_SELECTED, 0), "stacks with sys_read");
	fixture_free(&f);
}

static void nothing_left_and_bad_patterns_are_said(void **state)
{
	struct fixture f = some();
	struct profile *part = NULL;
	struct err e = { 0 };

	assert_int_equal(
		apply(&f, &(struct selection_args){ .filter = { { "nobody" }, 1 } }, &part, &e),
		-ENODATA);
	assert_string_equal(e.msg, "no stack is left: there are no stacks with nobody");
	assert_int_equal(apply(&f, &(struct selection_args){ .ignore = { { "" }, 1 } }, &part, &e),
			 -EINVAL);
	assert_int_equal(apply(&f, &(struct selection_args){ .focus = "nobody" }, &part, &e),
			 -ENOENT);
	assert_int_equal(apply(&f, &(struct selection_args){ .focus = "" }, &part, &e), -EINVAL);
	assert_null(part);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_is_part_of_a_name_or_an_expression),
		cmocka_unit_test(several_filters_must_all_be_there),
		cmocka_unit_test(a_module_is_meant_by_its_own_name),
		cmocka_unit_test(from_a_function_on_stacks_begin_at_its_outermost_call),
		cmocka_unit_test(an_inlined_function_is_the_root_without_what_it_is_inlined_into),
		cmocka_unit_test(stacks_that_become_equal_are_one_sample_with_the_times_of_both),
		cmocka_unit_test(errors_of_estimates_and_comments_stay),
		cmocka_unit_test(nothing_left_and_bad_patterns_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
