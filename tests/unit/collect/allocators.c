#include "collect/probes/allocators.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names_of_the_table_are_known_with_and_without_version(void **state)
{
	assert_true(allocator_is_name("malloc"));
	assert_true(allocator_is_name("malloc@@GLIBC_2.2.5"));
	assert_true(allocator_is_name("_ZdaPvmSt11align_val_t"));
	assert_true(allocator_is_name("tc_version"));
	assert_false(allocator_is_name("mallo"));
	assert_false(allocator_is_name("malloc_usable_size"));
	assert_false(allocator_is_name(""));
}

static void prefixes_of_jemalloc_go_with_its_functions_alone(void **state)
{
	assert_true(allocator_is_name("_rjem_sdallocx"));
	assert_true(allocator_is_name("_rjem_je_malloc"));
	assert_true(allocator_is_name("je_free"));
	assert_false(allocator_is_name("je_mi_malloc"));
	assert_false(allocator_is_name("_rjem__Znwm"));
	assert_false(allocator_is_name("je_je_malloc"));
}

/* One that returned a pointer and could throw must not be of a shape that has a return probe. */
static void no_form_of_new_that_throws_has_a_return_probe(void **state)
{
	for (const struct allocator *a = allocators; a->symbol; a++) {
		bool is_new = strncmp(a->symbol, "_Zn", 3) == 0 || strstr(a->symbol, "_new");
		bool throws = !strstr(a->symbol, "nothrow") && !strstr(a->symbol, "skip_new");

		if (is_new && throws)
			assert_int_equal(a->shape, MS_SHAPE_NEW);
	}
}

static void no_name_is_there_twice(void **state)
{
	for (const struct allocator *a = allocators; a->symbol; a++)
		for (const struct allocator *b = a + 1; b->symbol; b++)
			assert_string_not_equal(a->symbol, b->symbol);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_table_are_known_with_and_without_version),
		cmocka_unit_test(prefixes_of_jemalloc_go_with_its_functions_alone),
		cmocka_unit_test(no_form_of_new_that_throws_has_a_return_probe),
		cmocka_unit_test(no_name_is_there_twice),
	};

	return cmocka_run_group_tests_name("collect/allocators", tests, NULL, NULL);
}
