#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "base/chunks.h"

static void elements_never_move_and_start_zeroed(void **state)
{
	struct chunks c = CHUNKS_OF(uint64_t);
	uint64_t *first = chunks_add(&c);

	assert_int_equal(*first, 0);
	*first = 77;
	for (uint32_t i = 1; i < 100 * CHUNK_LEN; i++)
		*(uint64_t *)chunks_add(&c) = i;
	assert_ptr_equal(chunks_at(&c, 0), first);
	assert_int_equal(*first, 77);
	for (uint32_t i = 1; i < c.n; i++)
		assert_int_equal(*(uint64_t *)chunks_at(&c, i), i);
	chunks_free(&c);
	assert_int_equal(c.n, 0);
}

static void dropped_element_comes_back_zeroed(void **state)
{
	struct chunks c = CHUNKS_OF(uint64_t);

	for (uint32_t i = 0; i < CHUNK_LEN; i++)
		chunks_add(&c);
	for (int i = 0; i < 3; i++) { /* across the end of a chunk */
		uint64_t *e = chunks_add(&c);

		assert_int_equal(*e, 0);
		*e = 5;
		chunks_drop(&c);
	}
	assert_int_equal(c.n, CHUNK_LEN);
	chunks_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_never_move_and_start_zeroed),
		cmocka_unit_test(dropped_element_comes_back_zeroed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
