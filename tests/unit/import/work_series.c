#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "import/work_series.h"

#include <stdlib.h>
#include <time.h>

static void lines_of_csv_have_a_time_a_name_and_a_value(void **state)
{
	struct work_value v;

	setenv("TZ", "Europe/Rome", 1);
	tzset();
	assert_true(work_csv_line("1763719201,requests,42", &v));
	assert_true(v.time_s == 1763719201 && v.value == 42);
	assert_string_equal(v.name, "requests");
	assert_true(work_csv_line("1763719201250,requests,1e3\r", &v)); /* ms */
	assert_true(v.time_s == 1763719201.25 && v.value == 1000);
	assert_true(work_csv_line("2025-11-21 11:00:01,\"a, b\", 7", &v));
	assert_true(v.time_s == 1763719201);
	assert_string_equal(v.name, "a, b");
	assert_true(work_csv_line("2025-11-21T10:00:01.5Z,x,0", &v));
	assert_true(v.time_s == 1763719201);
	(void)state;
}

static void lines_of_prometheus_lose_their_labels(void **state)
{
	struct work_value v;

	assert_true(work_prometheus_line(
		"http_requests_total{code=\"200\",path=\"/a}b\\\"\"} 1027 1395066363000", &v));
	assert_string_equal(v.name, "http_requests_total");
	assert_true(v.value == 1027 && v.time_s == 0);
	assert_true(work_prometheus_line("go_goroutines 7", &v));
	assert_true(v.value == 7);
	assert_true(work_prometheus_line("a:b_c\t-1.5e-3", &v));
	assert_true(v.value == -0.0015);
	(void)state;
}

static void other_lines_say_nothing(void **state)
{
	static const char *const csv[] = { "",
					   "timestamp,name,value",
					   "1763719201,requests",
					   "1763719201,,1",
					   "1763719201,a,nan",
					   "1763719201,a,1,2",
					   "1763719201,\"a,1",
					   "-5,a,1",
					   "2025-11-21,a,1",
					   "1763719201,a,",
					   "0,a,1" };
	static const char *const text[] = {
		"",       "# TYPE a counter",     "a",    "a{b=\"c\" 1", "a NaN",
		"a +Inf", "a_bucket{le=\"1\"} 5", "1a 5", "a 1 2 3",     "a{} ",
		"a 5x"
	};
	struct work_value v;

	for (size_t i = 0; i < sizeof(csv) / sizeof(*csv); i++)
		if (work_csv_line(csv[i], &v))
			fail_msg("\"%s\" was taken", csv[i]);
	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
		if (work_prometheus_line(text[i], &v))
			fail_msg("\"%s\" was taken", text[i]);
	(void)state;
}

static void names_of_counters_are_known(void **state)
{
	assert_true(work_is_counter("cache_hits_total") && work_is_counter("x_count"));
	assert_false(work_is_counter("requests") || work_is_counter("_total"));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_csv_have_a_time_a_name_and_a_value),
		cmocka_unit_test(lines_of_prometheus_lose_their_labels),
		cmocka_unit_test(other_lines_say_nothing),
		cmocka_unit_test(names_of_counters_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
