#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cache_dir.h"
#include "base/cleanup.h"

static char top[64], path[96];

static int begin(void **state)
{
	(void)state;
	strcpy(top, "/tmp/memscope-cache-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/a/b", top);
	return 0;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void what_is_missing_of_it_is_made_and_the_last_part_is_ours_alone(void **state)
{
	_cleanup_(closep) int dir = cache_dir_open(path, NULL);
	struct stat st;

	(void)state;
	assert_true(dir >= 0);
	assert_int_equal(fstat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

static void one_that_others_can_enter_is_not_used(void **state)
{
	_cleanup_(closep) int dir = cache_dir_open(path, NULL);
	struct err e = { 0 };

	(void)state;
	assert_true(dir >= 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(cache_dir_open(path, &e), -EPERM);
	assert_non_null(strstr(e.msg, "0700"));
}

static void the_environment_names_another_one_or_none(void **state)
{
	int dir;

	(void)state;
	assert_int_equal(setenv(CACHE_DIR_ENV, path, 1), 0);
	dir = cache_dir_open(NULL, NULL);
	assert_true(dir >= 0);
	close(dir);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(setenv(CACHE_DIR_ENV, "", 1), 0);
	assert_int_equal(cache_dir_open(NULL, NULL), -ENOENT);
	unsetenv(CACHE_DIR_ENV);
}

static void a_file_is_replaced_or_kept_as_a_whole(void **state)
{
	_cleanup_(closep) int dir = cache_dir_open(path, NULL), fd = -1;
	uint64_t bytes;
	char got[8];

	(void)state;
	assert_int_equal(cache_dir_file(dir, "x", &bytes), -ENOENT);
	assert_int_equal(cache_dir_write(dir, "x", "old", 3, false), 0);
	assert_int_equal(cache_dir_write(dir, "x", "longer", 6, true), 0);
	fd = cache_dir_file(dir, "x", &bytes);
	assert_true(fd >= 0);
	assert_int_equal(bytes, 3);
	closep(&fd);
	assert_int_equal(cache_dir_write(dir, "x", "longer", 6, false), 0);
	fd = cache_dir_file(dir, "x", &bytes);
	assert_int_equal(bytes, 6);
	assert_int_equal(read(fd, got, sizeof(got)), 6);
	assert_memory_equal(got, "longer", 6);
}

static void a_file_that_others_can_write_is_not_there(void **state)
{
	_cleanup_(closep) int dir = cache_dir_open(path, NULL);
	char name[128];
	uint64_t bytes;

	(void)state;
	assert_int_equal(cache_dir_write(dir, "x", "abc", 3, false), 0);
	snprintf(name, sizeof(name), "%s/x", path);
	assert_int_equal(chmod(name, 0620), 0);
	assert_int_equal(cache_dir_file(dir, "x", &bytes), -ENOENT);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(symlink("/etc/passwd", name), 0);
	assert_int_equal(cache_dir_file(dir, "x", &bytes), -ENOENT);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(cache_dir_file(dir, "x", &bytes), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_is_missing_of_it_is_made_and_the_last_part_is_ours_alone, begin, end),
		cmocka_unit_test_setup_teardown(one_that_others_can_enter_is_not_used, begin, end),
		cmocka_unit_test_setup_teardown(the_environment_names_another_one_or_none, begin,
						end),
		cmocka_unit_test_setup_teardown(a_file_is_replaced_or_kept_as_a_whole, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_others_can_write_is_not_there, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
