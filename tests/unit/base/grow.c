#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/grow.h"

static void rows_are_kept_while_their_array_grows(void **state)
{
	uint32_t n = 0, cap = 0, grown = 0;
	uint64_t *rows = NULL;

	(void)state;
	for (; n < 10000; n++) {
		uint32_t before = cap;

		assert_true(GROW(rows, n, cap));
		assert_true(cap > n);
		grown += cap != before;
		rows[n] = n * 3;
	}
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(rows[i], i * 3);
	assert_int_equal(cap, 16384);
	assert_int_equal(grown, 9); /* 64 · 2⁸ */
	free(rows);
}

static void count_that_would_overflow_is_refused(void **state)
{
	char row = 'x', *rows = &row;
	uint32_t cap = 1u << 31;

	(void)state;
	assert_false(GROW(rows, cap, cap));
	assert_ptr_equal(rows, &row);
	assert_int_equal(cap, 1u << 31);
}

static void rows_that_memory_cannot_hold_are_refused_and_the_old_ones_kept(void **state)
{
	struct {
		char bytes[1 << 20];
	} *rows = NULL, *before;
	volatile size_t n = SIZE_MAX >> 21;
	size_t cap = 0;

	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	skip(); /* its realloc() does not refuse what is too much: it ends the process */
#endif
	assert_true(GROW(rows, 0u, cap));
	before = rows;
	cap = n;
	assert_false(GROW(rows, n, cap));
	assert_ptr_equal(rows, before);
	assert_int_equal(cap, n);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_kept_while_their_array_grows),
		cmocka_unit_test(count_that_would_overflow_is_refused),
		cmocka_unit_test(rows_that_memory_cannot_hold_are_refused_and_the_old_ones_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
