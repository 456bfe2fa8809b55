#include "run_fixture.h"

#include "model/sample_times.h"

#include <unistd.h>

/* Records about processes: when they are read. */
void targets_read(struct run *r, uint64_t now)
{
	called("processes");
}
void targets_drained(struct run *r, uint64_t now)
{
	called("targets");
}
static int events[2];
int drain_events_fd(const struct drain *d)
{
	return events[0];
}

static struct run_config cfg = { .sources = { [SOURCE_ONCPU] = true, [SOURCE_OFFCPU] = true } };

static int make(void **state)
{
	struct run *r = bare_run(&cfg);

	assert_int_equal(pipe(events), 0);
	for (int i = 0; i < 2; i++)
		r->profiles[i] =
			profile_new(r->dict, profile_rows[i].types, profile_rows[i].n_types);
	assert_int_equal(pipeline_open(r, NULL), 0);
	*state = r;
	return 0;
}

static int drop(void **state)
{
	pipeline_free(*state);
	bare_run_free(*state);
	close(events[0]);
	close(events[1]);
	return 0;
}

static void records_about_processes_are_read_between_the_exchange_and_the_totals(void **state)
{
	assert_int_equal(pipeline_totals(*state, NULL), 0);
	assert_string_equal(fake.calls, "flip processes totals processes sent");
}

static void a_drain_forgets_targets_when_the_totals_are_in(void **state)
{
	assert_int_equal(pipeline_drain(*state, NULL), 0);
	assert_string_equal(fake.calls, "flip processes totals processes sent threads targets");
}

static void nothing_is_drained_before_its_time_unless_somebody_needs_it(void **state)
{
	struct run *r = *state;

	assert_int_equal(pipeline_drain(r, NULL), 0);
	*fake.calls = '\0';
	assert_int_equal(pipeline_tick(r, now_ns(), false, NULL), 0);
	assert_string_equal(fake.calls, "");
	assert_int_equal(pipeline_tick(r, now_ns(), true, NULL), 0);
	assert_string_not_equal(fake.calls, "");
}

static void sample(struct run *r, int64_t count)
{
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);
	const int64_t values[2] = { count, count * 10 };

	assert_int_equal(profile_add(r->profiles[PROFILE_ONCPU], dict_stack(r->dict, &at, 1),
				     dict_labels(r->dict, NULL, 0), values),
			 0);
}

static void a_window_has_the_times_that_it_asks_for_and_the_next_one_only_its_own(void **state)
{
	struct profile_since window = { .times = true, .forget_times = true }, request = { 0 };
	const struct profile_row *row = &profile_rows[PROFILE_ONCPU];
	struct sample_times *t =
		sample_times_new(row->times, row->n_times, SAMPLE_TIMES_BIN_NS, 100);
	struct profile_now now = { 0 };
	struct run *r = *state;
	int64_t sums[SAMPLE_TIMES_TYPES];

	profile_set_times(r->profiles[PROFILE_ONCPU], t);
	sample(r, 3);
	assert_int_equal(pipeline_now(r, &request, &now, NULL), 0);
	assert_null(profile_times(now.profiles[PROFILE_ONCPU]));
	profile_now_fini(&now);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sample_times_add(t, 0, 0, (int64_t[]){ 30, 3 }), 0);
		assert_int_equal(pipeline_now(r, &window, &now, NULL), 0);
		sample_times_sum(profile_times(now.profiles[PROFILE_ONCPU]), 0, 0, UINT32_MAX,
				 sums);
		assert_int_equal(sums[1], i ? 4 : 3);
		assert_int_equal(sample_times_n_entries(t), 0);
		profile_now_fini(&now);
		sample(r, 4);
	}
	profile_since_fini(&window);
	profile_since_fini(&request);
}

static void two_who_ask_at_different_times_each_get_all_there_was(void **state)
{
	struct profile_since window = { 0 }, request = { 0 };
	struct profile_now now = { 0 };
	struct run *r = *state;
	int64_t of_window = 0;

	sample(r, 3);
	assert_int_equal(pipeline_now(r, &window, &now, NULL), 0);
	of_window += profile_total(now.profiles[PROFILE_ONCPU], 0);
	assert_int_equal(of_window, 3);
	profile_now_fini(&now);
	sample(r, 4);
	assert_int_equal(pipeline_now(r, &request, &now, NULL), 0);
	assert_int_equal(profile_total(now.profiles[PROFILE_ONCPU], 0), 7);
	profile_now_fini(&now);
	assert_int_equal(pipeline_now(r, &window, &now, NULL), 0);
	of_window += profile_total(now.profiles[PROFILE_ONCPU], 0);
	assert_int_equal(of_window, 7);
	profile_now_fini(&now);
	profile_since_fini(&window);
	profile_since_fini(&request);
}

static void after_the_end_the_last_profile_drains_nothing(void **state)
{
	struct profile_since since = { 0 };
	struct profile_now now = { 0 };
	struct run *r = *state;

	sample(r, 5);
	r->clock.end_ns = fake.start_ns + 2000000000;
	assert_int_equal(pipeline_now(r, &since, &now, NULL), 0);
	assert_true(now.last);
	assert_int_equal(now.duration_ns, 2000000000);
	assert_string_equal(fake.calls, "");
	profile_now_fini(&now);
	profile_since_fini(&since);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)

/* What was not traced is no profile without samples. */
static void mappings_that_are_not_traced_are_no_profile(void **state)
{
	struct run *r = *state;

	r->profiles[PROFILE_MAPPINGS] = r->profiles[0];
	r->alloc.tier = ALLOC_TIER_EXACT;
	assert_true(pipeline_has(r, PROFILE_MAPPINGS));
	r->alloc.no_mappings = true;
	assert_false(pipeline_has(r, PROFILE_MAPPINGS));
	r->profiles[PROFILE_MAPPINGS] = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mappings_that_are_not_traced_are_no_profile),
		TEST(records_about_processes_are_read_between_the_exchange_and_the_totals),
		TEST(a_drain_forgets_targets_when_the_totals_are_in),
		TEST(nothing_is_drained_before_its_time_unless_somebody_needs_it),
		TEST(a_window_has_the_times_that_it_asks_for_and_the_next_one_only_its_own),
		TEST(two_who_ask_at_different_times_each_get_all_there_was),
		TEST(after_the_end_the_last_profile_drains_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
