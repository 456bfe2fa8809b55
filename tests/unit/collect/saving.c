#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/saving.h"

static struct saving saving_of(double limit)
{
	return (struct saving){ .limit = limit, .most = 4 };
}

/* Returns how many times something changed. */
static uint32_t decide(struct saving *s, double percent, uint32_t times)
{
	uint32_t changes = 0;

	while (times--)
		changes += saving_decide(s, percent);
	return changes;
}

static void below_the_limit_nothing_is_left_out(void **state)
{
	struct saving s = saving_of(1);

	(void)state;
	assert_int_equal(decide(&s, 0.75, 100000), 0);
	assert_int_equal(s.made, 0);
}

static void beyond_it_one_saving_a_minute_is_made_until_there_are_no_more(void **state)
{
	struct saving s = saving_of(1);

	(void)state;
	assert_int_equal(decide(&s, 5, SAVING_AGREE - 1), 0);
	for (uint32_t n = 1; n <= 4; n++) {
		assert_int_equal(decide(&s, 5, n == 1 ? 1 : SAVING_AGREE), 1);
		assert_int_equal(s.made, n);
	}
	assert_int_equal(decide(&s, 5, 1000), 0);
	assert_int_equal(s.made, 4);
}

static void a_moment_is_no_reason(void **state)
{
	struct saving s = saving_of(1);

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(decide(&s, 50, SAVING_AGREE - 1), 0);
		assert_int_equal(decide(&s, 0.5, 1), 0);
	}
}

/* The mean of a minute has a burst in it for a minute; then there is room until the next one. */
static void between_two_bursts_nothing_is_taken_back(void **state)
{
	struct saving s = saving_of(1);

	(void)state;
	s.burst = 480;
	decide(&s, 5, 2 * SAVING_AGREE);
	assert_int_equal(s.made, 2);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(decide(&s, 0.3, 480 - SAVING_AGREE), 0);
		assert_int_equal(decide(&s, 0.7, SAVING_AGREE), 0);
	}
	assert_int_equal(decide(&s, 0.3, 480 + SAVING_AGREE - 1), 0);
	assert_int_equal(decide(&s, 0.3, 1), 1);
	assert_int_equal(s.made, 1);
}

static void what_is_well_below_takes_them_back_one_by_one(void **state)
{
	struct saving s = saving_of(1);

	(void)state;
	decide(&s, 5, 2 * SAVING_AGREE);
	assert_int_equal(s.made, 2);
	assert_int_equal(decide(&s, 0.5, 1000), 0);
	assert_int_equal(decide(&s, 0.3, SAVING_AGREE), 1);
	assert_int_equal(s.made, 1);
	assert_int_equal(decide(&s, 0.3, 10 * SAVING_AGREE), 1);
	assert_int_equal(s.made, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below_the_limit_nothing_is_left_out),
		cmocka_unit_test(beyond_it_one_saving_a_minute_is_made_until_there_are_no_more),
		cmocka_unit_test(a_moment_is_no_reason),
		cmocka_unit_test(between_two_bursts_nothing_is_taken_back),
		cmocka_unit_test(what_is_well_below_takes_them_back_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
