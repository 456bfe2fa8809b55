/*
 * Arenas of CPython's made of bytes: sound, and as nobody's interpreter has made them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pymalloc_fixture.h"

static struct fake_memory fake;
static struct heap_use use;

static void put(uint64_t addr, uint64_t value, size_t len)
{
	fake_put(&fake, addr, value, len);
}

static int fresh(void **state)
{
	(void)state;
	py_init(&fake);
	use = (struct heap_use){ 0 };
	return 0;
}

static int done(void **state)
{
	(void)state;
	fake_fini(&fake);
	return 0;
}

static void again(void **state)
{
	done(state);
	fresh(state);
}

static void pools_are_split_into_what_is_in_use_and_what_is_free(void **state)
{
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
	assert_int_equal(use.arenas, 2);
	assert_int_equal(use.live.blocks, PY_COUNT + PY_BLOCKS);
	assert_int_equal(use.live.bytes, (PY_COUNT + PY_BLOCKS) * PY_SIZE);
	/* Of each pool the first page was touched. */
	assert_int_equal(use.live.resident, PY_COUNT * PY_SIZE + HEAP_PAGE - 48);
	assert_int_equal(use.cached.bytes, (PY_BLOCKS - PY_COUNT) * PY_SIZE);
	assert_int_equal(use.free.bytes, PY_POOL);
	assert_int_equal(use.top.bytes, (60 + 63) * PY_POOL);
	assert_int_equal(use.metadata.bytes, 2 * PY_POOL + 2 * (PY_POOL - PY_BLOCKS * PY_SIZE));
	assert_int_equal(use.unknown.bytes, 0);
	assert_null(use.caveat);
}

/* The free ones of the first pool, of which all but the last were used and freed: one leads to the next. */
static void chain(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		put(PY_FIRST + 48 + (5 + i) * (uint64_t)PY_SIZE,
		    i + 1 < n ? PY_FIRST + 48 + (6 + i) * (uint64_t)PY_SIZE : 0, 8);
}

static void blocks_that_are_in_no_chain_of_free_ones_are_listed_where_asked_for(void **state)
{
	struct heap_blocks blocks = { .max = 1000, .objects = true };

	chain(PY_TOUCHED - PY_COUNT);
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, &blocks), 0);
	assert_int_equal(blocks.n, PY_COUNT + PY_BLOCKS);
	assert_int_equal(blocks.n_unknown, 0);
	assert_int_equal(8 * blocks.all.words, use.live.bytes);
	for (uint64_t i = 0; i < blocks.n; i++)
		assert_false(blocks.rows[i].addr >= PY_FIRST + 48 + 5 * PY_SIZE &&
			     blocks.rows[i].addr < PY_FIRST + 48 + 15 * PY_SIZE);
	assert_int_equal(blocks.rows[4].addr, PY_FIRST + 48 + 4 * PY_SIZE);
	assert_int_equal(blocks.rows[5].addr, PY_FIRST + 48 + 15 * PY_SIZE);
	heap_blocks_free(&blocks);
	again(state);
	chain(PY_TOUCHED - PY_COUNT);
	blocks = (struct heap_blocks){ .max = 1000 };
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, &blocks), 0);
	assert_int_equal(blocks.n, 0);
}

static void pool_whose_chain_is_not_as_long_as_it_says_is_unknown(void **state)
{
	const uint64_t loop = PY_FIRST + 48 + 5 * (uint64_t)PY_SIZE;
	const uint64_t last[] = { loop, 0, 8, PY_FIRST + PY_POOL + 48, loop + 1 };

	for (size_t i = 0; i < sizeof(last) / sizeof(*last); i++) {
		struct heap_blocks blocks = { .max = 1000, .objects = true };

		chain(PY_TOUCHED - PY_COUNT - 1);
		put(PY_FIRST + 48 + 13 * (uint64_t)PY_SIZE, last[i], 8);
		assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, &blocks), 0);
		assert_int_equal(blocks.n, PY_BLOCKS);
		assert_int_equal(blocks.n_unknown, 1);
		assert_int_equal(blocks.unknown[0].from, PY_FIRST);
		heap_blocks_free(&blocks);
		again(state);
	}
}

