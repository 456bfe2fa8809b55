#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/counts.h"

static void what_takes_longest_comes_first_and_what_was_not_called_last(void **state)
{
	struct count_row rows[] = {
		{ .function = "never" },
		{ .function = "often", .calls = 900, .outer_ns = 5 },
		{ .function = "long", .calls = 2, .outer_ns = 700, .ns = 700 },
		/* Its time is that of its outermost calls. */
		{ .function = "recursive", .calls = 800, .outer_ns = 6, .ns = 100000 },
		{ .function = "untimed", .calls = 3 },
	};

	(void)state;
	counts_rank(rows, 5);
	assert_string_equal(rows[0].function, "long");
	assert_string_equal(rows[1].function, "recursive");
	assert_string_equal(rows[2].function, "often");
	assert_string_equal(rows[3].function, "untimed");
	assert_string_equal(rows[4].function, "never");
}

static void calls_of_which_nothing_is_known_are_the_rest(void **state)
{
	struct count_row row = { .calls = 10, .returned = 5, .left = 2, .open = 1 };

	(void)state;
	assert_int_equal(count_unseen(&row), 2);
	row.lost = 2;
	assert_int_equal(count_unseen(&row), 0);
	row.open = 9; /* some began before they were counted */
	assert_int_equal(count_unseen(&row), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_takes_longest_comes_first_and_what_was_not_called_last),
		cmocka_unit_test(calls_of_which_nothing_is_known_are_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
