#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/boot_file.h"
#include "cache_fixture.h"

/* Overwrites what is at `off` of the file. */
static void damage(off_t off, const char *with)
{
	_cleanup_(closep) int fd = -1;
	char path[128];

	snprintf(path, sizeof(path), "%s/facts", cache_fixture_dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, with, strlen(with), off), strlen(with));
}

static void what_was_written_in_this_boot_is_there(void **state)
{
	struct boot_file file;

	(void)state;
	assert_int_equal(boot_file_open("facts", &file), -ENOENT);
	assert_int_equal(boot_file_write("facts", &(struct boot_part){ "1234567", 7 }, 1), 0);
	assert_int_equal(boot_file_open("facts", &file), 0);
	assert_int_equal(file.len, 7);
	assert_memory_equal(file.data, "1234567", 7);
	assert_int_equal((uintptr_t)file.data % 16, 0);
	memcpy(file.data, "x", 1); /* ours */
	boot_file_close(&file);
	assert_int_equal(boot_file_open("facts", &file), 0);
	assert_memory_equal(file.data, "1234567", 7);
	boot_file_close(&file);
}

static void that_of_another_boot_or_version_is_not(void **state)
{
	struct boot_file file;

	(void)state;
	assert_int_equal(boot_file_write("facts", &(struct boot_part){ "1234567", 7 }, 1), 0);
	damage(20, "#"); /* in the boot's number */
	assert_int_equal(boot_file_open("facts", &file), -ENOENT);
	assert_null(file.mapped);
	assert_int_equal(boot_file_write("facts", &(struct boot_part){ "1234567", 7 }, 1), 0);
	damage(0, "x");
	assert_int_equal(boot_file_open("facts", &file), -ENOENT);
}

static void parts_are_behind_each_other(void **state)
{
	struct boot_file file;

	(void)state;
	assert_int_equal(
		boot_file_write("facts",
				(const struct boot_part[]){ { "12", 2 }, { "", 0 }, { "345", 3 } },
				3),
		0);
	assert_int_equal(boot_file_open("facts", &file), 0);
	assert_int_equal(file.len, 5);
	assert_memory_equal(file.data, "12345", 5);
	boot_file_close(&file);
}

static void nothing_behind_the_header_is_nothing(void **state)
{
	struct boot_file file;

	(void)state;
	assert_int_equal(boot_file_write("facts", &(struct boot_part){ "", 0 }, 1), 0);
	assert_int_equal(boot_file_open("facts", &file), -ENOENT);
}

static void without_a_directory_there_is_none(void **state)
{
	struct boot_file file;

	(void)state;
	setenv(CACHE_DIR_ENV, "", 1);
	assert_true(boot_file_write("facts", &(struct boot_part){ "1", 1 }, 1) < 0);
	assert_int_equal(boot_file_open("facts", &file), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_written_in_this_boot_is_there,
						cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(that_of_another_boot_or_version_is_not,
						cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(parts_are_behind_each_other, cache_fixture_begin,
						cache_fixture_end),
		cmocka_unit_test_setup_teardown(nothing_behind_the_header_is_nothing,
						cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(without_a_directory_there_is_none,
						cache_fixture_begin, cache_fixture_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
