#include "heap/in_use.h"

#include "glibc_fixture.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct heap_wanted all = { .max = 100000 }, one = { .max = 1 };

/* Blocks of 40 usable bytes at FAKE_BRK + 16 and 64 bytes further, a free one in between. */
static void three_chunks(struct fake_memory *f)
{
	uint64_t at = FAKE_BRK;

	fake_heap_init(f);
	at = fake_chunk(f, at, 48, 1);
	at = fake_chunk(f, at, 64, 1);
	at = fake_chunk(f, at, 48, 0); /* the one before it is free */
	fake_top(f, at);
}

static void answers_are_in_use_and_free(void **state)
{
	struct fake_memory f;
	struct heap_in_use u;
	uint64_t bytes = 0;

	three_chunks(&f);
	assert_int_equal(heap_in_use_of(&f.mem, &all, &u), 0);
	assert_string_equal(u.allocators, "glibc");
	assert_int_equal(heap_in_use_at(&u, FAKE_BRK + 16, &bytes), HEAP_IN_USE);
	assert_int_equal(bytes, 40);
	assert_int_equal(heap_in_use_at(&u, FAKE_BRK + 48 + 16, &bytes), HEAP_FREE);
	assert_int_equal(heap_in_use_at(&u, FAKE_BRK + 48 + 64 + 16, &bytes), HEAP_IN_USE);
	/* Somewhere in a small block is not where one begins. */
	assert_int_equal(heap_in_use_at(&u, FAKE_BRK + 32, &bytes), HEAP_FREE);
	assert_int_equal(u.live_bytes, 80);
	heap_in_use_fini(&u);
	fake_fini(&f);
	(void)state;
}

static void what_does_not_add_up_cannot_be_said(void **state)
{
	struct fake_memory f;
	struct heap_in_use u;
	uint64_t bytes = 0;

	three_chunks(&f);
	fake_chunk(&f, FAKE_BRK + 48, 7, 1); /* no size of a chunk */
	assert_int_equal(heap_in_use_of(&f.mem, &all, &u), 0);
	assert_int_equal(heap_in_use_at(&u, FAKE_BRK + 48 + 64 + 16, &bytes), HEAP_CANNOT_SAY);
	assert_int_equal(heap_in_use_at(&u, FAKE_DATA, &bytes), HEAP_FREE); /* in no heap */
	assert_true(u.unknown_bytes > 0);
	heap_in_use_fini(&u);
	fake_fini(&f);
	(void)state;
}

/* Blocks that nobody asks about take no room, and are counted all the same. */
static void only_blocks_that_are_asked_about_are_listed(void **state)
{
	const uint64_t addrs[] = { FAKE_BRK + 48 + 16, FAKE_BRK + 48 + 64 + 16 };
	const struct heap_wanted wanted = { .max = 1, .addrs = addrs, .n_addrs = 2 };
	struct fake_memory f;
	struct heap_in_use u;
	uint64_t bytes = 0;

	three_chunks(&f);
	assert_int_equal(heap_in_use_of(&f.mem, &wanted, &u), 0);
	assert_false(u.incomplete);
	assert_int_equal(u.blocks.n, 1);
	assert_int_equal(u.live_bytes, 80);
	assert_int_equal(heap_in_use_at(&u, addrs[0], &bytes), HEAP_FREE);
	assert_int_equal(heap_in_use_at(&u, addrs[1], &bytes), HEAP_IN_USE);
	assert_int_equal(bytes, 40);
	heap_in_use_fini(&u);
	fake_fini(&f);
	(void)state;
}

static void of_more_blocks_than_there_is_room_for_a_sample_is_listed(void **state)
{
	const struct heap_wanted wanted = { .max = 64, .sample = true };
	struct fake_memory f;
	struct heap_in_use u;
	uint64_t at = FAKE_BRK;

	fake_heap_init(&f);
	for (int i = 0; i < 1000; i++)
		at = fake_chunk(&f, at, 48, 1);
	fake_top(&f, at);
	assert_int_equal(heap_in_use_of(&f.mem, &wanted, &u), 0);
	assert_false(u.incomplete);
	assert_int_equal(u.live_bytes, 1000 * 40);
	/* 1,000 in one_in: 4 sigma. */
	assert_true(u.one_in > 15 && u.one_in < 100);
	assert_true(fabs((double)u.blocks.n * u.one_in - 1000) < 4 * sqrt(1000 * u.one_in));
	heap_in_use_fini(&u);
	fake_fini(&f);
	(void)state;
}

