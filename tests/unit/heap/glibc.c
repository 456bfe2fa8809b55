/*
 * Heaps made of bytes: sound ones, and such as nobody's malloc has made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>

#include <cmocka.h>

#include "glibc_fixture.h"
#include "heap/census.h"
#include "heap/glibc.h"

static struct fake_memory fake;
static struct heap_blocks blocks;
static struct heap_use use;

static int fresh(void **state)
{
	(void)state;
	fake_heap_init(&fake);
	blocks = (struct heap_blocks){ .max = 1 << 16 };
	use = (struct heap_use){ 0 };
	return 0;
}

static int done(void **state)
{
	(void)state;
	fake_fini(&fake);
	heap_blocks_free(&blocks);
	return 0;
}

static int walk(void)
{
	return heap_walk_glibc(&fake.mem, &use, &blocks);
}

/* Every byte the arenas have is in one of the amounts. */
static void assert_whole(uint64_t bytes)
{
	uint64_t sum = use.live.bytes - use.mapped.bytes + use.cached.bytes + use.fast.bytes +
		       use.free.bytes + use.top.bytes + use.metadata.bytes + use.unknown.bytes;

	assert_in_range(sum, bytes - 16, bytes);
	assert_int_equal(blocks.n, use.live.blocks);
}

static void heap_without_a_block_is_all_top(void **state)
{
	assert_int_equal(walk(), 0);
	assert_int_equal(use.arenas, 1);
	assert_int_equal(use.live.blocks, 0);
	assert_int_equal(use.top.bytes, FAKE_LEN - 8);
	assert_null(use.caveat);
	assert_whole(FAKE_LEN);
}

static void flag_of_the_next_chunk_says_what_is_in_use(void **state)
{
	uint64_t at = FAKE_BRK;

	at = fake_chunk(&fake, at, 64, 1);
	at = fake_chunk(&fake, at, 96, 1);
	at = fake_chunk(&fake, at, 48, 0);
	fake_top(&fake, at);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 2);
	assert_int_equal(use.live.bytes, 56 + 40);
	assert_int_equal(use.free.blocks, 1);
	assert_int_equal(use.free.bytes, 96);
	assert_int_equal(blocks.rows[1].addr, FAKE_BRK + 64 + 96 + 16);
	assert_whole(FAKE_LEN);
}

static void arena_of_its_own_heap_is_walked(void **state)
{
	uint64_t first = fake_second(&fake), at = fake_chunk(&fake, first, 128, 5);

	fake_word(&fake, FAKE_HEAP + 48 + FAKE_BINS - 16, at);
	fake_chunk(&fake, at, FAKE_HEAP + FAKE_LEN - at, 1);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.arenas, 2);
	assert_int_equal(use.live.blocks, 1);
	assert_int_equal(blocks.rows[0].addr, first + 16);
	assert_null(use.caveat);
	assert_whole(2 * FAKE_LEN);
}

static void arenas_of_before_2_27_are_found(void **state)
{
	/* Without have_fastchunks and what pads it, the list of arenas names a place 8 bytes later. */
	fake_word(&fake, FAKE_MAIN + FAKE_BINS + 2032 + 16, FAKE_MAIN + 8);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.top.bytes, FAKE_LEN - 8);
}

static void no_arena_is_no_glibc(void **state)
{
	memset(fake.bytes[1], 0, FAKE_LEN);
	assert_int_equal(walk(), -ENOENT);
}

static void list_of_arenas_that_never_closes_is_none(void **state)
{
	uint64_t second = FAKE_HEAP + 48;

	fake_second(&fake);
	fake_word(&fake, second + FAKE_BINS + 2032 + 16, second);
	assert_int_equal(walk(), -ENOENT);
	assert_true(fake.reads < 2000000);
}

static void size_that_is_none_ends_the_walk_and_is_told(void **state)
{
	static const uint64_t sizes[] = {
		0x0, 0x8, 0x18, 0x28, 0xfffffffffffffff0, 0x100000000, FAKE_LEN + 0x10, 0x42, 0x44
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t at = fake_chunk(&fake, FAKE_BRK, 64, 1);

		use = (struct heap_use){ 0 };
		blocks.n = 0;
		fake_word(&fake, at + 8, sizes[i] | 1);
		fake_word(&fake, FAKE_MAIN + FAKE_BINS - 16, FAKE_BRK + 4096);
		fake_chunk(&fake, FAKE_BRK + 4096, FAKE_LEN - 4096, 1);
		assert_int_equal(walk(), 0);
		assert_int_equal(use.live.blocks, 1);
		assert_int_equal(use.unknown.bytes, FAKE_LEN - 64);
		assert_non_null(use.caveat);
		assert_whole(FAKE_LEN);
	}
}

/* The process was at it: what is read first is not what is there a moment later. */
static bool read_changing(void *ctx, uint64_t addr, void *buf, size_t len)
{
	bool there = fake_read(ctx, addr, buf, len);

	if (there && addr <= FAKE_BRK + 64 && addr + len > FAKE_BRK + 64 + 16 && len > 64)
		fake_chunk(&fake, FAKE_BRK + 64, 96, 1);
	return there;
}

