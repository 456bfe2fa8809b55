/* Random heaps with gaps of all sizes, and each address beside a search through the list. */
#include "heap/snapshot/block_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 2000 };

static uint64_t state = 88172645463325252ULL;

static uint64_t draw(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

static uint32_t search(const struct heap_block *blocks, uint64_t addr, uint32_t *ret_offset)
{
	for (uint32_t i = 0; i < N; i++)
		if (addr >= blocks[i].addr &&
		    addr < blocks[i].addr + 8 * (uint64_t)blocks[i].words) {
			*ret_offset = (uint32_t)(addr - blocks[i].addr);
			return i;
		}
	return BLOCK_NONE;
}

static void make(struct heap_block *blocks)
{
	uint64_t at = 0x10000 + 8 * draw(100);

	for (uint32_t i = 0; i < N; i++) {
		blocks[i] = (struct heap_block){
			.addr = at, .words = (uint32_t)(1 + draw(draw(20) ? 30 : 100000))
		};
		at += 8 * blocks[i].words;
		if (draw(3) == 0)
			at += 8 * draw(draw(50) ? 40 : 1000000);
	}
}

static void each_address_is_in_the_block_that_a_search_finds(void **state_)
{
	static struct heap_block blocks[N];

	(void)state_;
	for (int round = 0; round < 20; round++) {
		uint64_t end;

		make(blocks);
		end = blocks[N - 1].addr + 8 * (uint64_t)blocks[N - 1].words;
		_cleanup_(block_index_freep) struct block_index *w = block_index_new(blocks, N);
		assert_non_null(w);
		for (int i = 0; i < 4000; i++) {
			const struct heap_block *b = &blocks[draw(N)];
			uint64_t near[] = { b->addr - 1,
					    b->addr,
					    b->addr + 1,
					    b->addr + 8 * (uint64_t)b->words - 1,
					    b->addr + 8 * (uint64_t)b->words,
					    draw(end + 100000),
					    ~0ULL,
					    0 };
			uint64_t addr = near[draw(8)];
			uint32_t got = 0, want = 0, at = block_index_find(w, addr, &got);

			assert_int_equal(at, search(blocks, addr, &want));
			assert_int_equal(got, want);
		}
	}
}

/* musl gives malloc(0) a slot of no bytes. */
static void blocks_of_no_bytes_may_lie_alone_and_at_the_end(void **state_)
{
	static const struct heap_block blocks[] = {
		{ .addr = 0x10000, .words = 2 },
		{ .addr = 0x10000000, .words = 0 },
		{ .addr = 0x20000000, .words = 1 },
		{ .addr = 0x30000000, .words = 0 },
	};
	_cleanup_(block_index_freep) struct block_index *w = block_index_new(blocks, 4);
	uint32_t off;

	(void)state_;
	assert_non_null(w);
	assert_int_equal(block_index_find(w, 0x10008, &off), 0);
	assert_int_equal(block_index_find(w, 0x20000000, &off), 2);
	assert_int_equal(block_index_find(w, 0x20000008, &off), BLOCK_NONE);
	assert_int_equal(block_index_find(w, 0x30000008, &off), BLOCK_NONE);
}

static void of_no_blocks_nothing_is_found(void **state_)
{
	_cleanup_(block_index_freep) struct block_index *w = block_index_new(NULL, 0);
	uint32_t offset;

	(void)state_;
	assert_non_null(w);
	assert_int_equal(block_index_find(w, 4096, &offset), BLOCK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_is_in_the_block_that_a_search_finds),
		cmocka_unit_test(blocks_of_no_bytes_may_lie_alone_and_at_the_end),
		cmocka_unit_test(of_no_blocks_nothing_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
