#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/space.h"

/* A space only compares images. */
static struct image *const A = (struct image *)1, *const B = (struct image *)2,
			   *const C = (struct image *)3;

static int setup(void **state)
{
	*state = space_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	space_unref(*state);
	return 0;
}

static int map(void **state, struct image *image, uint64_t addr, uint64_t end, uint64_t off)
{
	struct space *s = *state;
	int r = space_map(
		&s, &(struct mapping){ .addr = addr, .end = end, .off = off, .image = image });

	*state = s;
	return r;
}

static struct image *at(void **state, uint32_t gen, uint64_t addr)
{
	const struct mapping *m = space_find(*state, gen, addr);

	return m ? m->image : NULL;
}

static uint32_t gen(void **state)
{
	return ((struct space *)*state)->gen;
}

static void a_mapping_holds_its_range_and_nothing_else(void **state)
{
	map(state, B, 0x3000, 0x5000, 0);
	map(state, A, 0x1000, 0x2000, 0);
	assert_null(at(state, 0, 0xfff));
	assert_ptr_equal(at(state, 0, 0x1000), A);
	assert_ptr_equal(at(state, 0, 0x1fff), A);
	assert_null(at(state, 0, 0x2000));
	assert_ptr_equal(at(state, 0, 0x4fff), B);
	assert_null(at(state, 0, 0x5000));
	assert_null(at(state, 0, UINT64_MAX));
	assert_int_equal(gen(state), 0);
}

static void what_covers_another_begins_a_generation_and_the_past_is_kept(void **state)
{
	map(state, A, 0x1000, 0x3000, 0);
	map(state, B, 0x1000, 0x3000, 0);
	assert_int_equal(gen(state), 1);
	map(state, C, 0x1000, 0x3000, 0);
	assert_int_equal(gen(state), 2);
	assert_ptr_equal(at(state, 0, 0x2000), A);
	assert_ptr_equal(at(state, 1, 0x2000), B);
	assert_ptr_equal(at(state, 2, 0x2000), C);
	assert_ptr_equal(at(state, 99, 0x2000), C);
}

static void a_partly_covered_mapping_keeps_both_its_sides(void **state)
{
	const struct mapping *m;

	map(state, A, 0x10000, 0x20000, 0x500000);
	map(state, B, 0x14000, 0x18000, 0);
	assert_ptr_equal(at(state, 1, 0x13fff), A);
	assert_ptr_equal(at(state, 1, 0x14000), B);
	m = space_find(*state, 1, 0x18000);
	assert_ptr_equal(m->image, A);
	assert_int_equal(0x18000 - m->addr + m->off, 0x508000);
	assert_ptr_equal(at(state, 0, 0x15000), A);
	assert_ptr_equal(at(state, 0, 0x1ffff), A);
}

static void one_mapping_may_cover_several(void **state)
{
	map(state, A, 0x1000, 0x2000, 0);
	map(state, B, 0x3000, 0x4000, 0);
	map(state, C, 0x1800, 0x3800, 0);
	assert_int_equal(gen(state), 1);
	assert_ptr_equal(at(state, 1, 0x17ff), A);
	assert_ptr_equal(at(state, 1, 0x2800), C);
	assert_ptr_equal(at(state, 1, 0x3800), B);
	assert_ptr_equal(at(state, 0, 0x1fff), A);
	assert_ptr_equal(at(state, 0, 0x3000), B);
	/* Nothing was there before C: an early sample there is C's, seen before we told the
	 * kernel. */
	assert_ptr_equal(at(state, 0, 0x2800), C);
}

static void the_same_mapping_again_changes_nothing(void **state)
{
	map(state, A, 0x1000, 0x5000, 0x1000);
	map(state, A, 0x2000, 0x3000, 0x2000);
	map(state, A, 0x4000, 0x8000, 0x4000);
	assert_int_equal(gen(state), 0);
	assert_int_equal(((struct space *)*state)->n, 1);
	assert_ptr_equal(at(state, 0, 0x7fff), A);
	/* The same file, but another part of it. */
	map(state, A, 0x2000, 0x3000, 0x7000);
	assert_int_equal(gen(state), 1);
}

static void a_mapping_in_a_new_place_is_good_for_all_generations(void **state)
{
	map(state, A, 0x1000, 0x2000, 0);
	map(state, B, 0x1000, 0x2000, 0);
	map(state, C, 0x9000, 0xa000, 0);
	assert_int_equal(gen(state), 1);
	assert_ptr_equal(at(state, 0, 0x9000), C);
}

static void memory_without_a_file_grows_together(void **state)
{
	struct space *s = *state;

	for (uint64_t i = 0; i < 100; i++) {
		/* Every second page, then those between. */
		uint64_t addr = 0x1000 * (i < 50 ? 2 * i : 2 * (i - 50) + 1);
		struct mapping m = {
			.addr = addr, .end = addr + 0x1000, .image = A, .merges = true
		};

		assert_int_equal(space_map(&s, &m), 0);
	}
	assert_int_equal(s->n, 1);
	assert_int_equal(s->gen, 0);
	*state = s;
}

