/*
 * Spans of tcmalloc made of bytes: sound, and as nobody's tcmalloc has made them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tcmalloc_fixture.h"

static struct fake_memory fake;
static struct heap_use use;
static struct heap_blocks blocks;

static int fresh(void **state)
{
	(void)state;
	tcf_init(&fake);
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
	return fake_walk(&fake, heap_walk_tcmalloc, "tcmalloc", &use, &blocks);
}

static void objects_neither_free_nor_in_a_cache_are_in_use(void **state)
{
	(void)state;
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 4 + 1);
	assert_int_equal(use.live.bytes, 4 * TCF_SIZE + (2 << TC_SHIFT));
	assert_int_equal(use.cached.blocks, 2);
	assert_int_equal(use.free.bytes, 2 * TCF_SIZE + (1 << TC_SHIFT));
	assert_int_equal(use.caches, 1);
	assert_null(use.caveat);
	assert_int_equal(blocks.n, 5);
	assert_int_equal(blocks.rows[0].addr, tcf_object(4));
	assert_int_equal(blocks.rows[4].addr, TCF_HEAP + (1 << TC_SHIFT));
	assert_true(fake_blocks_lie_apart(&fake, &blocks, 0));
}

static void caches_that_are_not_found_are_said(void **state)
{
	(void)state;
	fake_word(&fake, TCF_BSS + TCF_CACHES, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.cached.blocks, 1); /* the one between threads */
	assert_int_equal(use.live.blocks, 6);
	assert_non_null(use.caveat);
	tcf_put_span(&fake, 0, 0, 1, tcf_object(0), (TCF_OBJECTS - 2) | TCF_CLASS << 16);
	fake_word(&fake, TCF_BSS + TCF_CACHES, TCF_META + TCF_CACHE);
	fake_word(&fake, TCF_BSS + TCF_CENTRAL, 7);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.cached.blocks, 1);
	assert_non_null(use.caveat);
}

static void next_cache_is_found_by_the_links_of_the_first(void **state)
{
	uint64_t second = TCF_META + TCF_CACHE + (6 << 10);

	(void)state;
	for (uint64_t c = 1; c < TCF_CLASSES; c++)
		fake_put(&fake, second + c * TC_LIST + 24, 4 << c, 4);
	fake_word(&fake, second + TCF_CLASS * TC_LIST, tcf_object(4));
	fake_put(&fake, second + TCF_CLASS * TC_LIST + 8, 1, 4);
	fake_word(&fake, TCF_META + TCF_CACHE + TC_CLASSES * TC_LIST + 32, second);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.caches, 2);
	assert_int_equal(use.cached.blocks, 3);
	assert_int_equal(use.live.blocks, 4);
}

static void span_whose_list_does_not_add_up_is_unknown(void **state)
{
	static const uint64_t wrong[] = { TCF_HEAP, TCF_HEAP + 1, TCF_HEAP - 8,
					  TCF_HEAP + 3 * TCF_SIZE + 8, 5 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fake_word(&fake, tcf_object(1), wrong[i]);
		assert_int_equal(walk(), 0);
		assert_int_equal(use.unknown.bytes, 1 << TC_SHIFT);
		assert_int_equal(use.live.blocks, 1);
		assert_int_equal(blocks.n_unknown, 1);
		assert_non_null(use.caveat);
	}
	fake_word(&fake, tcf_object(1), 0);
	tcf_put_span(&fake, 0, 0, 1, tcf_object(0), (TCF_OBJECTS - 3) | TCF_CLASS << 16);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.unknown.bytes, 1 << TC_SHIFT);
}

static void lists_of_caches_that_lead_elsewhere_end(void **state)
{
	(void)state;
	fake_put(&fake, TCF_META + TCF_CACHE + TCF_CLASS * TC_LIST + 8, 0xffffffff, 4);
	fake_word(&fake, tcf_object(2), 0x1234567890);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 5);
	assert_non_null(use.caveat);
}

static void returned_spans_are_addresses_alone(void **state)
{
	(void)state;
	tcf_put_span(&fake, 2, 3, 1, 0, 2 << 24);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.top.bytes, 1 << TC_SHIFT);
	assert_int_equal(use.free.bytes, 2 * TCF_SIZE);
}

static void without_spans_or_sizes_there_is_none(void **state)
{
	(void)state;
	fake_put(&fake, TCF_BSS + TCF_SIZES + 8, 12, 4);
	assert_int_equal(walk(), -ENOENT);
	fake_put(&fake, TCF_BSS + TCF_SIZES + 8, 16, 4);
	assert_int_equal(walk(), 0);
	for (int i = 0; i < 3; i++)
		fake_word(&fake, tcf_span(i) + 8, 0);
	assert_int_equal(walk(), -ENOENT);
	assert_int_equal(blocks.n, 0);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(objects_neither_free_nor_in_a_cache_are_in_use),
		FACT(caches_that_are_not_found_are_said),
		FACT(next_cache_is_found_by_the_links_of_the_first),
		FACT(span_whose_list_does_not_add_up_is_unknown),
		FACT(lists_of_caches_that_lead_elsewhere_end),
		FACT(returned_spans_are_addresses_alone),
		FACT(without_spans_or_sizes_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
