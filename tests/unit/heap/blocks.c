#include "heap/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 4000 };

static uint64_t state = 88172645463325252ULL;

static uint64_t draw(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint32_t class_of(uint64_t words)
{
	return words < 8 ? (uint32_t)words : 8;
}

/* In ascending stretches that are in no order themselves, as arenas are. */
static void add_stretches(struct heap_blocks *b)
{
	static const uint64_t from[] = { 1 << 20, 3 << 20, 2 << 20, 0 };

	for (int s = 0; from[s]; s++)
		for (uint64_t at = from[s], i = 0; i < N; i++) {
			uint64_t bytes = 16 * (1 + (at >> 4) % 5);

			heap_blocks_add(b, at, bytes, bytes);
			at += bytes + 16 * ((at >> 5) % 2);
		}
}

static void those_that_are_sought_are_the_ones_a_whole_list_finds(void **state_)
{
	struct heap_blocks all = { .max = UINT64_MAX }, some = { .max = UINT64_MAX };
	uint64_t sought[500], n = 0;

	add_stretches(&all);
	heap_blocks_sort(&all);
	for (int i = 0; i < 500; i++)
		sought[i] = (1 << 20) + draw(3 << 20);
	qsort(sought, 500, sizeof(*sought), by_number);
	some.sought = sought;
	some.n_sought = 500;
	add_stretches(&some);
	heap_blocks_sort(&some);
	for (uint64_t i = 0; i < all.n; i++) {
		const struct heap_block *b = &all.rows[i];
		bool is = false;

		for (int k = 0; k < 500; k++)
			is |= sought[k] >= b->addr && sought[k] - b->addr < 8 * (uint64_t)b->words;
		if (!is)
			continue;
		assert_true(n < some.n);
		assert_int_equal(some.rows[n++].addr, b->addr);
	}
	assert_int_equal(n, some.n);
	assert_true(n > 50);
	assert_int_equal(some.all.blocks, 3 * N);
	assert_int_equal(some.all.words, all.all.words);
	assert_true(heap_blocks_lists_all(&all));
	assert_false(heap_blocks_lists_all(&some));
	heap_blocks_free(&all);
	heap_blocks_free(&some);
	(void)state_;
}

static void nothing_sought_lists_nothing(void **state_)
{
	uint64_t none = 0;
	struct heap_blocks b = { .max = UINT64_MAX, .sought = &none };

	add_stretches(&b);
	assert_int_equal(b.n, 0);
	assert_int_equal(b.all.blocks, 3 * N);
	(void)state_;
}

static void what_came_after_a_mark_is_taken_back(void **state_)
{
	struct heap_blocks b = { .max = UINT64_MAX, .class_of = class_of };
	struct heap_mark mark;

	heap_blocks_add(&b, 64, 32, 32);
	heap_blocks_mark(&b, &mark);
	heap_blocks_add(&b, 128, 32, 32);
	heap_blocks_add(&b, 256, 800, 0);
	assert_int_equal(b.all.class_words[8], 100);
	heap_blocks_rewind(&b, &mark);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.all.blocks, 1);
	assert_int_equal(b.all.words, 4);
	assert_int_equal(b.all.class_words[4], 4);
	assert_int_equal(b.all.class_words[8], 0);
	heap_blocks_uncount(&b, 32);
	heap_blocks_uncount(&b, 32); /* once more than there were */
	assert_int_equal(b.all.blocks, 0);
	assert_int_equal(b.all.class_words[4], 0);
	heap_blocks_free(&b);
	(void)state_;
}

static void a_sample_is_about_one_in_so_many(void **state_)
{
	struct heap_blocks b = { .max = UINT64_MAX, .one_in = 20 };

	add_stretches(&b);
	/* 600 by expectation, sigma 24. */
	assert_in_range(b.n, 500, 700);
	heap_blocks_free(&b);
	(void)state_;
}

static void a_list_that_is_full_says_so_and_counts_on(void **state_)
{
	struct heap_blocks b = { .max = 10 };

	add_stretches(&b);
	assert_true(b.over);
	assert_int_equal(b.n, 10);
	assert_int_equal(b.all.blocks, 3 * N);
	heap_blocks_clear(&b);
	assert_false(b.over);
	assert_int_equal(b.n + b.all.blocks + b.all.words, 0);
	heap_blocks_free(&b);
	(void)state_;
}

static void there_may_be_no_list(void **state_)
{
	struct heap_mark mark;

	heap_blocks_add(NULL, 16, 16, 16);
	heap_blocks_uncount(NULL, 16);
	heap_blocks_unknown(NULL, 16, 32);
	heap_blocks_mark(NULL, &mark);
	heap_blocks_rewind(NULL, &mark);
	(void)state_;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_are_sought_are_the_ones_a_whole_list_finds),
		cmocka_unit_test(nothing_sought_lists_nothing),
		cmocka_unit_test(what_came_after_a_mark_is_taken_back),
		cmocka_unit_test(a_sample_is_about_one_in_so_many),
		cmocka_unit_test(a_list_that_is_full_says_so_and_counts_on),
		cmocka_unit_test(there_may_be_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
