/* What moments people may write, and which ones they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/moment.h"

#define NS 1000000000LL
/* 2026-11-23 03:00:00 in UTC+1 */
#define NOW (1795399200LL * NS)

static int setup(void **state)
{
	setenv("TZ", "XYZ-1", 1); /* an hour east of Greenwich */
	tzset();
	return 0;
}

static const char *at(const char *text)
{
	static struct moment_text t;
	int64_t ns;

	if (moment_parse(text, strlen(text), NOW, &ns) < 0)
		return "none";
	t = moment_text(ns);
	return t.s;
}

static const char *end_at(const char *from, const char *text)
{
	static struct moment_text t;
	int64_t ns, from_ns;

	assert_int_equal(moment_parse(from, strlen(from), NOW, &from_ns), 0);
	if (moment_parse_end(text, strlen(text), NOW, from_ns, &ns) < 0)
		return "none";
	t = moment_text(ns);
	return t.s;
}

static void dates_are_local_unless_they_name_a_zone(void **state)
{
	assert_string_equal(at("2026-11-22T19:50"), "2026-11-22T19:50:00");
	assert_string_equal(at("2026-11-22 19:50:30"), "2026-11-22T19:50:30");
	assert_string_equal(at("2026-11-22"), "2026-11-22T00:00:00");
	assert_string_equal(at("2026-11-22T19:50Z"), "2026-11-22T20:50:00");
	assert_string_equal(at("2026-11-22T19:50:10+02:00"), "2026-11-22T18:50:10");
	assert_string_equal(at("20261122-195000"), "2026-11-22T19:50:00");
	assert_string_equal(at("20261122-195000-2"), "2026-11-22T19:50:00");
	assert_string_equal(at("@1795373400"), "2026-11-22T19:50:00");
}

static void a_time_of_day_is_the_last_one_that_was(void **state)
{
	assert_string_equal(at("02:59"), "2026-11-23T02:59:00");
	assert_string_equal(at("19:50"), "2026-11-22T19:50:00");
	assert_string_equal(at("now"), "2026-11-23T03:00:00");
	assert_string_equal(at("-30m"), "2026-11-23T02:30:00");
	assert_string_equal(at("-1d"), "2026-11-22T03:00:00");
}

static void a_time_of_day_that_ends_a_stretch_is_the_first_after_its_begin(void **state)
{
	assert_string_equal(end_at("19:40", "20:00"), "2026-11-22T20:00:00");
	assert_string_equal(end_at("23:50", "00:10"), "2026-11-23T00:10:00");
	assert_string_equal(end_at("2026-11-20T23:50", "00:10"), "2026-11-21T00:10:00");
	assert_string_equal(end_at("02:00", "now"), "2026-11-23T03:00:00");
}

static void what_is_no_time_is_refused(void **state)
{
	static const char *const words[] = { "",
					     "19",
					     "25:00",
					     "19:50x",
					     "today",
					     "-30",
					     "2026-02-31",
					     "2026-11-22T19:50:10:1",
					     "@",
					     "@12x",
					     "-m",
					     "2026-11-22T19:50+9x",
					     "web",
					     "20261122",
					     "@99999999999999" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		assert_string_equal(at(words[i]), "none");
}

static void times_of_today_are_short(void **state)
{
	assert_string_equal(moment_short(NOW - 60 * NS, NOW).s, "02:59:00");
	assert_string_equal(moment_short(NOW - 7 * 3600 * NS, NOW).s, "2026-11-22 20:00:00");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates_are_local_unless_they_name_a_zone),
		cmocka_unit_test(a_time_of_day_is_the_last_one_that_was),
		cmocka_unit_test(a_time_of_day_that_ends_a_stretch_is_the_first_after_its_begin),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(times_of_today_are_short),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