static void a_shared_space_changes_for_one_owner_only(void **state)
{
	struct space *child;

	map(state, A, 0x1000, 0x2000, 0);
	map(state, B, 0x1000, 0x2000, 0);
	child = space_ref(*state);
	assert_int_equal(
		space_map(&child, &(struct mapping){ .addr = 0x1000, .end = 0x2000, .image = C }),
		0);
	assert_ptr_not_equal(child, *state);
	assert_ptr_equal(space_find(child, 2, 0x1000)->image, C);
	assert_ptr_equal(space_find(child, 0, 0x1000)->image, A);
	assert_ptr_equal(at(state, 2, 0x1000), B);
	assert_int_equal(gen(state), 1);
	space_unref(child);
}

static void the_past_is_bounded_and_the_newest_of_it_is_kept(void **state)
{
	struct space *s;

	for (int i = 0; i < 3 * SPACE_PAST_MAX; i++)
		assert_int_equal(map(state, i % 2 ? A : B, 0x1000, 0x2000, 0), 0);
	s = *state;
	assert_true(s->n_past <= SPACE_PAST_MAX);
	assert_int_equal(s->gen, 3 * SPACE_PAST_MAX - 1);
	assert_ptr_equal(at(state, s->gen - 1, 0x1000), B);
	assert_ptr_equal(at(state, s->gen - 1000, 0x1000), A);
}

static void a_full_space_refuses_more_until_it_is_pruned(void **state)
{
	struct space *s = *state;
	int r = 0;

	for (uint64_t i = 0; i < 2 * SPACE_MAX && r == 0; i++)
		r = space_map(&s, &(struct mapping){ .addr = 0x2000 * i,
						     .end = 0x2000 * i + 0x1000,
						     .image = A,
						     .off = 0 });
	assert_int_equal(r, -ENOSPC);
	assert_true(s->n <= SPACE_MAX);
	*state = s;
}

static bool keep_b(void *ctx, const struct mapping *m)
{
	return m->image == B;
}

static void pruning_leaves_what_is_to_be_kept(void **state)
{
	struct space *s;

	map(state, A, 0x1000, 0x2000, 0);
	map(state, B, 0x3000, 0x4000, 0);
	map(state, C, 0x5000, 0x6000, 0);
	s = *state;
	assert_int_equal(space_prune(&s, keep_b, NULL), 0);
	*state = s;
	assert_null(at(state, 0, 0x1000));
	assert_ptr_equal(at(state, 0, 0x3000), B);
	assert_null(at(state, 0, 0x5000));
}

/* Against the obvious: a byte per page and generation. */
static void random_mappings_agree_with_a_page_table(void **state)
{
	enum { PAGES = 64, STEPS = 300 };
	static uint8_t pages[STEPS + 1][PAGES];
	unsigned seed = 7;

	memset(pages, 0, sizeof(pages));
	for (int i = 0; i < STEPS; i++) {
		uint64_t from, len;
		uint32_t before = gen(state);
		uintptr_t image;

		seed = seed * 1103515245 + 12345;
		from = (seed >> 8) % PAGES;
		len = 1 + (seed >> 16) % 8;
		image = 1 + (seed >> 24) % 3;
		if (from + len > PAGES)
			len = PAGES - from;
		/* offset = address: only another image disagrees */
		assert_int_equal(map(state, (struct image *)image, from * 4096, (from + len) * 4096,
				     from * 4096),
				 0);
		assert_true(gen(state) == before || gen(state) == before + 1);
		if (gen(state) != before)
			memcpy(pages[gen(state)], pages[before], PAGES);
		for (uint64_t p = from; p < from + len; p++) {
			/* New places are good for the generations before as well. */
			for (uint32_t g = 0; g < gen(state); g++)
				if (!pages[g][p])
					pages[g][p] = (uint8_t)image;
			pages[gen(state)][p] = (uint8_t)image;
		}
	}
	assert_true(gen(state) > 50);
	for (uint32_t g = 0; g <= gen(state); g++)
		for (uint64_t p = 0; p < PAGES; p++)
			assert_int_equal((uintptr_t)at(state, g, p * 4096 + 5), pages[g][p]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_mapping_holds_its_range_and_nothing_else),
		TEST(what_covers_another_begins_a_generation_and_the_past_is_kept),
		TEST(a_partly_covered_mapping_keeps_both_its_sides),
		TEST(one_mapping_may_cover_several),
		TEST(the_same_mapping_again_changes_nothing),
		TEST(a_mapping_in_a_new_place_is_good_for_all_generations),
		TEST(memory_without_a_file_grows_together),
		TEST(a_shared_space_changes_for_one_owner_only),
		TEST(the_past_is_bounded_and_the_newest_of_it_is_kept),
		TEST(a_full_space_refuses_more_until_it_is_pruned),
		TEST(pruning_leaves_what_is_to_be_kept),
		TEST(random_mappings_agree_with_a_page_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