static void what_was_being_changed_is_read_again(void **state)
{
	uint64_t at = fake_chunk(&fake, FAKE_BRK, 64, 1);

	fake_word(&fake, at + 8, 0x777);
	fake_top(&fake, at + 96);
	fake.mem.read = read_changing;
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 2);
	assert_int_equal(use.live.bytes, 56 + 88);
	assert_null(use.caveat);
	assert_whole(FAKE_LEN);
}

/* malloc() has moved the top, and is to write its size. */
static void top_without_a_size_is_said_and_what_lies_before_it_is_walked(void **state)
{
	static const uint64_t sizes[] = { 0, 0x6f20656d6f73, 0x500, 0xffffffffffffff01 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t at = fake_chunk(&fake, FAKE_BRK, 64, 1);

		use = (struct heap_use){ 0 };
		blocks.n = 0;
		at = fake_chunk(&fake, at, 96, 1);
		at = fake_chunk(&fake, at, 48, 1);
		fake_top(&fake, at);
		fake_word(&fake, at + 8, sizes[i]);
		assert_int_equal(walk(), 0);
		assert_in_range(use.live.blocks, 2, 3);
		assert_int_equal(blocks.rows[0].addr, FAKE_BRK + 16);
		assert_in_range(use.unknown.bytes, 1, UINT64_MAX);
		assert_non_null(use.caveat);
	}
}

/* Three chunks of 48 bytes that look in use, and a top. */
static uint64_t three(void)
{
	uint64_t at = FAKE_BRK;

	for (int i = 0; i < 3; i++)
		at = fake_chunk(&fake, at, 48, 1);
	fake_top(&fake, at);
	return FAKE_BRK;
}

static uint64_t protect(uint64_t place, uint64_t to)
{
	return place >> 12 ^ to;
}

static void chunks_in_a_fastbin_are_not_in_use(void **state)
{
	uint64_t a = three(), b = a + 48;

	fake_word(&fake, FAKE_MAIN + FAKE_BINS - 96 + 8, b); /* of chunks of 48 */
	fake_word(&fake, b + 16, protect(b + 16, a));
	fake_word(&fake, a + 16, protect(a + 16, 0));
	assert_int_equal(walk(), 0);
	assert_int_equal(use.fast.blocks, 2);
	assert_int_equal(use.fast.bytes, 80);
	assert_int_equal(use.live.blocks, 1);
	assert_int_equal(blocks.rows[0].addr, b + 48 + 16);
	assert_whole(FAKE_LEN);
}

static void links_of_before_2_32_are_plain(void **state)
{
	uint64_t a = three(), b = a + 48;

	fake_word(&fake, FAKE_MAIN + FAKE_BINS - 96 + 8, b);
	fake_word(&fake, b + 16, a);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.fast.blocks, 2);
}

static void fastbin_that_leads_to_itself_counts_once(void **state)
{
	uint64_t a = three();

	fake_word(&fake, FAKE_MAIN + FAKE_BINS - 96 + 8, a);
	fake_word(&fake, a + 16, protect(a + 16, a));
	assert_int_equal(walk(), 0);
	assert_int_equal(use.fast.blocks, 1);
	assert_int_equal(use.live.blocks, 2);
	assert_whole(FAKE_LEN);
}

/* A tcache of one list of chunks of 48 bytes in front of three of those; returns the first of these. */
static uint64_t cached(uint16_t count)
{
	uint64_t at = fake_chunk(&fake, FAKE_BRK, 0x290, 1), first = at;

	for (int i = 0; i < 3; i++)
		at = fake_chunk(&fake, at, 48, 1);
	fake_top(&fake, at);
	memcpy(fake_at(&fake, FAKE_BRK + 16 + 2, 2), &count, 2);
	fake_word(&fake, FAKE_BRK + 16 + 128 + 8, first + 16);
	return first;
}

static void chunks_in_a_tcache_are_not_in_use(void **state)
{
	uint64_t a = cached(2);

	fake_word(&fake, a + 16, protect(a + 16, a + 48 + 16));
	fake_word(&fake, a + 48 + 16, protect(a + 48 + 16, 0));
	assert_int_equal(walk(), 0);
	assert_int_equal(use.caches, 1);
	assert_int_equal(use.cached.blocks, 2);
	assert_int_equal(use.live.blocks, 1);
	assert_int_equal(blocks.rows[0].addr, a + 96 + 16);
	assert_whole(FAKE_LEN);
}

static void tcache_that_leads_to_itself_counts_once(void **state)
{
	uint64_t a = cached(0xffff);

	fake_word(&fake, a + 16, protect(a + 16, a + 16));
	assert_int_equal(walk(), 0);
	assert_int_equal(use.cached.blocks, 1);
	assert_int_equal(use.live.blocks, 2);
	assert_whole(FAKE_LEN);
}

