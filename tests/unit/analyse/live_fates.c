#include "analyse/live_fates.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void near_to(double got, double want, double tolerance)
{
	if (fabs(got - want) > tolerance)
		fail_msg("%f, expected %f", got, want);
}

static void a_block_of_a_row_that_never_ended_lives(void **state)
{
	struct live_fates f = { 0 };

	for (int i = 0; i < 100; i++)
		live_fates_watched(&f, 50, 1);
	live_fates_sum(&f, 1, 40, 0, 1);
	near_to(live_fates_ended(&f, 50), 0, 1e-9);
	(void)state;
}

/* Each address is seen again one time in 1,000: all ends are seen, and whoever is there lives. */
static void what_is_always_seen_leaves_nothing_unseen(void **state)
{
	struct live_fates f = { 0 };

	for (int i = 0; i < 1000; i++)
		live_fates_seen(&f, 3);
	live_fates_next(&f, 0);
	live_fates_sum(&f, 1, 1, 0, 1);
	near_to(live_fates_ended(&f, 2), 0, 1e-9);
	(void)state;
}

/*
 * Blocks that live for an exponential time of mean 10 units, and whose addresses go to others of the same
 * row: allocations at an address are a Poisson process, of which one in 20 is seen. So ends are seen at a rate
 * of 1/200, and a block of which none was seen for a units lives with exp(-a/10 + a/200).
 */
static void reuse_by_the_row_itself_is_a_renewal_process(void **state)
{
	struct live_fates f = { 0 };

	for (int i = 0; i < 64; i++)
		for (int n = 0; n < 1000; n++)
			live_fates_watched(&f, i + 0.5, 1);
	for (int age = 0; age < LIVE_AGES; age++)
		f.ends[age] = f.watched[age] / 200;
	live_fates_next(&f, 0);
	live_fates_sum(&f, 1, 20, 0, 1);
	for (int a = 2; a < 32; a *= 2)
		near_to(1 - live_fates_ended(&f, a), exp(-a / 10.0 + a / 200.0), 0.05);
	(void)state;
}

/* Ended ones go to a row whose blocks are seen again at once: hardly any end is missed. */
static void who_comes_next_decides_what_is_missed(void **state)
{
	struct live_fates rows[2] = { 0 };

	for (int n = 0; n < 1000; n++) {
		live_fates_watched(&rows[0], 16, 1);
		live_fates_seen(&rows[1], 0.01);
	}
	for (int age = 0; age < LIVE_AGES; age++)
		rows[0].ends[age] = rows[0].watched[age] / 200;
	live_fates_next(&rows[0], 1);
	live_fates_next(&rows[1], 1);
	live_fates_sum(rows, 2, 20, 0, 1);
	near_to(live_fates_ended(&rows[0], 16), 0, 0.02);
	(void)state;
}

static void a_watch_can_be_taken_back(void **state)
{
	struct live_fates f = { 0 }, none = { 0 };

	live_fates_watched(&f, 13.5, 1);
	live_fates_watched(&f, 13.5, -1);
	assert_memory_equal(f.watched, none.watched, sizeof(f.watched));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_of_a_row_that_never_ended_lives),
		cmocka_unit_test(what_is_always_seen_leaves_nothing_unseen),
		cmocka_unit_test(reuse_by_the_row_itself_is_a_renewal_process),
		cmocka_unit_test(who_comes_next_decides_what_is_missed),
		cmocka_unit_test(a_watch_can_be_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
