#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/merge.h"
#include "model/profile_checkpoint.h"
#include "model/profile_fold.h"
#include "model/sample_times.h"

#include <errno.h>

static const struct value_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
enum { FOLDED = 1000 };

static stack_id stack(struct dict *d, uint64_t n)
{
	location_id l = dict_location(d, (module_id){ 0 }, n);

	return dict_stack(d, &l, 1);
}

static labels_id pid(struct dict *d, int64_t n)
{
	const struct label l = { .key = dict_string(d, "pid"), .num = n };

	return dict_labels(d, &l, 1);
}

static void put(struct profile *p, uint64_t nth, int64_t count, int64_t ns)
{
	struct dict *d = profile_dict(p);
	const int64_t values[] = { count, ns };

	assert_int_equal(profile_add(p, stack(d, nth), pid(d, (int64_t)nth), values), 0);
}

/* Which samples go, by a bit each; where to. */
struct who {
	uint64_t gone;
	struct dict *d;
};

static bool gone(void *ctx, uint32_t sample, stack_id *s, labels_id *l)
{
	struct who *w = ctx;

	if (sample >= 64 || !(w->gone >> sample & 1))
		return false;
	*s = stack(w->d, FOLDED);
	*l = (labels_id){ 0 };
	return true;
}

static void fold(struct profile *p, uint64_t which, uint32_t want_fewer)
{
	struct who w = { which, profile_dict(p) };
	uint32_t fewer = 99;

	assert_int_equal(profile_fold(p, gone, &w, &fewer), 0);
	assert_int_equal(fewer, want_fewer);
}

static void what_is_put_together_adds_up(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2);
	const struct value_error error = { .samples = 2, .v = 9 };
	struct value_error got;
	struct profile_sample s;
	uint32_t at;

	for (uint64_t i = 0; i < 5; i++) {
		put(p, i, (int64_t)i, 10 * (int64_t)i);
		assert_int_equal(profile_add_error(p, stack(d, i), pid(d, (int64_t)i), 1, &error),
				 0);
	}
	fold(p, 1 << 1 | 1 << 3, 1);
	assert_int_equal(profile_n_samples(p), 4);
	assert_int_equal(profile_total(p, 0), 10);
	assert_int_equal(profile_total(p, 1), 100);
	assert_int_equal(profile_find_sample(p, stack(d, 3), pid(d, 3), &at), -ENOENT);
	assert_int_equal(profile_find_sample(p, stack(d, FOLDED), (labels_id){ 0 }, &at), 0);
	s = profile_sample(p, at);
	assert_int_equal(s.values[0], 4);
	assert_int_equal(s.values[1], 40);
	assert_true(profile_error(&s, 1, &got));
	assert_true(got.v == 18 && got.samples == 4);
	/* Again: it is there already. */
	fold(p, 1 << 0, 1);
	assert_int_equal(profile_total(p, 1), 100);
	put(p, 3, 1, 1);
	assert_int_equal(profile_find_sample(p, stack(d, 3), pid(d, 3), &at), 0);
	assert_int_equal(profile_sample(p, at).values[1], 1);
	profile_free(p);
	dict_free(d);
}

/* Two that look at different times, beside one profile that is folded and one that is not. */
static void gains_since_a_checkpoint_stay_what_they_are(void **state)
{
	struct dict *d = dict_new();
	struct profile *folds = profile_new(d, types, 2), *stays = profile_new(d, types, 2);
	struct profile_checkpoint of_folds[2] = { 0 }, of_stays[2] = { 0 };

	for (int k = 0; k < 2; k++) {
		assert_int_equal(profile_checkpoint_take(folds, &of_folds[k]), 0);
		assert_int_equal(profile_checkpoint_take(stays, &of_stays[k]), 0);
	}
	srand(11);
	for (int turn = 0; turn < 400; turn++) {
		struct profile *a, *b;
		int k = rand() % 2;

		for (int i = rand() % 30; i > 0; i--) {
			uint64_t nth = (uint64_t)(turn + rand() % 20);
			int64_t ns = rand() % 1000;

			put(folds, nth, 1, ns);
			put(stays, nth, 1, ns);
		}
		if (turn % 3 == 0) {
			struct who w = { (uint64_t)rand() * (uint64_t)rand(), d };
			uint32_t fewer;

			assert_int_equal(profile_fold(folds, gone, &w, &fewer), 0);
		}
		assert_int_equal(profile_since(folds, &of_folds[k], &a), 0);
		assert_int_equal(profile_since(stays, &of_stays[k], &b), 0);
		assert_int_equal(profile_n_samples(a), profile_n_samples(b));
		for (uint32_t i = 0; i < profile_n_samples(b); i++) {
			struct profile_sample s = profile_sample(b, i);
			uint32_t at;

			assert_int_equal(profile_find_sample(a, s.stack, s.labels, &at), 0);
			assert_memory_equal(profile_sample(a, at).values, s.values,
					    2 * sizeof(*s.values));
		}
		profile_free(a);
		profile_free(b);
		assert_int_equal(profile_total(folds, 1), profile_total(stays, 1));
	}
	assert_true(profile_n_samples(folds) < profile_n_samples(stays));
	for (int k = 0; k < 2; k++) {
		profile_checkpoint_fini(&of_folds[k]);
		profile_checkpoint_fini(&of_stays[k]);
	}
	profile_free(folds);
	profile_free(stays);
	dict_free(d);
}

