#include "import/run_scalars.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

static struct run_scalars s;
static struct err e;

static int parse(const char *text)
{
	return run_scalars_parse(bytes_of(text, strlen(text)), "x", &s, &e);
}

static void figures_are_in_one_unit_each(void **state)
{
	assert_int_equal(
		parse("{\"sources\":{},\"duration_ns\":5,\"rss\":{\"peak_kb\":3,\"last_kb\":2},"
		      "\"time\":{\"oncpu_ns\":7,\"blocked_ns\":8,\"runnable_ns\":9},"
		      "\"growth\":{\"resident\":{\"a\":10,\"b\":20}}}"),
		0);
	assert_true(s.value[RUN_DURATION] == 5 && s.value[RUN_RSS_PEAK] == 3072);
	assert_true(s.value[RUN_RSS_LAST] == 2048 && s.value[RUN_CPU] == 7);
	assert_true(s.value[RUN_BLOCKED] == 8 && s.value[RUN_RUNNABLE] == 9);
	assert_true(s.value[RUN_RESIDENT] == 30);
	assert_true(isnan(s.low[RUN_CPU]));
}

static void what_a_run_does_not_say_is_no_zero(void **state)
{
	assert_int_equal(parse("{\"sources\":{},\"alloc\":{\"tier\":\"declined\",\"bytes\":0},"
			       "\"time\":null,\"rss\":\"many\"}"),
			 0);
	for (int i = 0; i < N_RUN_SCALARS; i++)
		assert_true(isnan(s.value[i]));
}

static void estimates_bring_their_intervals(void **state)
{
	assert_int_equal(
		parse("{\"sources\":{},\"alloc\":{\"tier\":\"sampled\",\"bytes\":100,\"objects\":4,"
		      "\"live_bytes\":10,\"bytes_interval\":{\"low\":90,\"high\":110}},"
		      "\"oncpu\":{\"cpu_ns\":1000,\"samples\":100}}"),
		0);
	assert_true(s.value[RUN_ALLOCATED] == 100 && s.low[RUN_ALLOCATED] == 90);
	assert_true(s.high[RUN_ALLOCATED] == 110 && isnan(s.low[RUN_LIVE]));
	assert_true(fabs(s.high[RUN_CPU] - 1196) < 1e-6); /* 1.96 of √100 samples */
}

static void a_run_whose_target_ended_says_so(void **state)
{
	assert_int_equal(parse("{\"sources\":{},\"end\":\"target\"}"), 0);
	assert_true(s.ended_by_itself);
	assert_int_equal(parse("{\"sources\":{},\"end\":\"duration\"}"), 0);
	assert_false(s.ended_by_itself);
	assert_int_equal(parse("{\"sources\":{},\"end\":null}"), 0);
	assert_false(s.ended_by_itself);
}

static void what_is_no_summary_is_refused(void **state)
{
	static const char *const texts[] = { "",   "[]", "{}", "{\"sources\":3}", "{\"sources\":{}",
					     "\0x" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		e.msg[0] = 0;
		assert_int_equal(parse(texts[i]), -EBADMSG);
		assert_non_null(strstr(e.msg, "x: "));
	}
}

static void a_directory_without_a_summary_is_no_failure(void **state)
{
	assert_int_equal(run_scalars_read("/proc/self/nothing", &s, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_in_one_unit_each),
		cmocka_unit_test(what_a_run_does_not_say_is_no_zero),
		cmocka_unit_test(estimates_bring_their_intervals),
		cmocka_unit_test(a_run_whose_target_ended_says_so),
		cmocka_unit_test(what_is_no_summary_is_refused),
		cmocka_unit_test(a_directory_without_a_summary_is_no_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
