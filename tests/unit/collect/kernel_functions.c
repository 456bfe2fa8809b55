#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/boot_file.h"
#include "cache_fixture.h"
#include "collect/session/kernel_functions.h"

static const char *const names[] = { "vfs_read", "no_such_function" };
static struct kernel_function found(uint32_t i)
{
	_cleanup_(kernel_functions_freep) struct kernel_functions *k =
		kernel_functions_begin(names, 2);

	assert_non_null(k);
	return kernel_functions_found(k)[i];
}

static void keep(const char *text)
{
	assert_int_equal(
		boot_file_write("kernel-functions", &(struct boot_part){ text, strlen(text) }, 1),
		0);
}

static void what_is_kept_of_this_boot_is_taken(void **state)
{
	(void)state;
	keep("vfs_read 1234 10\nno_such_function 0 0\n\n");
	assert_int_equal(found(0).addr, 0x1234);
	assert_int_equal(found(0).size, 0x10);
	assert_int_equal(found(1).addr, 0);
}

/* Then the kernel is asked, which says zeros where addresses are hidden. */
static void what_is_kept_of_other_names_or_is_damaged_is_not(void **state)
{
	static const char *const damaged[] = {
		"vfs_write 1234 10\nno_such_function 0 0\n\n",
		"vfs_read 1234 10\n\n",
		"vfs_read2 1234 10\nno_such_function 0 0\n\n",
		"vfs_read 1234\nno_such_function 0 0\n\n",
		"vfs_read 1234 10 7\nno_such_function 0 0\n\n",
		"vfs_read 1234 10",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		keep(damaged[i]);
		assert_int_not_equal(found(0).addr, 0x1234);
		assert_int_equal(found(1).addr, 0);
	}
}

static void what_the_kernel_said_is_kept(void **state)
{
	struct kernel_function first = found(0);
	struct boot_file file;

	(void)state;
	if (!first.addr)
		skip(); /* addresses are hidden */
	assert_int_equal(boot_file_open("kernel-functions", &file), 0);
	assert_memory_equal(file.data, "vfs_read ", 9);
	boot_file_close(&file);
	assert_int_equal(found(0).addr, first.addr);
	assert_int_equal(found(0).size, first.size);
	assert_true(first.size > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_kept_of_this_boot_is_taken,
						cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(what_is_kept_of_other_names_or_is_damaged_is_not,
						cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(what_the_kernel_said_is_kept, cache_fixture_begin,
						cache_fixture_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
