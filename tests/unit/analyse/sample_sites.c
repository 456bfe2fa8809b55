#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/sample_sites.h"
#include "model/estimate.h"
#include "unit/profile_fixture.h"

static const struct value_type bytes_type[] = { { "alloc_space", "bytes" } };
static const struct value_type sum_types[2 * SPREAD_TYPES] = {
	{ "v", "" },      { "vc", "" },      { "samples", "" },      { "seen", "" },
	{ "live_v", "" }, { "live_vc", "" }, { "live_samples", "" }, { "live_seen", "" },
};

/* The sums of `n` samples of `size` bytes and this weight, at `at`; and what they estimate. */
static int64_t put(int64_t *at, int n, uint64_t size, uint64_t weight, struct estimate *all)
{
	struct estimate est = { 0 };

	for (int i = 0; i < n; i++)
		estimate_add(&est, size, weight);
	at[SPREAD_V] = (int64_t)(est.v / 16);
	at[SPREAD_VC] = (int64_t)(est.vc / 1024);
	at[SPREAD_SAMPLES] = (int64_t)est.samples;
	at[SPREAD_SEEN] = (int64_t)est.seen_bytes;
	estimate_merge(all, &est);
	return (int64_t)est.bytes;
}

static void interval_of_a_site_is_that_of_its_stacks_together(void **state)
{
	struct fixture sums = fixture_new(sum_types, 2 * SPREAD_TYPES);
	struct fixture bytes = { .d = sums.d, .p = profile_new(sums.d, bytes_type, 1) };
	struct spread spread = { .sums = sums.p, .v_unit = 16, .vc_unit = 1024 };
	int64_t values[2 * SPREAD_TYPES] = { 0 };
	struct estimate load = { 0 }, none = { 0 };
	struct site_row rows[4];
	struct interval want;

	(void)state;
	fixture_add1(&bytes, "app;main;load;malloc", put(values, 5, 100, 8192, &load));
	fixture_add(&sums, "app;main;load;malloc", values);
	fixture_add1(&bytes, "app;main;other;load;malloc", put(values, 7, 3000, 9600, &load));
	fixture_add(&sums, "app;main;other;load;malloc", values);
	fixture_add1(&bytes, "app;main;big;malloc", put(values, 2, 1 << 20, 1 << 20, &none));
	fixture_add(&sums, "app;main;big;malloc", values);

	assert_int_equal(sites_allocations(bytes.p, 0, -1, rows, 4), 2);
	assert_int_equal(sample_sites(&spread, false, rows, 2), 0);
	assert_string_equal(rows[0].function, "big");
	assert_int_equal(rows[0].samples, 2);
	assert_int_equal(rows[0].low, 2 << 20);
	assert_int_equal(rows[0].high, 2 << 20);
	want = estimate_interval(&load);
	assert_string_equal(rows[1].function, "load");
	assert_int_equal(rows[1].samples, 12);
	/* The sums are kept in whole units. */
	assert_true(rows[1].low > want.low - 10 && rows[1].low < want.low + 10);
	assert_true(rows[1].high > want.high - 10 && rows[1].high < want.high + 10);
	profile_free(bytes.p);
	fixture_free(&sums);
}

static void live_sites_have_sums_of_their_own(void **state)
{
	struct fixture sums = fixture_new(sum_types, 2 * SPREAD_TYPES);
	struct fixture bytes = { .d = sums.d, .p = profile_new(sums.d, bytes_type, 1) };
	struct spread spread = { .sums = sums.p, .v_unit = 16, .vc_unit = 1024 };
	int64_t values[2 * SPREAD_TYPES] = { 0 };
	struct estimate all = { 0 }, live = { 0 };
	struct site_row row;

	(void)state;
	put(values, 9, 100, 8192, &all);
	fixture_add1(&bytes, "app;main;load;malloc",
		     put(values + SPREAD_TYPES, 1, 100, 8192, &live));
	fixture_add(&sums, "app;main;load;malloc", values);
	assert_int_equal(sites_allocations(bytes.p, 0, -1, &row, 1), 1);
	assert_int_equal(sample_sites(&spread, true, &row, 1), 0);
	assert_int_equal(row.samples, 1);
	assert_true(row.high > 4 * 8192);
	assert_true(row.low >= 100);
	profile_free(bytes.p);
	fixture_free(&sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interval_of_a_site_is_that_of_its_stacks_together),
		cmocka_unit_test(live_sites_have_sums_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
