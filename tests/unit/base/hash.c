#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct element {
	uint64_t before;
	uint32_t key;
	uint32_t value;
	UT_hash_handle hh;
};

static void a_new_element_has_its_key_and_nothing_else(void **state)
{
	struct element *table = NULL, *e;
	uint32_t key = 7;

	e = hash_new(table, key, &key);
	assert_non_null(e);
	assert_int_equal(e->key, 7);
	assert_int_equal(e->before, 0);
	assert_int_equal(e->value, 0);
	hash_free(table);
	assert_null(table);
}

static void one_key_is_one_element(void **state)
{
	struct element *table = NULL;

	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t key = i % 1000;
		struct element *e = hash_get(table, key, &key);

		assert_non_null(e);
		assert_int_equal(e->key, key);
		assert_int_equal(e->value++, i / 1000);
	}
	assert_int_equal(HASH_COUNT(table), 1000);
	hash_free(table);
}

static void a_table_of_nothing_is_freed(void **state)
{
	struct element *table = NULL;

	hash_free(table);
	assert_null(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_element_has_its_key_and_nothing_else),
		cmocka_unit_test(one_key_is_one_element),
		cmocka_unit_test(a_table_of_nothing_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
