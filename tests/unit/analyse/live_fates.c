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
	assert_int_equal(live_fates_sum(&f, 1, 40, 0, 1), 0);
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
	assert_int_equal(live_fates_sum(&f, 1, 1, 0, 1), 0);
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
		f.reused += f.ends[age] = f.watched[age] / 200;
	live_fates_next(&f, 0);
	assert_int_equal(live_fates_sum(&f, 1, 20, 0, 1), 0);
	for (int a = 2; a < 32; a *= 2)
		near_to(1 - live_fates_ended(&f, a), exp(-a / 10.0 + a / 200.0), 0.05);
	(void)state;
}

/* Ended ones go to a row whose blocks are seen again at once: hardly any end is missed. */
static void who_comes_next_decides_what_is_missed(void **state)
{
	struct live_fates rows[2] = { { .row = 1 }, { .row = 2 } };

	for (int n = 0; n < 1000; n++) {
		live_fates_watched(&rows[0], 16, 1);
		live_fates_seen(&rows[1], 0.01);
	}
	for (int age = 0; age < LIVE_AGES; age++)
		rows[0].reused += rows[0].ends[age] = rows[0].watched[age] / 200;
	live_fates_next(&rows[0], 1);
	live_fates_next(&rows[1], 1);
	assert_int_equal(live_fates_sum(rows, 2, 20, 0, 1), 0);
	near_to(live_fates_ended(&rows[0], 16), 0, 0.02);
	(void)state;
}

/* Addresses that nobody takes are found free by the next look: whoever is there then lives. */
static void where_looks_find_all_ends_nobody_in_use_has_ended(void **state)
{
	struct live_fates f = { 0 };

	for (int i = 0; i < 500; i++) {
		live_fates_gone(&f, i % 16, i % 16 + 4, (i % 10) / 10.0);
		live_fates_watched(&f, 20, 1);
	}
	assert_int_equal(live_fates_sum(&f, 1, 20, 0, 1), 0);
	near_to(live_fates_ended(&f, 16), 0, 0.02);
	(void)state;
}

/* Ended at any time since the look before, and not when it was found: a hundred that live 2 units. */
static void ends_that_a_look_finds_are_laid_between_it_and_the_one_before(void **state)
{
	struct live_fates f = { 0 };
	double early = 0;

	for (int i = 0; i < 100; i++)
		live_fates_gone(&f, 0, 8, (i + 0.5) / 100);
	for (int age = 0; age < 7; age++) /* up to 3 units */
		early += (double)f.ends[age];
	near_to(early, 3.0 / 8 * 100, 1);
	(void)state;
}

/* One class of the row was never seen to end by chance, and has hardly been watched. */
static void a_class_of_which_little_is_known_ends_as_its_row_does(void **state)
{
	struct live_fates f[2] = { { 0 }, { 0 } };

	for (int i = 0; i < 1000; i++)
		live_fates_seen(&f[0], 5);
	live_fates_watched(&f[1], 1, 1);
	assert_int_equal(live_fates_sum(f, 2, 20, 0, 1), 0);
	assert_true(f[0].unseen[9] < 0.2);
	near_to(f[1].unseen[9], f[0].unseen[9], 0.1);
	(void)state;
}

/* A pool's blocks end at once; in class 1 a leak takes their addresses, and keeps them. */
static void where_a_leak_takes_all_addresses_a_rows_other_classes_show_how_it_ends(void **state)
{
	struct live_fates f[3] = {
		{ .row = 1, .class = 0, .made = 1000 },
		{ .row = 1, .class = 1, .made = 500 },
		{ .row = 2, .class = 1, .made = 500 },
	};

	for (int i = 0; i < 1000; i++) {
		live_fates_seen(&f[0], 0.1);
		live_fates_next(&f[0], 0);
	}
	for (int i = 0; i < 500; i++) {
		live_fates_watched(&f[1], 20, 1);
		live_fates_watched(&f[2], 20, 1);
	}
	live_fates_seen(&f[1], 0.1);
	live_fates_next(&f[1], 2);
	assert_int_equal(live_fates_sum(f, 3, 1000, 0, 1), 0);
	near_to(live_fates_ended(&f[1], 20), 1, 0.02);
	near_to(live_fates_ended(&f[2], 20), 0, 1e-6);
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
		cmocka_unit_test(where_looks_find_all_ends_nobody_in_use_has_ended),
		cmocka_unit_test(ends_that_a_look_finds_are_laid_between_it_and_the_one_before),
		cmocka_unit_test(a_class_of_which_little_is_known_ends_as_its_row_does),
		cmocka_unit_test(
			where_a_leak_takes_all_addresses_a_rows_other_classes_show_how_it_ends),
		cmocka_unit_test(a_watch_can_be_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
