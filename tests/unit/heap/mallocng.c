/*
 * Groups of musl made of bytes: sound, and as nobody's musl has made them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mallocng_fixture.h"

static struct fake_memory fake;
static struct heap_use use;
static struct heap_blocks blocks;

static int fresh(void **state)
{
	(void)state;
	ng_init(&fake);
	blocks = (struct heap_blocks){ .max = 1 << 16, .wants_parts = true };
	return 0;
}

static int done(void **state)
{
	(void)state;
	heap_blocks_free(&blocks);
	fake_fini(&fake);
	return 0;
}

static int walk(void)
{
	return fake_walk(&fake, heap_walk_mallocng, "musl", &use, &blocks);
}

static void slots_in_neither_mask_are_in_use_with_the_size_asked_for(void **state)
{
	(void)state;
	assert_int_equal(walk(), 0);
	/* Five, and three in the group that lies in the sixth. */
	assert_int_equal(use.live.blocks, 8);
	assert_int_equal(use.free.blocks, 4 + 1);
	assert_int_equal(use.unknown.blocks, 0);
	assert_int_equal(blocks.n, 8);
	assert_int_equal(blocks.rows[0].addr, ng_slot(0));
	/* 572 bytes of a slot are a block's; its size is rounded up to words. */
	assert_int_equal(8 * blocks.rows[0].words, 576);
	assert_int_equal(8 * blocks.rows[3].words, (576 - 4 - 3 + 7) & ~7);
	assert_int_equal(blocks.rows[4].addr, ng_slot(4) + 16);
	assert_int_equal(8 * blocks.rows[4].words, 32);
	assert_true(fake_blocks_lie_apart(&fake, &blocks, 0));
}

static void what_is_held_adds_up_to_the_group_and_its_area(void **state)
{
	(void)state;
	assert_int_equal(walk(), 0);
	/* Of the slot that holds a group, what that group does not take is nobody's. */
	assert_int_equal(use.live.bytes + use.free.bytes + use.metadata.bytes,
			 NG_LEN + HEAP_PAGE - (NG_STRIDE - 16 - NG_INNER_SLOTS * 32));
}

static void large_spare_room_stands_at_the_end_of_the_slot(void **state)
{
	(void)state;
	ng_header(&fake, ng_slot(1), 1, 5);
	fake_put(&fake, ng_slot(1) + NG_STRIDE - 4 - 4, 400, 4);
	assert_int_equal(walk(), 0);
	assert_int_equal(8 * blocks.rows[1].words, (NG_STRIDE - 4 - 400 + 7) & ~7);
}

static void block_may_begin_behind_its_slot(void **state)
{
	(void)state;
	ng_header(&fake, ng_slot(2), 0, 7);
	fake_put(&fake, ng_slot(2) - 2, 3, 2);
	ng_header(&fake, ng_slot(2) + 48, 2, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(blocks.rows[2].addr, ng_slot(2) + 48);
	assert_int_equal(8 * blocks.rows[2].words, NG_STRIDE - 48);
}

static void large_block_has_a_mapping_of_its_own(void **state)
{
	(void)state;
	ng_fill_meta(&fake, 0, NG_GROUP, 0, 0, 63 << 6 | 2 << 12);
	fake_word(&fake, ng_meta(1) + 16, 0);
	ng_header(&fake, ng_slot(0), 0, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(blocks.n, 1);
	assert_int_equal(8 * blocks.rows[0].words, NG_LEN - 16);
	assert_int_equal(use.mapped.blocks, 1);
	assert_int_equal(heap_blocks_owner(&blocks, blocks.rows[0].owner)->arena, HEAP_NO_ARENA);
}

static void slot_whose_numbers_do_not_fit_is_unknown(void **state)
{
	(void)state;
	ng_header(&fake, ng_slot(1), 1, 5);
	fake_put(&fake, ng_slot(1) + NG_STRIDE - 8, 100000, 4);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.unknown.blocks, 1);
	assert_int_equal(blocks.n_unknown, 1);
	assert_non_null(use.caveat);
}

static void metas_that_do_not_fit_are_not_believed(void **state)
{
	static const struct {
		uint32_t avail, freed;
		uint64_t bits;
	} wrong[] = {
		{ 1, 1, 9 | 16 << 6 | 2 << 12 },       /* free twice                    */
		{ 1 << 12, 0, 9 | 16 << 6 | 2 << 12 }, /* a slot that there is not      */
		{ 0, 0, 9 | 16 << 6 | 3ULL << 12 },    /* behind its mapping            */
		{ 0, 0, 9 | 16 << 6 | ~0ULL << 12 },
		{ 0, 0, 9 | 50 << 6 | 2 << 12 },  /* no such class                 */
		{ 0, 0, 31 | 16 << 6 | 2 << 12 }, /* more slots than there is room */
		{ 0, 0, 0 | 63 << 6 },            /* a mapping of nothing          */
	};

	(void)state;
	fake_word(&fake, ng_meta(1) + 16, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		ng_fill_meta(&fake, 0, NG_GROUP, wrong[i].avail, wrong[i].freed, wrong[i].bits);
		assert_int_equal(walk(), -ENOENT);
		assert_int_equal(blocks.n, 0);
	}
	ng_fill_meta(&fake, 0, NG_GROUP, 0, 0, 9 | 16 << 6 | 2 << 12);
	fake_word(&fake, NG_GROUP, ng_meta(3));
	assert_int_equal(walk(), -ENOENT);
}

static void areas_that_lead_to_each_other_are_not_followed_for_ever(void **state)
{
	(void)state;
	fake_word(&fake, NG_BSS + NG_CONTEXT + 64, NG_GROUP);
	assert_int_equal(walk(), -ENOENT); /* the last area is none */
	fake_word(&fake, NG_BSS + NG_CONTEXT + 64, NG_AREA);
	fake_word(&fake, NG_AREA, NG_SECRET + 1);
	assert_int_equal(walk(), -ENOENT);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(slots_in_neither_mask_are_in_use_with_the_size_asked_for),
		FACT(what_is_held_adds_up_to_the_group_and_its_area),
		FACT(large_spare_room_stands_at_the_end_of_the_slot),
		FACT(block_may_begin_behind_its_slot),
		FACT(large_block_has_a_mapping_of_its_own),
		FACT(slot_whose_numbers_do_not_fit_is_unknown),
		FACT(metas_that_do_not_fit_are_not_believed),
		FACT(areas_that_lead_to_each_other_are_not_followed_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
