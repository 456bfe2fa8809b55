/*
 * Who has which words of the pool: nothing overlaps, nothing is lost, and nothing is given away while a
 * walk may read it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/pool.h"

#include <errno.h>
#include <stdlib.h>

#define UNITS 160 /* of which a 16th, 10, is kept from tables */
#define SEC   1000000000ULL

static struct pool pool;

static int setup(void **state)
{
	(void)state;
	return pool_init(&pool, UNITS);
}

static int teardown(void **state)
{
	(void)state;
	pool_fini(&pool);
	return 0;
}

/* The extents cover the pool, one behind the other, and add up. */
static void check_whole(void)
{
	uint32_t at = 0, used[4] = { 0 };

	for (uint32_t i = 0; i < pool.n; i++) {
		assert_int_equal(pool.extents[i].at, at);
		assert_true(pool.extents[i].len > 0);
		at += pool.extents[i].len;
		used[pool.extents[i].use] += pool.extents[i].len;
	}
	assert_int_equal(at, UNITS);
	for (int use = 0; use < 4; use++)
		assert_int_equal(used[use], pool.used[use]);
}

static uint32_t take(enum pool_use use, uint32_t owner, uint32_t len)
{
	uint32_t at = UINT32_MAX;

	assert_int_equal(pool_take(&pool, use, owner, len, &at), 0);
	check_whole();
	return at;
}

static void words_are_rounded_up_to_units(void **state)
{
	(void)state;
	assert_int_equal(pool_units(0), 0);
	assert_int_equal(pool_units(1), 1);
	assert_int_equal(pool_units(MS_SPAN_WORDS), 1);
	assert_int_equal(pool_units(MS_SPAN_WORDS + 1), 2);
	assert_int_equal(pool_units(UINT64_MAX), UINT32_MAX / MS_SPAN_WORDS);
}

static void tables_come_from_the_bottom_and_spans_from_the_top(void **state)
{
	(void)state;
	assert_int_equal(take(POOL_TABLE, 1, 20), 0);
	assert_int_equal(take(POOL_TABLE, 2, 20), 20);
	assert_int_equal(take(POOL_SPANS, 3, 4), UNITS - 4);
	assert_int_equal(take(POOL_SPANS, 4, 4), UNITS - 8);
}

static void tables_leave_a_16th_to_spans(void **state)
{
	uint32_t at;

	(void)state;
	assert_int_equal(pool_largest(&pool), 150);
	assert_int_equal(pool_take(&pool, POOL_TABLE, 1, 151, &at), -ENOSPC);
	assert_int_equal(take(POOL_TABLE, 1, 150), 0);
	assert_int_equal(pool_take(&pool, POOL_TABLE, 2, 1, &at), -ENOSPC);
	assert_int_equal(take(POOL_SPANS, 3, 10), 150);
}

static void what_is_given_back_waits_until_no_walk_can_read_it(void **state)
{
	uint32_t at;

	(void)state;
	take(POOL_TABLE, 1, 150);
	pool_give_back(&pool, 0, 5 * SEC);
	check_whole();
	pool_reap(&pool, 5 * SEC + MS_POOL_GRACE_NS - 1);
	assert_int_equal(pool_take(&pool, POOL_TABLE, 2, 1, &at), -ENOSPC);
	pool_reap(&pool, 5 * SEC + MS_POOL_GRACE_NS);
	assert_int_equal(take(POOL_TABLE, 2, 150), 0);
}

static void free_neighbours_become_one(void **state)
{
	(void)state;
	take(POOL_TABLE, 1, 50);
	take(POOL_TABLE, 2, 50);
	take(POOL_TABLE, 3, 50);
	pool_give_back(&pool, 50, 1 * SEC);
	pool_give_back(&pool, 0, 2 * SEC);
	pool_give_back(&pool, 100, 3 * SEC);
	pool_reap(&pool, 100 * SEC);
	assert_int_equal(pool.n, 1);
	assert_int_equal(pool.used[POOL_FREE], UNITS);
	assert_int_equal(take(POOL_TABLE, 4, 150), 0);
}

