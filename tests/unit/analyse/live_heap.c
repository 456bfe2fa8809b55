/*
 * Which blocks are kept, what ends them, and what looks make of them. The estimates are in live_heap_estimate.c.
 */
#include "analyse/live_heap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t room_of(uint64_t size)
{
	return ((size + 8 + 15) & ~15ULL) - 8;
}

static struct live_heap *one_block(uint64_t addr, uint64_t size)
{
	struct live_heap *h = live_heap_new(100, 1);
	const struct live_look nothing = { 0 };
	const struct live_seen seen = { .addr = addr,
					.size = size,
					.room = room_of(size),
					.born_ns = 5,
					.row = 1,
					.thread = 1,
					.burst = 1 };

	assert_int_equal(live_heap_begin(h, &nothing), 0);
	assert_int_equal(live_heap_seen(h, &seen), 0);
	assert_int_equal(live_heap_weigh(h, 1, 1, 1), 0);
	return h;
}

static double bytes_after(struct live_heap *h, uint64_t addr, uint64_t usable,
			  const struct live_range *unknown)
{
	const struct live_block block = { addr, usable };
	const struct live_look look = { .at_ns = 10,
					.blocks = &block,
					.n = addr != 0,
					.unknown = unknown,
					.n_unknown = unknown != NULL };

	assert_int_equal(live_heap_look(h, &look), 0);
	return live_heap_row(h, 1)->bytes;
}

static void a_block_in_use_counts_and_one_that_is_free_does_not(void **state)
{
	_cleanup_(live_heap_freep) struct live_heap *h = one_block(4096, 40);

	assert_true(fabs(bytes_after(h, 4096, 40, NULL) - 40) < 1e-9);
	assert_true(bytes_after(h, 0, 0, NULL) < 1e-9);
	(void)state;
}

/* A call's cost is known within a factor of many: by weights that are three times too large, a third of what was
 * seen would seem to live. The bytes in use say better; that each block seen is there, the look says. */
static void the_share_that_older_blocks_keep_does_not_hang_on_the_weights(void **state)
{
	_cleanup_(live_heap_freep) struct live_heap *h = one_block(4096, 40);

	assert_int_equal(live_heap_weigh(h, 1, 1, 3), 0);
	live_heap_age(h, 5);
	assert_true(fabs(bytes_after(h, 4096, 40, NULL) - 40) < 1e-9);
	assert_true(fabs(live_heap_row(h, 1)->old_blocks - 1) < 1e-9);
	(void)state;
}

static void an_address_in_use_with_another_size_is_another_block(void **state)
{
	_cleanup_(live_heap_freep) struct live_heap *h = one_block(4096, 40);
	_cleanup_(live_heap_freep) struct live_heap *g = one_block(4096, 40);

	assert_true(bytes_after(h, 4096, 24, NULL) < 1e-9);
	assert_true(bytes_after(g, 4096, 40, NULL) > 1);
	assert_true(bytes_after(g, 4096, 56, NULL) < 1e-9); /* the same at first */
	(void)state;
}

static void what_a_look_cannot_say_leaves_the_block_and_is_counted(void **state)
{
	const struct live_range part = { 0, 8192 };
	_cleanup_(live_heap_freep) struct live_heap *h = one_block(4096, 40);
	struct live_facts f;

	bytes_after(h, 0, 0, &part);
	live_heap_facts(h, &f);
	assert_int_equal(f.unknown, 1);
	assert_int_equal(f.blocks, 1);
	(void)state;
}

/* All that is in use is known by class, and of single blocks only those that are kept: it is the same. */
static void a_look_may_list_no_more_than_the_blocks_that_are_kept(void **state)
{
	_cleanup_(live_heap_freep) struct live_heap *h = one_block(4096, 40);
	_cleanup_(live_heap_freep) struct live_heap *g = one_block(4096, 40);
	const struct live_block blocks[] = { { 64, 40 }, { 4096, 40 }, { 8192, 1000 } };
	uint64_t classes[LIVE_CLASSES] = { 0 }, *addrs, n;
	struct live_look all = { .at_ns = 10, .blocks = blocks, .n = 3 };
	struct live_look kept = {
		.at_ns = 10, .blocks = blocks + 1, .n = 1, .class_words = classes
	};

	classes[live_class_of(5)] = 2 * 5;
	classes[live_class_of(125)] = 125;
	assert_int_equal(live_heap_addrs(h, &addrs, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(addrs[0], 4096);
	free(addrs);
	assert_int_equal(live_heap_look(h, &all), 0);
	assert_int_equal(live_heap_look(g, &kept), 0);
	assert_true(fabs(live_heap_row(h, 1)->bytes - live_heap_row(g, 1)->bytes) < 1e-9);
	assert_true(fabs(live_heap_row(h, 1)->most - live_heap_row(g, 1)->most) < 1e-9);
	(void)state;
}

static void blocks_of_a_sample_stand_for_those_that_are_not_listed(void **state)
{
	_cleanup_(live_heap_freep) struct live_heap *h = live_heap_new(100, 1);
	const struct live_block blocks[] = { { 64, 40 }, { 4096, 40 } };
	struct live_look look = { .at_ns = 1, .blocks = blocks, .n = 2, .one_in = 50 };
	uint64_t classes[LIVE_CLASSES] = { 0 };

	classes[live_class_of(5)] = 100 * 5;
	assert_int_equal(live_heap_begin(h, &look), 0);
	look.class_words = classes;
	assert_int_equal(live_heap_look(h, &look), 0);
	assert_true(fabs(live_heap_row(h, LIVE_BEFORE)->bytes - 100 * 40) < 1e-6);
	(void)state;
}

static void an_address_seen_again_in_a_later_burst_ends_the_earlier_block(void **state)
{
	_cleanup_(live_heap_freep) struct live_heap *h = one_block(4096, 40);
	const struct live_seen again = { .addr = 4096,
					 .size = 36,
					 .room = 40,
					 .born_ns = 7,
					 .row = 2,
					 .thread = 1,
					 .burst = 2 };
	struct live_facts f;

	assert_int_equal(live_heap_seen(h, &again), 0);
	live_heap_weigh(h, 2, 1, 1);
	assert_true(bytes_after(h, 4096, 40, NULL) < 1e-9);
	assert_true(fabs(live_heap_row(h, 2)->bytes - 36) < 1e-9);
	live_heap_facts(h, &f);
	assert_int_equal(f.reused, 1);
	(void)state;
}

static void a_realloc_seen_in_a_burst_ends_the_block_it_took(void **state)
{
	_cleanup_(live_heap_freep) struct live_heap *h = one_block(4096, 40);

	live_heap_freed(h, 4096, 8);
	live_heap_freed(h, 8192, 8);
	assert_true(bytes_after(h, 4096, 40, NULL) < 1e-9);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_in_use_counts_and_one_that_is_free_does_not),
		cmocka_unit_test(the_share_that_older_blocks_keep_does_not_hang_on_the_weights),
		cmocka_unit_test(an_address_in_use_with_another_size_is_another_block),
		cmocka_unit_test(what_a_look_cannot_say_leaves_the_block_and_is_counted),
		cmocka_unit_test(a_look_may_list_no_more_than_the_blocks_that_are_kept),
		cmocka_unit_test(blocks_of_a_sample_stand_for_those_that_are_not_listed),
		cmocka_unit_test(an_address_seen_again_in_a_later_burst_ends_the_earlier_block),
		cmocka_unit_test(a_realloc_seen_in_a_burst_ends_the_block_it_took),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