static void pool_whose_numbers_do_not_fit_is_unknown(void **state)
{
	static const struct {
		uint64_t off, value;
		size_t len;
	} wrong[] = {
		{ 0, PY_BLOCKS - 1, 8 }, /* one is free, and none is next             */
		{ 0, PY_BLOCKS + 1, 8 },
		{ 8, PY_FIRST + PY_POOL + 49, 8 },
		{ 8, PY_FIRST + 48, 8 }, /* of another pool                           */
		{ 32, 2, 4 },
		{ 36, PY_CLASS + 1, 4 },
		{ 36, 0xffff, 4 },
		{ 36, 0xffffffff, 4 },
		{ 40, 0, 4 },
		{ 40, 48 + (PY_BLOCKS + 1) * PY_SIZE, 4 },
		{ 40, 48 + 3 * PY_SIZE + 8, 4 },
		{ 44, PY_POOL, 4 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		again(state);
		put(PY_FIRST + PY_POOL + wrong[i].off, wrong[i].value, wrong[i].len);
		assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
		assert_int_equal(use.unknown.bytes, PY_POOL);
		assert_int_equal(use.live.bytes, PY_COUNT * PY_SIZE);
		assert_non_null(use.caveat);
	}
}

/* The first pool of an arena gets another size, or was just taken from what was never used: the others stay. */
static void arena_whose_first_pool_is_given_out_is_walked(void **state)
{
	for (int i = 0; i < 2; i++) {
		put(PY_DATA + PY_USEDPOOLS + 16 * PY_CLASS, py_pool_at(1), 8);
		put(PY_DATA + PY_USEDPOOLS + 16 * PY_CLASS + 8, py_pool_at(1), 8);
		put(py_pool_at(0) + 36, 0xffff, 4);
		for (uint64_t at = 0; i == 1 && at < 48; at += 8)
			put(py_pool_at(0) + at, 0, 8);
		assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
		assert_int_equal(use.arenas, 2);
		assert_int_equal(use.live.blocks, PY_BLOCKS);
		assert_int_equal(use.unknown.bytes, PY_POOL);
		again(state);
	}
}

/* Those behind it are walked all the same. */
static void arena_that_is_unmapped_at_this_moment_is_left_out(void **state)
{
	(void)state;
	py_arena(&fake, 2, 0x7f5000000000, 0x7f5000000000 + 5 * PY_POOL, 64);
	put(PY_TABLE + 2 * 48 + 20, 64, 4);
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
	assert_int_equal(use.arenas, 2);
	assert_int_equal(use.unknown.bytes, 0);
}

static void assert_not_believed(void)
{
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), -ENOENT);
	assert_int_equal(use.live.blocks + use.unknown.blocks + use.top.bytes, 0);
}

static void table_that_does_not_have_the_pool_is_not_believed(void **state)
{
	py_arena(&fake, 1, PY_AT, PY_FIRST, 63); /* the pool was never used */
	assert_not_believed();
	py_arena(&fake, 1, PY_AT + PY_ARENA, py_pool_at(3), 61);
	assert_not_believed();
	py_arena(&fake, 1, PY_AT, py_pool_at(64), 0); /* behind the arena */
	assert_not_believed();
	py_arena(&fake, 1, PY_AT, py_pool_at(3), 64);
	assert_not_believed();
	again(state);
	put(PY_FIRST + 32, 0xffffffff, 4);
	assert_not_believed();
}

static void pools_that_do_not_point_back_are_not_believed(void **state)
{
	put(PY_FIRST + 24, py_head(PY_CLASS), 8);
	assert_not_believed();
	again(state);
	put(py_head(9), py_head(9), 8); /* one of the 32 lists is none */
	assert_not_believed();
}

static void interpreter_that_takes_all_from_malloc_has_none(void **state)
{
	put(py_head(PY_CLASS), py_head(PY_CLASS) - 16, 8);
	put(py_head(PY_CLASS) + 8, py_head(PY_CLASS) - 16, 8);
	assert_not_believed();
}

static void table_that_was_left_behind_this_one_is_not_counted_again(void **state)
{
	/* Its row 1 is our row 5, and has the same pools. */
	py_arena(&fake, 5, PY_AT, py_pool_at(3), 61);
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
	assert_int_equal(use.arenas, 2);
	assert_int_equal(use.live.blocks, PY_COUNT + PY_BLOCKS);
}

/* What was found is checked, and searched for again where it is not any more. */
static void variables_found_before_are_not_searched_for_again(void **state)
{
	struct heap_found found = { 0 }, right;
	uint64_t searched;

	(void)state;
	fake.mem.found = &found;
	fake.reads = 0;
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
	searched = fake.reads;
	assert_true(found.py_pools && found.py_arenas);
	right = found;
	use = (struct heap_use){ 0 };
	fake.reads = 0;
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
	assert_int_equal(use.live.blocks, PY_COUNT + PY_BLOCKS);
	assert_true(fake.reads < searched);
	for (int i = 0; i < 4; i++) {
		found = right;
		*(i % 2 ? &found.py_pools : &found.py_arenas) += i / 2 ? 8 : 1ULL << 60;
		use = (struct heap_use){ 0 };
		assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
		assert_int_equal(use.live.blocks, PY_COUNT + PY_BLOCKS);
		assert_memory_equal(&found, &right, sizeof(found));
	}
}

