#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/merge.h"
#include "model/sample_times.h"
#include "model/time_merge.h"
#include "unit/profile_fixture.h"

#define SECOND 1000000000ll

static const struct value_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };

/* A window of the same dict that begins `at_s` after second 100. */
static struct fixture window(const struct fixture *of, double at_s)
{
	struct fixture f = { of->d, profile_new(of->d, types, 2), 0x1000 };
	struct profile_meta meta = *profile_get_meta(f.p);

	meta.time_ns = 100 * SECOND + (int64_t)(at_s * 1e9);
	meta.duration_ns = 2 * SECOND;
	profile_set_meta(f.p, &meta);
	return f;
}

static int64_t in_bins(const struct profile *p, uint32_t sample, uint32_t from, uint32_t to)
{
	int64_t sum[SAMPLE_TIMES_TYPES];

	sample_times_sum(profile_times(p), sample, from, to, sum);
	return sum[0];
}

static void windows_that_are_added_up_keep_their_times(void **state)
{
	struct fixture first = fixture_new(types, 2), a = window(&first, 0),
		       b = window(&first, 2.5), c = window(&first, 4.5);
	struct sample_times *ta = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1000);
	struct sample_times *tb = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1000);
	struct profile *sum = NULL;

	(void)state;
	fixture_add(&a, "x;main;f", (int64_t[]){ 2, 200 });
	sample_times_add(ta, 0, 0, (int64_t[]){ 150 });
	sample_times_add(ta, 0, SECOND, (int64_t[]){ 50 });
	profile_set_times(a.p, ta);
	fixture_add(&b, "x;main;g", (int64_t[]){ 1, 70 });
	fixture_add(&b, "x;main;f", (int64_t[]){ 4, 400 });
	sample_times_add(tb, 0, SECOND, (int64_t[]){ 70 });
	sample_times_add(tb, 1, 0, (int64_t[]){ 400 });
	profile_set_times(b.p, tb);
	fixture_add(&c, "x;main;f", (int64_t[]){ 1, 1000 }); /* no times: over its 2 s */
	assert_int_equal(profile_merge(&sum, a.p, "a", MERGE_COMMON, NULL, NULL), 0);
	assert_int_equal(profile_merge(&sum, b.p, "b", MERGE_COMMON, NULL, NULL), 0);
	assert_int_equal(profile_merge(&sum, c.p, "c", MERGE_COMMON, NULL, NULL), 0);
	profile_set_times(sum, NULL);
	assert_int_equal(time_merge_add(sum, c.p, 100 * SECOND), -EAGAIN);
	assert_int_equal(time_merge_add(sum, a.p, 100 * SECOND), 0);
	assert_int_equal(time_merge_add(sum, b.p, 100 * SECOND), 0);
	assert_int_equal(time_merge_add(sum, c.p, 100 * SECOND), 0);
	assert_int_equal(in_bins(sum, 0, 0, 1), 150);
	assert_int_equal(in_bins(sum, 0, 1, 2), 50);
	assert_int_equal(in_bins(sum, 0, 2, 4), 400); /* 2.5 to 3.5 s: in halves */
	assert_int_equal(in_bins(sum, 0, 2, 3), 200);
	assert_int_equal(in_bins(sum, 0, 4, 7), 1000);
	assert_int_equal(in_bins(sum, 0, 5, 6), 500);
	assert_int_equal(in_bins(sum, 1, 0, 10), 70);
	assert_int_equal(in_bins(sum, 0, 0, 10), 1600); /* all of it */
	profile_free(sum);
	profile_free(a.p);
	profile_free(b.p);
	profile_free(c.p);
	fixture_free(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_that_are_added_up_keep_their_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
