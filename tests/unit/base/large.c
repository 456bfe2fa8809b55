/* Large arrays lie in files without a name, small ones do not; both are zeros at first, grow and keep what they had. */
#include "base/large.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LEAST = 1 << 20 };

/* Is the mapping that has this address one of a file below /tmp? */
static int is_in_file(const void *at)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, end;
	char line[512];
	int found = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &from, &end) == 2 && (uintptr_t)at >= from &&
		    (uintptr_t)at < end)
			found = strstr(line, "/tmp/") != NULL;
	fclose(f);
	return found;
}

static void what_is_large_lies_in_a_file(void **state)
{
	uint8_t *small, *big;

	(void)state;
	large_use("/tmp", LEAST);
	small = large_alloc(LEAST - 1, 1);
	big = large_alloc(LEAST, 1);
	assert_non_null(small);
	assert_non_null(big);
	assert_false(is_in_file(small));
	assert_true(is_in_file(big));
	for (int i = 0; i < LEAST; i++)
		assert_int_equal(big[i], 0);
	large_free(small);
	large_free(big);
	large_use(NULL, 0);
}

static void what_grows_keeps_what_it_had(void **state)
{
	uint32_t *at = NULL;

	(void)state;
	large_use("/tmp", LEAST);
	for (uint32_t n = 16, from = 0; n <= 1 << 20; from = n, n *= 2) {
		at = large_resize(at, n, sizeof(*at));
		assert_non_null(at);
		for (uint32_t i = from; i < n; i++)
			at[i] = i;
	}
	assert_true(is_in_file(at));
	for (uint32_t i = 0; i < 1 << 20; i++)
		assert_int_equal(at[i], i);
	large_free(at);
	large_use(NULL, 0);
}

static void array_that_grows_row_by_row_moves_to_a_file(void **state)
{
	uint32_t *rows = NULL, n = 0, cap = 0;

	(void)state;
	large_use("/tmp", LEAST);
	for (; n < LEAST; n++) {
		assert_true(GROW_LARGE(rows, n, cap));
		rows[n] = n;
	}
	assert_true(is_in_file(rows));
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(rows[i], i);
	large_free(rows);
	large_use(NULL, 0);
}

static void where_there_is_no_folder_it_is_memory(void **state)
{
	void *at;

	(void)state;
	at = large_alloc(LEAST, 4);
	assert_non_null(at);
	assert_false(is_in_file(at));
	large_free(at);
	large_use("/nowhere", LEAST);
	at = large_alloc(LEAST, 4);
	assert_non_null(at);
	large_free(at);
	large_use(NULL, 0);
	assert_null(large_alloc(SIZE_MAX, 2));
	large_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_large_lies_in_a_file),
		cmocka_unit_test(what_grows_keeps_what_it_had),
		cmocka_unit_test(array_that_grows_row_by_row_moves_to_a_file),
		cmocka_unit_test(where_there_is_no_folder_it_is_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