/* Another interpreter's: usedpools, behind it the table, an arena of one pool with three blocks. */
enum { OWN_POOLS = 2048, OWN_TABLE = 4096, OWN_ARENA = 8192, OWN_BLOCKS = 3 };
#define OWN_AT 0x7f7000000000ULL

static void put_own(void)
{
	uint64_t pools = OWN_AT + OWN_POOLS, arena = OWN_AT + OWN_ARENA;
	uint64_t pool = (arena + PY_POOL - 1) & ~(PY_POOL - 1ULL), row = OWN_AT + OWN_TABLE + 48;

	fake_map(&fake, OWN_AT, OWN_ARENA + PY_ARENA, OWN_ARENA + 4 * PY_POOL, HEAP_MAP_ANON);
	for (uint64_t i = 0; i < 32; i++)
		for (uint64_t k = 0; k < 16; k += 8)
			fake_word(&fake, pools + 16 * i + k,
				  i == PY_CLASS ? pool : pools + 16 * i - 16);
	fake_word(&fake, pools + 512, OWN_AT + OWN_TABLE);
	fake_word(&fake, row, arena);
	fake_word(&fake, row + 8, pool + PY_POOL);
	fake_put(&fake, row + 16, 62, 4);
	fake_put(&fake, row + 20, 63, 4);
	py_pool(&fake, pool, OWN_BLOCKS, pool + 48 + OWN_BLOCKS * PY_SIZE, OWN_BLOCKS + 1);
	fake_word(&fake, pool + 16, pools + 16 * PY_CLASS - 16);
	fake_word(&fake, pool + 24, pools + 16 * PY_CLASS - 16);
}

static void interpreters_with_a_lock_of_their_own_have_pools_of_their_own(void **state)
{
	struct heap_blocks blocks = { .max = 1000, .objects = true };
	struct heap_found found = { 0 };

	fake.mem.found = &found;
	put_own();
	found.n_py_interp = 1;
	/* In its state; where a word of its state leads; and in the first one's, which has none of its own. */
	for (int i = 0; i < 3; i++) {
		found.py_interp[0] = i == 0 ? OWN_AT : i == 1 ? PY_TABLE + 2040 : PY_DATA;
		fake_word(&fake, PY_TABLE + 2040 + 64, i == 1 ? OWN_AT + OWN_POOLS : 0);
		use = (struct heap_use){ 0 };
		heap_blocks_clear(&blocks);
		blocks.max = 1000;
		assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, &blocks), 0);
		assert_int_equal(use.arenas, i == 2 ? 2 : 3);
		/* Of the pool that has free ones no chain is laid out. */
		assert_int_equal(blocks.n, PY_BLOCKS + (i == 2 ? 0 : OWN_BLOCKS));
		assert_int_equal(use.unknown.bytes, 0);
	}
	/* What counts alone does not look for them. */
	use = (struct heap_use){ 0 };
	found.py_interp[0] = OWN_AT;
	assert_int_equal(heap_walk_pymalloc(&fake.mem, &use, NULL), 0);
	assert_int_equal(use.arenas, 2);
	heap_blocks_free(&blocks);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			interpreters_with_a_lock_of_their_own_have_pools_of_their_own, fresh, done),
		cmocka_unit_test_setup_teardown(variables_found_before_are_not_searched_for_again,
						fresh, done),
		cmocka_unit_test_setup_teardown(
			pools_are_split_into_what_is_in_use_and_what_is_free, fresh, done),
		cmocka_unit_test_setup_teardown(
			blocks_that_are_in_no_chain_of_free_ones_are_listed_where_asked_for, fresh,
			done),
		cmocka_unit_test_setup_teardown(
			pool_whose_chain_is_not_as_long_as_it_says_is_unknown, fresh, done),
		cmocka_unit_test_setup_teardown(pool_whose_numbers_do_not_fit_is_unknown, fresh,
						done),
		cmocka_unit_test_setup_teardown(arena_that_is_unmapped_at_this_moment_is_left_out,
						fresh, done),
		cmocka_unit_test_setup_teardown(arena_whose_first_pool_is_given_out_is_walked,
						fresh, done),
		cmocka_unit_test_setup_teardown(table_that_does_not_have_the_pool_is_not_believed,
						fresh, done),
		cmocka_unit_test_setup_teardown(pools_that_do_not_point_back_are_not_believed,
						fresh, done),
		cmocka_unit_test_setup_teardown(interpreter_that_takes_all_from_malloc_has_none,
						fresh, done),
		cmocka_unit_test_setup_teardown(
			table_that_was_left_behind_this_one_is_not_counted_again, fresh, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
