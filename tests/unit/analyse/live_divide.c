#include "analyse/live_divide.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void near_to(double got, double want)
{
	if (fabs(got - want) > 1e-6)
		fail_msg("%f, expected %f", got, want);
}

static void who_may_have_ended_gives_first(void **state)
{
	struct live_share s[2] = {
		{ .live = 100, .unsure = 400, .chance = 900 }, /* a cache */
		{ .live = 100, .chance = 900 },                /* a leak  */
	};

	live_divide(s, 2, 50);
	near_to(s[0].live, 50);
	near_to(s[1].live, 100);
	(void)state;
}

static void five_standard_errors_at_most_and_then_by_chance(void **state)
{
	struct live_share s[2] = {
		{ .live = 100, .unsure = 36, .chance = 300 },
		{ .live = 100, .chance = 100 },
	};

	live_divide(s, 2, 50);
	near_to(s[0].not_reused, 70);
	near_to(s[0].live, 55);
	near_to(s[1].live, 95);
	(void)state;
}

/* Blocks that were there before have weight 1: how many are there is no matter of chance. */
static void a_row_that_is_known_keeps_what_it_has(void **state)
{
	struct live_share s[2] = {
		{ .live = 1000, .unsure = 1 },
		{ .live = 100, .chance = 5000 },
	};

	live_divide(s, 2, -200);
	near_to(s[0].live, 1005);
	near_to(s[1].live, 295);
	(void)state;
}

static void no_row_has_less_than_nothing_and_others_give_the_rest(void **state)
{
	struct live_share s[2] = {
		{ .live = 10, .chance = 900 },
		{ .live = 100, .chance = 100 },
	};

	live_divide(s, 2, 60);
	near_to(s[0].live, 0);
	near_to(s[1].live, 50);
	(void)state;
}

static void where_nothing_is_unsure_nothing_is_divided(void **state)
{
	struct live_share s = { .live = 10 };

	live_divide(&s, 1, 5);
	near_to(s.live, 10);
	near_to(s.not_reused, 10);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_have_ended_gives_first),
		cmocka_unit_test(five_standard_errors_at_most_and_then_by_chance),
		cmocka_unit_test(a_row_that_is_known_keeps_what_it_has),
		cmocka_unit_test(no_row_has_less_than_nothing_and_others_give_the_rest),
		cmocka_unit_test(where_nothing_is_unsure_nothing_is_divided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