/* The error of what was put together before and after the checkpoint is the one of what came after. */
static void errors_since_a_checkpoint_follow(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2), *gained;
	struct profile_checkpoint m = { 0 };
	const struct value_error error = { .samples = 1, .v = 4 };
	const int64_t more[] = { 1, 1 };
	struct value_error got;
	struct profile_sample s;

	for (uint64_t i = 0; i < 3; i++) {
		put(p, i, 1, 10);
		assert_int_equal(profile_add_error(p, stack(d, i), pid(d, (int64_t)i), 1, &error),
				 0);
	}
	assert_int_equal(profile_since(p, &m, &gained), 0);
	profile_free(gained);
	fold(p, 7, 2);
	assert_int_equal(profile_add(p, stack(d, FOLDED), (labels_id){ 0 }, more), 0);
	assert_int_equal(profile_add_error(p, stack(d, FOLDED), (labels_id){ 0 }, 1, &error), 0);
	assert_int_equal(profile_since(p, &m, &gained), 0);
	assert_int_equal(profile_n_samples(gained), 1);
	s = profile_sample(gained, 0);
	assert_int_equal(s.values[1], 1);
	assert_true(profile_error(&s, 1, &got));
	assert_true(got.v == 4 && got.samples == 1);
	profile_free(gained);
	profile_checkpoint_fini(&m);
	profile_free(p);
	dict_free(d);
}

static void what_has_not_changed_is_known(void **state)
{
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2);
	struct profile_checkpoint m = { 0 };

	assert_false(profile_checkpoint_has(&m, 0));
	put(p, 1, 1, 1);
	put(p, 2, 1, 1);
	assert_int_equal(profile_checkpoint_take(p, &m), 0);
	put(p, 2, 0, 5);
	put(p, 3, 1, 1);
	assert_true(profile_checkpoint_has(&m, 0));
	assert_false(profile_checkpoint_has(&m, 1));
	assert_false(profile_checkpoint_has(&m, 2));
	/* The checkpoint outlives its profile. */
	profile_free(p);
	assert_false(profile_checkpoint_has(&m, 0));
	profile_checkpoint_fini(&m);
	dict_free(d);
}

static void samples_with_times_stay(void **state)
{
	static const uint32_t of[] = { 1 };
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, types, 2);
	struct who w = { 1, d };
	const int64_t ns = 10;
	uint32_t fewer;

	put(p, 1, 1, 10);
	put(p, 2, 1, 10);
	profile_set_times(p, sample_times_new(of, 1, SAMPLE_TIMES_BIN_NS, 100));
	assert_int_equal(sample_times_add(profile_times(p), 0, 5, &ns), 0);
	assert_int_equal(profile_fold(p, gone, &w, &fewer), -EBUSY);
	assert_int_equal(profile_n_samples(p), 2);
	sample_times_clear(profile_times(p));
	fold(p, 3, 1);
	profile_free(p);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_together_adds_up),
		cmocka_unit_test(gains_since_a_checkpoint_stay_what_they_are),
		cmocka_unit_test(errors_since_a_checkpoint_follow),
		cmocka_unit_test(what_has_not_changed_is_known),
		cmocka_unit_test(samples_with_times_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
