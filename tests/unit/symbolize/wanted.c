#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolize/wanted.h"

static const uint64_t asked[] = { 1, 5, 5, 9, UINT64_MAX };
static struct wanted w;

static int setup(void **state)
{
	return wanted_init(&w, asked, 5);
}

static int teardown(void **state)
{
	wanted_fini(&w);
	return 0;
}

static void an_address_belongs_to_whoever_came_first(void **state)
{
	assert_true(wanted_give(&w, 4, 2, 7));
	assert_true(wanted_give(&w, 0, 10, 8));
	assert_false(wanted_give(&w, 0, 10, 9));
	assert_int_equal(wanted_owner(&w, 1), 8);
	assert_int_equal(wanted_owner(&w, 5), 7);
	assert_int_equal(wanted_owner(&w, 9), 8);
	assert_int_equal(wanted_owner(&w, UINT64_MAX), 0);
	assert_int_equal(wanted_owner(&w, 2), 0);
}

static void ranges_are_half_open_and_may_reach_past_the_end(void **state)
{
	assert_false(wanted_any(&w, 2, 3));
	assert_true(wanted_any(&w, 2, 4));
	assert_false(wanted_any(&w, 5, 0));
	assert_true(wanted_give(&w, 9, UINT64_MAX, 3));
	assert_int_equal(wanted_owner(&w, 9), 3);
	assert_int_equal(wanted_owner(&w, UINT64_MAX), 3);
	assert_int_equal(wanted_owner(&w, 5), 0);
}

static void the_first_not_below_is_found(void **state)
{
	assert_int_equal(wanted_first(&w, 0), 0);
	assert_int_equal(wanted_first(&w, 2), 1);
	assert_int_equal(wanted_first(&w, 5), 1);
	assert_int_equal(wanted_first(&w, 10), 4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_address_belongs_to_whoever_came_first),
		TEST(ranges_are_half_open_and_may_reach_past_the_end),
		TEST(the_first_not_below_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
