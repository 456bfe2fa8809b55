#include "proc/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_line_says_what_is_mapped_there(void **state)
{
	char out[PLACE_MAX];

	(void)state;
	assert_true(
		place_in_line("55d0-5700 rw-p 00000000 00:00 0                          [heap]\n",
			      0x56ff, out, sizeof(out)));
	assert_string_equal(out, "[heap]");
	assert_true(
		place_in_line("7f00-7f10 rw-p 00001000 fe:00 123  /usr/lib/lib with spaces.so.1\n",
			      0x7f00, out, sizeof(out)));
	assert_string_equal(out, "lib with spaces.so.1");
	assert_true(place_in_line("7f00-7f10 rw-p 00000000 00:00 0 \n", 0x7f00, out, sizeof(out)));
	assert_string_equal(out, "[anonymous]");
	assert_false(place_in_line("7f00-7f10 rw-p 00000000 00:00 0 \n", 0x7f10, out, sizeof(out)));
	assert_false(place_in_line("nonsense\n", 0, out, sizeof(out)));
	assert_false(place_in_line("", 0, out, sizeof(out)));
}

static void addresses_of_this_process_are_found(void **state)
{
	char out[PLACE_MAX];
	int local = 0;

	(void)state;
	assert_true(place_of_address(getpid(), (uintptr_t)&local, out, sizeof(out)));
	assert_string_equal(out, "[stack]");
	assert_true(place_of_address(getpid(), (uintptr_t)addresses_of_this_process_are_found, out,
				     sizeof(out)));
	assert_string_equal(out, "place");
	assert_false(place_of_address(getpid(), 8, out, sizeof(out)));
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_says_what_is_mapped_there),
		cmocka_unit_test(addresses_of_this_process_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
