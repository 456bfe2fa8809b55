#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "render/tables/cells.h"

static const char *text_of(struct sink *out)
{
	size_t len;

	return sink_memory(out, &len);
}

static void columns_are_as_wide_as_they_were_asked_for(void **state)
{
	_cleanup_(sink_closep) struct sink *out = NULL;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	cells_left(out, "blocked", 13);
	cells_right(out, "40.3 s", 10);
	cells_right(out, "80.6%", 9);
	assert_string_equal(text_of(out), "blocked          40.3 s    80.6%");
}

static void columns_never_touch_whatever_stands_in_them(void **state)
{
	_cleanup_(sink_closep) struct sink *out = NULL;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	cells_left(out, "counted more than once", 11);
	cells_right(out, "116.4 µs", 8);
	cells_right(out, "100.0%", 6);
	cells_left(out, "", 0);
	cells_left(out, "a word", 6);
	cells_left(out, "end", 3);
	assert_string_equal(text_of(out),
			    "counted more than once    116.4 µs  100.0%  a word  end  ");
}

static void characters_are_counted_and_not_bytes(void **state)
{
	_cleanup_(sink_closep) struct sink *out = NULL;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	cells_right(out, "12.3 µs", 10);
	cells_right(out, "± 7.0%", 10);
	assert_string_equal(text_of(out), "   12.3 µs    ± 7.0%");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_they_were_asked_for),
		cmocka_unit_test(columns_never_touch_whatever_stands_in_them),
		cmocka_unit_test(characters_are_counted_and_not_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
