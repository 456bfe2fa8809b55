#include "base/id_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool has(const struct id_index *x, uint32_t hash, uint32_t ix)
{
	struct id_at at = id_index_begin(x, hash);
	uint32_t n = 0, found;

	while (id_index_next(&at, &found))
		n += found == ix;
	assert_true(n < 2);
	return n;
}

static void empty_index_has_nothing(void **state)
{
	struct id_index x = { 0 };

	assert_false(has(&x, 7, 0));
	id_index_free(&x);
}

static void all_of_one_hash_are_found_and_none_of_another(void **state)
{
	struct id_index x = { 0 };

	for (uint32_t i = 0; i < 30000; i++)
		assert_int_equal(id_index_add(&x, i % 1000 * 0x9e3779b9u, i), 0);
	assert_int_equal(x.n, 30000);
	for (uint32_t i = 0; i < 30000; i++) {
		assert_true(has(&x, i % 1000 * 0x9e3779b9u, i));
		assert_false(has(&x, (i + 1) % 1000 * 0x9e3779b9u, i));
	}
	assert_true(x.n <= (x.mask + 1) / 8 * 5 + 1);
	id_index_free(&x);
	assert_int_equal(x.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_index_has_nothing),
		cmocka_unit_test(all_of_one_hash_are_found_and_none_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
