#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/merge.h"
#include "model/profile_checkpoint.h"

static const struct value_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };

static stack_id stack(struct dict *d, uint64_t n)
{
	location_id l = dict_location(d, (module_id){ 0 }, n);

	return dict_stack(d, &l, 1);
}

static void put(struct profile *p, uint64_t nth, int64_t count, int64_t ns)
{
	const int64_t values[] = { count, ns };

	assert_int_equal(profile_add(p, stack(profile_dict(p), nth), (labels_id){ 0 }, values), 0);
}

static void windows_add_up_to_the_whole(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2), *sum = profile_new(d, types, 2);
	struct profile_checkpoint mark = { 0 };

	srand(7);
	for (int window = 0; window < 200; window++) {
		struct profile *gained;

		for (int i = rand() % 50; i > 0; i--)
			put(p, (uint64_t)(rand() % (20 + window)), 1 + rand() % 3, rand() % 1000);
		assert_int_equal(profile_since(p, &mark, &gained), 0);
		assert_int_equal(profile_add_all(sum, gained, NULL, 1), 0);
		profile_free(gained);
	}
	assert_int_equal(profile_n_samples(sum), profile_n_samples(p));
	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		for (int j = 0; j < 2; j++)
			assert_int_equal(profile_sample(sum, i).values[j],
					 profile_sample(p, i).values[j]);
	profile_checkpoint_fini(&mark);
	profile_free(p);
	profile_free(sum);
	dict_free(d);
}

static void what_gained_nothing_is_not_there(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2), *gained;
	struct profile_checkpoint mark = { 0 };

	put(p, 1, 5, 50);
	put(p, 2, 6, 60);
	assert_int_equal(profile_since(p, &mark, &gained), 0);
	assert_int_equal(profile_n_samples(gained), 2);
	profile_free(gained);
	put(p, 2, 1, 0);
	assert_int_equal(profile_since(p, &mark, &gained), 0);
	assert_int_equal(profile_n_samples(gained), 1);
	assert_int_equal(profile_sample(gained, 0).stack.ix, stack(d, 2).ix);
	assert_int_equal(profile_sample(gained, 0).values[0], 1);
	assert_int_equal(profile_sample(gained, 0).values[1], 0);
	profile_free(gained);
	profile_checkpoint_fini(&mark);
	profile_free(p);
	dict_free(d);
}

static void what_is_taken_away_again_is_nothing(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2), *q = profile_new(d, types, 2);

	put(p, 1, 5, 50);
	put(q, 1, 2, 20);
	put(q, 3, 1, 10);
	assert_int_equal(profile_add_all(p, q, NULL, 1), 0);
	assert_int_equal(profile_total(p, 1), 80);
	assert_int_equal(profile_add_all(p, q, NULL, -1), 0);
	assert_int_equal(profile_total(p, 1), 50);
	profile_free(p);
	profile_free(q);
	dict_free(d);
}

static void errors_of_windows_add_up_to_those_of_the_whole(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2), *sum = profile_new(d, types, 2);
	struct profile_checkpoint mark = { 0 };

	srand(8);
	for (int window = 0; window < 50; window++) {
		struct profile *gained;

		for (int i = rand() % 20; i > 0; i--) {
			uint64_t nth = (uint64_t)(rand() % (5 + window));
			struct value_error error = { .samples = 1, .unseen = 5, .v = rand() % 9 };

			if (rand() % 2)
				error.group[rand() % ERROR_GROUPS] = rand() % 100 - 50;
			put(p, nth, 1, 10);
			assert_int_equal(profile_add_error(p, stack(d, nth), (labels_id){ 0 },
							   (uint32_t)(rand() % 2), &error),
					 0);
		}
		assert_int_equal(profile_since(p, &mark, &gained), 0);
		assert_int_equal(profile_add_all(sum, gained, NULL, 1), 0);
		profile_free(gained);
	}
	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		for (uint32_t t = 0; t < 2; t++) {
			struct profile_sample a = profile_sample(p, i), b = profile_sample(sum, i);
			struct value_error x, y;

			assert_int_equal(profile_error(&a, t, &x), profile_error(&b, t, &y));
			assert_true(x.samples == y.samples && x.v == y.v && x.unseen == y.unseen);
			for (int g = 0; g < ERROR_GROUPS; g++)
				assert_true(x.group[g] == y.group[g]);
		}
	profile_checkpoint_fini(&mark);
	profile_free(p);
	profile_free(sum);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_add_up_to_the_whole),
		cmocka_unit_test(what_gained_nothing_is_not_there),
		cmocka_unit_test(what_is_taken_away_again_is_nothing),
		cmocka_unit_test(errors_of_windows_add_up_to_those_of_the_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