/* Of 30 and of 20 free units, a table of 15 takes the 20: the 30 stay whole. */
static void a_table_takes_the_smallest_place_that_is_large_enough(void **state)
{
	(void)state;
	take(POOL_TABLE, 1, 30);
	take(POOL_TABLE, 2, 40);
	take(POOL_TABLE, 3, 20);
	take(POOL_TABLE, 4, 60);
	pool_give_back(&pool, 0, 0);
	pool_give_back(&pool, 70, 0);
	pool_reap(&pool, 10 * SEC);
	assert_int_equal(take(POOL_TABLE, 5, 15), 70);
	assert_int_equal(take(POOL_TABLE, 6, 30), 0);
}

static uint64_t cost_by_owner(void *ctx, uint32_t owner)
{
	return ((const uint64_t *)ctx)[owner];
}

static void room_is_made_where_the_dearest_table_is_cheapest(void **state)
{
	uint64_t costs[] = { 0, 9, 2, 3, 8 };
	uint32_t from, to;
	bool waits;

	(void)state;
	take(POOL_TABLE, 1, 40);
	take(POOL_TABLE, 2, 30);
	take(POOL_TABLE, 3, 30);
	take(POOL_TABLE, 4, 50);
	assert_int_equal(pool_window(&pool, 50, cost_by_owner, costs, &from, &to, &waits), 0);
	assert_int_equal(from, 1);
	assert_int_equal(to, 3);
	assert_false(waits);
}

static void no_table_has_to_go_where_what_waits_is_enough(void **state)
{
	uint64_t costs[] = { 0, 0, 0 };
	uint32_t from, to;
	bool waits;

	(void)state;
	take(POOL_TABLE, 1, 100);
	take(POOL_TABLE, 2, 50);
	pool_give_back(&pool, 0, 1 * SEC);
	assert_int_equal(pool_window(&pool, 80, cost_by_owner, costs, &from, &to, &waits), 0);
	assert_int_equal(from, 0);
	assert_true(waits);
}

static void spans_are_never_in_the_way_that_is_made(void **state)
{
	uint64_t costs[] = { 0, 0, 0 };
	uint32_t from, to;
	bool waits;

	(void)state;
	take(POOL_TABLE, 1, 60);
	take(POOL_SPANS, 2, 40); /* at 120 … 160: below the ceiling, too */
	assert_int_equal(pool_window(&pool, 121, cost_by_owner, costs, &from, &to, &waits),
			 -ENOSPC);
	assert_int_equal(pool_window(&pool, 120, cost_by_owner, costs, &from, &to, &waits), 0);
}

/* 20,000 steps of all kinds: whole after each, and all of it free at the end. */
static void no_unit_is_lost_whatever_comes_and_goes(void **state)
{
	uint32_t at[64], n = 0, seed = 1;
	uint64_t now = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		now += SEC / 8;
		if (n < 64 && (seed >> 16) % 3) {
			enum pool_use use = (seed >> 20) % 4 ? POOL_TABLE : POOL_SPANS;

			n += pool_take(&pool, use, n, 1 + (seed >> 24) % 20, &at[n]) == 0;
		} else if (n) {
			uint32_t which = (seed >> 18) % n;

			pool_give_back(&pool, at[which], now);
			at[which] = at[--n];
		}
		pool_reap(&pool, now);
		check_whole();
	}
	while (n)
		pool_give_back(&pool, at[--n], now);
	pool_reap(&pool, now + 2 * MS_POOL_GRACE_NS);
	assert_int_equal(pool.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_rounded_up_to_units),
		cmocka_unit_test_setup_teardown(tables_come_from_the_bottom_and_spans_from_the_top,
						setup, teardown),
		cmocka_unit_test_setup_teardown(tables_leave_a_16th_to_spans, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_given_back_waits_until_no_walk_can_read_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(free_neighbours_become_one, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_table_takes_the_smallest_place_that_is_large_enough, setup, teardown),
		cmocka_unit_test_setup_teardown(room_is_made_where_the_dearest_table_is_cheapest,
						setup, teardown),
		cmocka_unit_test_setup_teardown(no_table_has_to_go_where_what_waits_is_enough,
						setup, teardown),
		cmocka_unit_test_setup_teardown(spans_are_never_in_the_way_that_is_made, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_unit_is_lost_whatever_comes_and_goes, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
