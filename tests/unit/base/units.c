#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"

static void bytes_count_in_1024_and_say_so(void **state)
{
	assert_string_equal(unit_bytes(0).s, "0 B");
	assert_string_equal(unit_bytes(1023).s, "1,023 B");
	assert_string_equal(unit_bytes(1024).s, "1.0 KiB");
	assert_string_equal(unit_bytes(1536).s, "1.5 KiB");
	assert_string_equal(unit_bytes(12898533).s, "12.3 MiB");
	assert_string_equal(unit_bytes(-1536).s, "-1.5 KiB");
	assert_string_equal(unit_bytes(INT64_MAX).s, "8.0 EiB");
	assert_string_equal(unit_bytes(INT64_MIN).s, "-8.0 EiB");
}

static void rounding_up_to_the_next_unit_takes_its_name(void **state)
{
	assert_string_equal(unit_bytes((1 << 20) - 1).s, "1.0 MiB");
	assert_string_equal(unit_bytes((1 << 20) - 60).s, "1,023.9 KiB");
	assert_string_equal(unit_ns(999949).s, "999.9 µs");
	assert_string_equal(unit_ns(999951).s, "1.0 ms");
}

static void ends_of_an_interval_differ(void **state)
{
	(void)state;
	assert_string_equal(unit_bytes_range(1024, 2048, false).s, "1.0 KiB to 2.0 KiB");
	assert_string_equal(unit_bytes_range(-5, 1048576, true).s, "-5 B to +1.0 MiB");
	assert_string_equal(unit_bytes_range(1150000, 1150900, false).s, "1.097 MiB to 1.098 MiB");
	assert_string_equal(unit_bytes_range(-2000000, -1999000, true).s,
			    "-1.907 MiB to -1.906 MiB");
	assert_string_equal(unit_bytes_range((1LL << 40) + 1, (1LL << 40) + 2, false).s,
			    "1.000000000001 TiB to 1.000000000002 TiB");
	assert_string_equal(unit_bytes_range(INT64_MAX - 1, INT64_MAX, false).s,
			    "7.999999999999999998 EiB to 7.999999999999999999 EiB");
	assert_string_equal(unit_bytes_range(2048, 2048, true).s, "+2.0 KiB ± <1 B");
	assert_string_equal(unit_bytes_range(0, 0, true).s, "+0 B ± <1 B");
}

static void durations_are_decimal_and_stop_at_seconds(void **state)
{
	assert_string_equal(unit_ns(950).s, "950 ns");
	assert_string_equal(unit_ns(12345).s, "12.3 µs");
	assert_string_equal(unit_ns(4500000).s, "4.5 ms");
	assert_string_equal(unit_ns(1234500000000).s, "1,234.5 s");
	assert_string_equal(unit_ns(-1500).s, "-1.5 µs");
}

static void counts_are_grouped_by_thousands(void **state)
{
	assert_string_equal(unit_count(0).s, "0");
	assert_string_equal(unit_count(999).s, "999");
	assert_string_equal(unit_count(1000).s, "1,000");
	assert_string_equal(unit_count(-1234567).s, "-1,234,567");
	assert_string_equal(unit_count(INT64_MIN).s, "-9,223,372,036,854,775,808");
}

static void percent_tells_little_from_nothing(void **state)
{
	assert_string_equal(unit_percent(123, 1000).s, "12.3%");
	assert_string_equal(unit_percent(0, 1000).s, "0.0%");
	assert_string_equal(unit_percent(1, 1000000).s, "<0.1%");
	assert_string_equal(unit_percent(-1, 1000000).s, ">-0.1%");
	assert_string_equal(unit_percent(-1, 4).s, "-25.0%");
	assert_string_equal(unit_percent(1, 0).s, "-");
	assert_string_equal(unit_percent(30, 10).s, "300.0%");
	assert_string_equal(unit_percent(INT64_MAX, INT64_MAX).s, "100.0%");
}

static void values_follow_the_units_of_pprof(void **state)
{
	assert_string_equal(unit_value(2500, "nanoseconds").s, "2.5 µs");
	assert_string_equal(unit_value(1536000, "byte-milliseconds").s, "1.5 KiB·s");
	assert_string_equal(unit_value(2500, "microseconds").s, "2.5 ms");
	assert_string_equal(unit_value(2048, "bytes").s, "2.0 KiB");
	assert_string_equal(unit_value(2048, "count").s, "2,048");
	assert_string_equal(unit_value(2048, "gCO2").s, "2,048 gCO2");
	/* It would not fit in nanoseconds: shown as it came. */
	assert_string_equal(unit_value(INT64_MAX, "seconds").s,
			    "9,223,372,036,854,775,807 seconds");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_count_in_1024_and_say_so),
		cmocka_unit_test(rounding_up_to_the_next_unit_takes_its_name),
		cmocka_unit_test(ends_of_an_interval_differ),
		cmocka_unit_test(durations_are_decimal_and_stop_at_seconds),
		cmocka_unit_test(counts_are_grouped_by_thousands),
		cmocka_unit_test(percent_tells_little_from_nothing),
		cmocka_unit_test(values_follow_the_units_of_pprof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
