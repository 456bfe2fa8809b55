#include "base/rank_bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void bits_before_each_are_counted(void **state)
{
	struct rank_bits b = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(rank_bits_add(&b, i % 7 == 3 || i % 64 == 63), 0);
	for (uint32_t i = 0; i < 10000; i++) {
		bool bit = i % 7 == 3 || i % 64 == 63;

		assert_int_equal(rank_bits_get(&b, i), bit);
		assert_int_equal(rank_bits_before(&b, i), n);
		n += bit;
	}
	assert_int_equal(b.n_set, n);
	rank_bits_free(&b);
}

static void bit_taken_back_leaves_nothing(void **state)
{
	struct rank_bits b = { 0 };

	for (uint32_t i = 0; i < 64; i++)
		rank_bits_add(&b, i == 5);
	for (int i = 0; i < 3; i++) { /* across the end of a word */
		rank_bits_add(&b, true);
		rank_bits_drop(&b);
	}
	assert_int_equal(b.n, 64);
	assert_int_equal(b.n_set, 1);
	rank_bits_add(&b, false);
	assert_false(rank_bits_get(&b, 64));
	assert_int_equal(rank_bits_before(&b, 64), 1);
	rank_bits_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_before_each_are_counted),
		cmocka_unit_test(bit_taken_back_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