/* Mappings are read first, and the heap grows while it is walked. */
static void a_heap_that_has_grown_since_its_mappings_were_read_is_walked(void **state)
{
	struct fake_memory f;
	struct heap_in_use u;
	uint64_t bytes = 0, at = FAKE_BRK;

	fake_heap_init(&f);
	for (int i = 0; i < 400; i++)
		at = fake_chunk(&f, at, 48, 1);
	fake_top(&f, at);
	f.maps[0].end = FAKE_BRK + 2 * HEAP_PAGE;
	assert_int_equal(heap_in_use_of(&f.mem, &all, &u), 0);
	assert_string_equal(u.allocators, "glibc");
	assert_int_equal(u.live_bytes, 400 * 40);
	assert_int_equal(heap_in_use_at(&u, at - 48 + 16, &bytes), HEAP_IN_USE);
	heap_in_use_fini(&u);
	fake_fini(&f);
	(void)state;
}

static void a_list_that_is_full_says_nothing_is_free(void **state)
{
	struct fake_memory f;
	struct heap_in_use u;
	uint64_t bytes = 0;

	three_chunks(&f);
	assert_int_equal(heap_in_use_of(&f.mem, &one, &u), 0);
	assert_true(u.incomplete);
	assert_int_equal(heap_in_use_at(&u, FAKE_BRK + 16, &bytes), HEAP_IN_USE);
	assert_int_equal(heap_in_use_at(&u, FAKE_BRK + 48 + 64 + 16, &bytes), HEAP_CANNOT_SAY);
	heap_in_use_fini(&u);
	fake_fini(&f);
	(void)state;
}

static void blocks_of_this_process_are_in_use_until_they_are_freed(void **state)
{
	enum { N = 1000 };
	static void *blocks[N];
	struct err e = { 0 };
	struct heap_in_use u;

	for (size_t i = 0; i < N; i++)
		blocks[i] = malloc(i * 37 % 3000 + 1);
	for (size_t i = 0; i < N; i += 2)
		free(blocks[i]);
	if (heap_in_use_take(getpid(), 1000000000, &all, &u, &e) < 0)
		skip(); /* this memory must not be read */
	if (!u.glibc) {
		heap_in_use_fini(&u);
		skip();
	}
	for (size_t i = 1; i < N; i += 2) {
		uint64_t bytes = 0;

		assert_int_equal(heap_in_use_at(&u, (uint64_t)blocks[i], &bytes), HEAP_IN_USE);
		assert_int_equal(bytes, malloc_usable_size(blocks[i]));
		assert_true(heap_in_use_room(&u, i * 37 % 3000 + 1) <= bytes);
	}
	/* The walk's own lists may have got some of the others. */
	heap_in_use_fini(&u);
	for (size_t i = 1; i < N; i += 2)
		free(blocks[i]);
	(void)state;
}

static void room_is_what_glibc_gives(void **state)
{
	const struct heap_in_use u = { .glibc = true };

#if defined(__SANITIZE_ADDRESS__)
	skip(); /* malloc is the sanitizer's own */
#endif
	if (getenv("MEMSCOPE_VALGRIND"))
		skip(); /* … or valgrind's */
	for (size_t size = 0; size < 5000; size += 7) {
		void *p = malloc(size);

		/* It may have been the rest of another one. */
		assert_in_range(malloc_usable_size(p) - heap_in_use_room(&u, size), 0, 16);
		free(p);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_in_use_and_free),
		cmocka_unit_test(what_does_not_add_up_cannot_be_said),
		cmocka_unit_test(only_blocks_that_are_asked_about_are_listed),
		cmocka_unit_test(of_more_blocks_than_there_is_room_for_a_sample_is_listed),
		cmocka_unit_test(a_heap_that_has_grown_since_its_mappings_were_read_is_walked),
		cmocka_unit_test(a_list_that_is_full_says_nothing_is_free),
		cmocka_unit_test(blocks_of_this_process_are_in_use_until_they_are_freed),
		cmocka_unit_test(room_is_what_glibc_gives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