static void block_of_the_size_of_a_tcache_is_a_block(void **state)
{
	cached(2);
	fake_word(&fake, FAKE_BRK + 16 + 128 + 16, 0x1234567890); /* an entry of nothing */
	assert_int_equal(walk(), 0);
	assert_int_equal(use.caches, 0);
	assert_int_equal(use.live.blocks, 4);
	assert_whole(FAKE_LEN);
}

static void say_mapped(uint64_t n, uint64_t bytes)
{
	fake_word(&fake, FAKE_DATA + 0x40, 65536ULL << 32 | n);
	fake_word(&fake, FAKE_DATA + 0x48, n);
	fake_word(&fake, FAKE_DATA + 0x50, bytes);
	fake_word(&fake, FAKE_DATA + 0x58, bytes);
}

static void large_blocks_are_found_below_what_others_map(void **state)
{
	say_mapped(2, 3 * 4096);
	fake_word(&fake, FAKE_LARGE + 5 * 4096 + 8, 8192 | 2);
	fake_word(&fake, FAKE_LARGE + 7 * 4096 + 8, 4096 | 2);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.mapped.blocks, 2);
	assert_int_equal(use.mapped.bytes, 3 * 4096 - 32);
	assert_int_equal(use.live.blocks, 2);
	assert_null(use.caveat);
}

/* As Debian 12's libc has it. */
static void large_blocks_are_counted_from_2_35_on(void **state)
{
	say_mapped(2, 3 * 4096);
	fake_word(&fake, FAKE_DATA + 0x38, 2ULL << 32);
	fake_word(&fake, FAKE_DATA + 0x40, 4ULL << 32 | 65536);
	fake_word(&fake, FAKE_DATA + 0x48, 0);
	fake_word(&fake, FAKE_LARGE + 5 * 4096 + 8, 8192 | 2);
	fake_word(&fake, FAKE_LARGE + 7 * 4096 + 8, 4096 | 2);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.mapped.blocks, 2);
	assert_null(use.caveat);
}

static void large_blocks_are_found_behind_variables_that_share_their_mapping(void **state)
{
	say_mapped(1, 8192);
	for (uint32_t i = 0; i < fake.mem.n_maps; i++)
		if (fake.maps[i].start == FAKE_LARGE)
			fake.maps[i].kind = HEAP_MAP_ZEROED;
	fake_word(&fake, FAKE_LARGE + 5 * 4096 + 8, 8192 | 2);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.mapped.blocks, 1);
	assert_null(use.caveat);
}

static void large_block_that_is_not_there_is_said(void **state)
{
	say_mapped(2, 8192);
	fake_word(&fake, FAKE_LARGE + 8, 4096 | 2);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.mapped.blocks, 1);
	assert_int_equal(use.unknown.bytes, 4096);
	assert_non_null(use.caveat);
}

static void heap_whose_list_leads_to_itself_is_walked_once(void **state)
{
	uint64_t first = fake_second(&fake);

	/* Its arena lies elsewhere, says the heap before: never reached. */
	fake_word(&fake, FAKE_HEAP + 8, FAKE_HEAP);
	fake_word(&fake, FAKE_HEAP + 48 + FAKE_BINS + 2032 + 40, 1ULL << 62);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.top.blocks, 2);
	assert_int_equal(use.top.bytes, FAKE_LEN - 8 + FAKE_HEAP + FAKE_LEN - first - 8);
	assert_true(use.unknown.bytes > 1ULL << 61);
	assert_non_null(use.caveat);
}

static void list_that_is_full_is_said_to_be(void **state)
{
	three();
	blocks.max = 2;
	assert_int_equal(walk(), 0);
	assert_true(blocks.over);
	assert_int_equal(use.live.blocks, 3);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(heap_without_a_block_is_all_top),
		FACT(flag_of_the_next_chunk_says_what_is_in_use),
		FACT(arena_of_its_own_heap_is_walked),
		FACT(arenas_of_before_2_27_are_found),
		FACT(no_arena_is_no_glibc),
		FACT(list_of_arenas_that_never_closes_is_none),
		FACT(size_that_is_none_ends_the_walk_and_is_told),
		FACT(what_was_being_changed_is_read_again),
		FACT(top_without_a_size_is_said_and_what_lies_before_it_is_walked),
		FACT(chunks_in_a_fastbin_are_not_in_use),
		FACT(links_of_before_2_32_are_plain),
		FACT(fastbin_that_leads_to_itself_counts_once),
		FACT(chunks_in_a_tcache_are_not_in_use),
		FACT(tcache_that_leads_to_itself_counts_once),
		FACT(block_of_the_size_of_a_tcache_is_a_block),
		FACT(large_blocks_are_found_below_what_others_map),
		FACT(large_blocks_are_counted_from_2_35_on),
		FACT(large_blocks_are_found_behind_variables_that_share_their_mapping),
		FACT(large_block_that_is_not_there_is_said),
		FACT(heap_whose_list_leads_to_itself_is_walked_once),
		FACT(list_that_is_full_is_said_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
