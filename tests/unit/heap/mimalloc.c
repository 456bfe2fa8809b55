/*
 * A segment of mimalloc made of bytes: sound, and as nobody's mimalloc has made it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mimalloc_fixture.h"

static struct fake_memory fake;
static struct heap_use use;
static struct heap_blocks blocks;

static void put(uint64_t off, uint64_t value, size_t len)
{
	fake_put(&fake, MI_AT + off, value, len);
}

/* That of the second slice. */
static void page(uint32_t slices, uint16_t capacity, uint16_t reserved, uint32_t used,
		 uint32_t size)
{
	mi_page(&fake, (struct mi_page){ 1, slices, used, size, capacity, reserved });
}

static int fresh(void **state)
{
	(void)state;
	mi_init(&fake);
	use = (struct heap_use){ 0 };
	blocks = (struct heap_blocks){ .max = 1 << 16 };
	return 0;
}

static int done(void **state)
{
	(void)state;
	heap_blocks_free(&blocks);
	fake_fini(&fake);
	return 0;
}

static void blocks_in_none_of_the_lists_are_in_use(void **state)
{
	assert_int_equal(heap_walk_mimalloc(&fake.mem, &use, &blocks), 0);
	assert_int_equal(use.live.blocks, MI_CAPACITY - 4);
	assert_int_equal(use.live.bytes, (MI_CAPACITY - 4) * MI_SIZE);
	assert_int_equal(use.free.blocks, 2);
	assert_int_equal(use.cached.blocks, 2);
	assert_int_equal(use.metadata.bytes, MI_SLICE + 384);
	assert_int_equal(use.top.bytes, MI_SLICE - 384 - MI_CAPACITY * MI_SIZE + MI_SLICE);
	assert_int_equal(use.unknown.bytes, 0);
	assert_int_equal(blocks.n, MI_CAPACITY - 4);
	assert_int_equal(blocks.rows[4].addr, mi_block(6));
}

static void page_whose_lists_do_not_add_up_is_unknown(void **state)
{
	/* A second one that is sound makes it a segment of mimalloc's. */
	put(248, 4, 8);
	memcpy(fake.bytes[0] + 264 + 160, fake.bytes[0] + 264 + 80, 80);
	put(264 + 160 + 24, MI_CAPACITY, 4);
	put(264 + 160 + 16, 0, 8);
	put(264 + 160 + 32, 0, 8);
	put(264 + 160 + 40, 0, 8);
	put(264 + 80 + 24, MI_CAPACITY - 5, 4);
	assert_int_equal(heap_walk_mimalloc(&fake.mem, &use, &blocks), 0);
	assert_int_equal(use.live.blocks, MI_CAPACITY);
	assert_true(use.unknown.bytes >= MI_SLICE);
	assert_non_null(use.caveat);
}

static void assert_not_believed(void)
{
	assert_int_equal(heap_walk_mimalloc(&fake.mem, &use, &blocks), -ENOENT);
	assert_int_equal(use.live.blocks + use.unknown.blocks, 0);
	assert_int_equal(blocks.n, 0);
}

static void list_that_leads_to_itself_is_not_followed_twice(void **state)
{
	put(mi_block(5) - MI_AT, mi_block(4), 8);
	assert_not_believed();
}

static void list_that_leads_elsewhere_is_not_followed(void **state)
{
	static const uint64_t wrong[] = { 1, MI_AT, 0xffffffffffffffff, MI_AT + MI_SLICE + 385 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		put(mi_block(4) - MI_AT, wrong[i], 8);
		assert_not_believed();
	}
}

static void blocks_that_do_not_fit_their_slices_are_not_believed(void **state)
{
	page(1, MI_CAPACITY, MI_RESERVED + 1, MI_CAPACITY - 3, MI_SIZE);
	assert_not_believed();
	page(1, 0xffff, 0xffff, MI_CAPACITY - 3, 1);
	assert_not_believed();
	page(0xffffffff, MI_CAPACITY, MI_RESERVED, MI_CAPACITY - 3, MI_SIZE);
	assert_not_believed();
	page(1, MI_CAPACITY, MI_RESERVED, 0xffffffff, MI_SIZE);
	assert_not_believed();
}

static void numbers_of_no_segment_are_none(void **state)
{
	put(248, 1000, 8);
	assert_not_believed();
	put(248, 3, 8);
	put(232, 0, 8);
	assert_not_believed();
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(blocks_in_none_of_the_lists_are_in_use),
		FACT(page_whose_lists_do_not_add_up_is_unknown),
		FACT(list_that_leads_to_itself_is_not_followed_twice),
		FACT(list_that_leads_elsewhere_is_not_followed),
		FACT(blocks_that_do_not_fit_their_slices_are_not_believed),
		FACT(numbers_of_no_segment_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
