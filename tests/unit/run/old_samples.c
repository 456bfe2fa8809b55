#include "run_fixture.h"

#include "model/profile_checkpoint.h"
#include "run/old_samples.h"

static const struct run_config cfg = { .sources = { [SOURCE_ONCPU] = true } };

enum { MINUTES = 5 };

static struct run *run_with(enum profile_kind a, enum profile_kind b)
{
	struct run *r = bare_run(&cfg);

	r->profiles[a] = profile_new(r->dict, profile_rows[a].types, profile_rows[a].n_types);
	r->profiles[b] = profile_new(r->dict, profile_rows[b].types, profile_rows[b].n_types);
	return r;
}

static uint64_t at_minute(uint64_t n)
{
	return n * 60 * 1000000000ULL;
}

static labels_id labels_of(struct dict *d, int64_t pid, const char *container)
{
	const struct label l[] = {
		{ .key = dict_string(d, "pid"), .num = pid },
		{ .key = dict_string(d, "comm"), .str = dict_string(d, "cc1") },
		{ .key = dict_string(d, "container"), .str = dict_string(d, container) },
	};

	return dict_labels(d, l, *container ? 3 : 2);
}

static void use(struct run *r, enum profile_kind kind, int64_t pid, const char *container,
		int64_t n)
{
	const int64_t values[PROFILE_MAX_TYPES] = { n, 10 * n };
	location_id at = dict_location(r->dict, (module_id){ 0 }, (uint64_t)pid);

	assert_int_equal(profile_add(r->profiles[kind], dict_stack(r->dict, &at, 1),
				     labels_of(r->dict, pid, container), values),
			 0);
}

static const char *function_of(const struct dict *d, const struct profile_sample *s)
{
	const struct location *l = dict_location_get(d, dict_stack_leaf(d, s->stack));

	return l->n_lines ? dict_str(d, l->lines[0].function) : "";
}

static void what_stayed_as_it_was_is_put_together_by_container(void **state)
{
	struct run *r = run_with(PROFILE_ONCPU, PROFILE_OFFCPU);
	struct profile *p = r->profiles[PROFILE_ONCPU];
	struct old_samples *o = old_samples_new(r);
	int64_t web = 0, rest = 0;

	for (int64_t pid = 1; pid <= 10; pid++)
		use(r, PROFILE_ONCPU, pid, pid % 2 ? "web" : "", 1);
	old_samples_tick(o, at_minute(1));
	assert_int_equal(profile_n_samples(p), 10);
	use(r, PROFILE_ONCPU, 1, "web", 1);
	old_samples_tick(o, at_minute(MINUTES)); /* not yet */
	assert_int_equal(profile_n_samples(p), 10);
	old_samples_tick(o, at_minute(1 + MINUTES));
	assert_int_equal(profile_n_samples(p), 3);
	assert_int_equal(profile_total(p, 0), 11);
	for (uint32_t i = 0; i < 3; i++) {
		struct profile_sample s = profile_sample(p, i);

		if (strcmp(function_of(r->dict, &s), "[not seen for minutes]") != 0) {
			assert_int_equal(s.values[0], 2);
			continue;
		}
		assert_null(dict_label_find(r->dict, s.labels, "pid"));
		if (dict_label_find(r->dict, s.labels, "container"))
			web += s.values[0];
		else
			rest += s.values[0];
	}
	assert_int_equal(web, 4);
	assert_int_equal(rest, 5);
	old_samples_free(o);
	bare_run_free(r);
}

/* A day of processes that come and go, with somebody who looks at each window: what there is stays as much as ten minutes bring. */
static void a_day_of_churn_takes_no_more_than_its_last_minutes(void **state)
{
	struct run *r = run_with(PROFILE_ONCPU, PROFILE_OFFCPU);
	struct old_samples *o = old_samples_new(r);
	struct profile_checkpoint had = { 0 };
	int64_t pid = 0, seen = 0;

	for (uint64_t minute = 0; minute < 24 * 60; minute++) {
		struct profile *window;

		for (int i = 0; i < 100; i++)
			use(r, PROFILE_OFFCPU, ++pid, "", 1);
		assert_int_equal(profile_since(r->profiles[PROFILE_OFFCPU], &had, &window), 0);
		assert_int_equal(profile_n_samples(window), 100);
		seen += profile_total(window, 0);
		profile_free(window);
		old_samples_tick(o, at_minute(minute));
		assert_true(profile_n_samples(r->profiles[PROFILE_OFFCPU]) <=
			    100 * (2 * MINUTES + 1) + 1);
		assert_true(labels_of(r->dict, pid, "").ix <= 100 * (3 * MINUTES + 1) + 1);
	}
	assert_int_equal(seen, pid);
	assert_int_equal(profile_total(r->profiles[PROFILE_OFFCPU], 0), pid);
	profile_checkpoint_fini(&had);
	old_samples_free(o);
	bare_run_free(r);
}

static void what_somebody_has_not_seen_yet_stays(void **state)
{
	struct run *r = run_with(PROFILE_ONCPU, PROFILE_OFFCPU);
	struct profile_checkpoint had = { 0 };
	struct old_samples *o = old_samples_new(r);
	struct profile *window;

	assert_int_equal(profile_since(r->profiles[PROFILE_ONCPU], &had, &window), 0);
	profile_free(window);
	use(r, PROFILE_ONCPU, 1, "", 1);
	for (uint64_t minute = 0; minute < 60; minute++)
		old_samples_tick(o, at_minute(minute));
	assert_int_equal(profile_since(r->profiles[PROFILE_ONCPU], &had, &window), 0);
	assert_int_equal(profile_n_samples(window), 1);
	assert_string_equal(
		function_of(r->dict,
			    &(struct profile_sample){ .stack = profile_sample(window, 0).stack }),
		"");
	profile_free(window);
	profile_checkpoint_fini(&had);
	old_samples_free(o);
	bare_run_free(r);
}

static void what_is_allocated_stays_where_it_is(void **state)
{
	struct run *r = run_with(PROFILE_ALLOC, PROFILE_HEAP);
	struct old_samples *o = old_samples_new(r);

	for (int64_t pid = 1; pid <= 10; pid++) {
		use(r, PROFILE_ALLOC, pid, "web", 1);
		use(r, PROFILE_HEAP, pid, "web", 1);
	}
	for (uint64_t minute = 0; minute < 60; minute++)
		old_samples_tick(o, at_minute(minute));
	assert_int_equal(profile_n_samples(r->profiles[PROFILE_ALLOC]), 10);
	assert_int_equal(profile_n_samples(r->profiles[PROFILE_HEAP]), 10);
	old_samples_free(o);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stayed_as_it_was_is_put_together_by_container),
		cmocka_unit_test(a_day_of_churn_takes_no_more_than_its_last_minutes),
		cmocka_unit_test(what_somebody_has_not_seen_yet_stays),
		cmocka_unit_test(what_is_allocated_stays_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
