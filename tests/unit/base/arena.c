#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void pieces_are_aligned_and_apart(void **state)
{
	struct arena a = { 0 };
	char *str = arena_strndup(&a, "name", 4);
	char *prev = NULL;

	for (int i = 0; i < 10000; i++) {
		char *p = arena_alloc(&a, 24);

		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		memset(p, i, 24);
		if (prev)
			assert_int_equal((unsigned char)prev[23], (unsigned char)(i - 1));
		prev = p;
	}
	assert_string_equal(str, "name");
	arena_free(&a);
}

static void piece_larger_than_a_block_is_possible(void **state)
{
	struct arena a = { 0 };
	char *p = arena_alloc(&a, 1 << 20);

	memset(p, 1, 1 << 20);
	assert_non_null(arena_alloc(&a, 8));
	assert_int_equal(p[(1 << 20) - 1], 1);
	arena_reset(&a);
	assert_non_null(arena_alloc(&a, 8));
	arena_free(&a);
}

static void no_size_is_possible_and_an_impossible_one_is_null(void **state)
{
	struct arena a = { 0 };
	char *nothing = arena_alloc(&a, 0);

	assert_non_null(nothing);
	assert_ptr_equal(arena_alloc(&a, 0), nothing);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 4));
	assert_null(arena_strndup(&a, "", SIZE_MAX));
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_and_apart),
		cmocka_unit_test(piece_larger_than_a_block_is_possible),
		cmocka_unit_test(no_size_is_possible_and_an_impossible_one_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
