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

#include "heap/census.h"

#define AT 0x7f6000000000ULL

enum { LEN = 4 << 16, SLICE = 1 << 16, INFO = 1, SIZE = 512, RESERVED = 127, CAPACITY = 20 };

static uint8_t bytes[LEN];
static const struct heap_map maps[] = { { AT, AT + (32 << 20), 0, HEAP_MAP_ANON } };
static struct heap_use use;
static struct heap_blocks blocks;

static bool read_fake(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < AT || addr - AT > LEN || len > LEN - (addr - AT))
		return false;
	memcpy(buf, bytes + (addr - AT), len);
	return true;
}

static uint64_t resident_fake(void *ctx, uint64_t addr, uint64_t len)
{
	(void)ctx;
	(void)addr;
	return len;
}

static const struct heap_memory mem = { maps, 1, read_fake, resident_fake, NULL };

static void put(uint64_t off, uint64_t value, size_t len)
{
	memcpy(bytes + off, &value, len);
}

static uint64_t block(int i)
{
	return AT + SLICE + 384 + (uint64_t)i * SIZE;
}

/* The words of the page of the second slice. */
static void page(uint32_t slices, uint16_t capacity, uint16_t reserved, uint32_t used,
		 uint32_t size)
{
	uint64_t at = 264 + 80;

	put(at, slices, 4);
	put(at + 10, capacity, 2);
	put(at + 12, reserved, 2);
	put(at + 24, used, 4);
	put(at + 28, size, 4);
}

static void lists(uint64_t first_free, uint64_t local, uint64_t thread)
{
	put(264 + 80 + 16, first_free, 8);
	put(264 + 80 + 32, local, 8);
	put(264 + 80 + 40, thread, 8);
}

static int fresh(void **state)
{
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	use = (struct heap_use){ 0 };
	blocks = (struct heap_blocks){ .max = 1 << 16 };
	put(208, 1, 8);
	put(216, AT ^ 0x1234, 8);
	put(224, 512, 8);
	put(232, INFO, 8);
	put(248, 3, 8);
	put(264, INFO, 4);
	page(1, CAPACITY, RESERVED, CAPACITY - 3, SIZE);
	lists(block(4), block(7), block(9) | 2);
	put(block(4) - AT, block(5), 8);
	/* The last slice is free. */
	put(264 + 160, 1, 4);
	return 0;
}

static int done(void **state)
{
	(void)state;
	heap_blocks_free(&blocks);
	return 0;
}

static void blocks_in_none_of_the_lists_are_in_use(void **state)
{
	assert_int_equal(heap_walk_mimalloc(&mem, &use, &blocks), 0);
	assert_int_equal(use.live.blocks, CAPACITY - 4);
	assert_int_equal(use.live.bytes, (CAPACITY - 4) * SIZE);
	assert_int_equal(use.free.blocks, 2);
	assert_int_equal(use.cached.blocks, 2);
	assert_int_equal(use.metadata.bytes, SLICE + 384);
	assert_int_equal(use.top.bytes, SLICE - 384 - CAPACITY * SIZE + SLICE);
	assert_int_equal(use.unknown.bytes, 0);
	assert_int_equal(blocks.n, CAPACITY - 4);
	assert_int_equal(blocks.rows[4].addr, block(6));
}

static void page_whose_lists_do_not_add_up_is_unknown(void **state)
{
	/* A second one that is sound makes it a segment of mimalloc's. */
	put(248, 4, 8);
	memcpy(bytes + 264 + 160, bytes + 264 + 80, 80);
	put(264 + 160 + 24, CAPACITY, 4);
	put(264 + 160 + 16, 0, 8);
	put(264 + 160 + 32, 0, 8);
	put(264 + 160 + 40, 0, 8);
	put(264 + 80 + 24, CAPACITY - 5, 4);
	assert_int_equal(heap_walk_mimalloc(&mem, &use, &blocks), 0);
	assert_int_equal(use.live.blocks, CAPACITY);
	assert_true(use.unknown.bytes >= SLICE);
	assert_non_null(use.doubt);
}

static void assert_not_believed(void)
{
	assert_int_equal(heap_walk_mimalloc(&mem, &use, &blocks), -ENOENT);
	assert_int_equal(use.live.blocks + use.unknown.blocks, 0);
	assert_int_equal(blocks.n, 0);
}

static void list_that_leads_to_itself_is_not_followed_twice(void **state)
{
	put(block(5) - AT, block(4), 8);
	assert_not_believed();
}

static void list_that_leads_elsewhere_is_not_followed(void **state)
{
	static const uint64_t wrong[] = { 1, AT, 0xffffffffffffffff, AT + SLICE + 385 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		put(block(4) - AT, wrong[i], 8);
		assert_not_believed();
	}
}

static void blocks_that_do_not_fit_their_slices_are_not_believed(void **state)
{
	page(1, CAPACITY, RESERVED + 1, CAPACITY - 3, SIZE);
	assert_not_believed();
	page(1, 0xffff, 0xffff, CAPACITY - 3, 1);
	assert_not_believed();
	page(0xffffffff, CAPACITY, RESERVED, CAPACITY - 3, SIZE);
	assert_not_believed();
	page(1, CAPACITY, RESERVED, 0xffffffff, SIZE);
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
