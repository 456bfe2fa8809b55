#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/small_file.h"

static char name[] = "/tmp/memscope-small_file-XXXXXX";

static void put(const char *text)
{
	int fd = open(name, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void the_newline_at_the_end_alone_is_left_out(void **state)
{
	char buf[32];

	put("two\nlines\n\n");
	assert_int_equal(small_file_read(AT_FDCWD, name, buf, sizeof(buf)), 10);
	assert_string_equal(buf, "two\nlines\n");
	put("");
	assert_int_equal(small_file_read(AT_FDCWD, name, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
}

static void what_does_not_fit_is_cut(void **state)
{
	char buf[4];

	put("abcdef");
	assert_int_equal(small_file_read(AT_FDCWD, name, buf, sizeof(buf)), 3);
	assert_string_equal(buf, "abc");
}

static void a_path_is_below_the_directory_that_is_given(void **state)
{
	int dir = open("/proc/self", O_RDONLY | O_DIRECTORY);
	char buf[64], pid[32];

	snprintf(pid, sizeof(pid), "%d (", (int)getpid());
	assert_true(small_file_read(dir, "stat", buf, sizeof(buf)) > 0);
	assert_memory_equal(buf, pid, strlen(pid));
	close(dir);
}

static void no_file_is_an_error_and_an_empty_string(void **state)
{
	char buf[8] = "before";

	assert_int_equal(small_file_read(AT_FDCWD, "/proc/self/nothing", buf, sizeof(buf)),
			 -ENOENT);
	assert_string_equal(buf, "");
	/* It opens, and cannot be read. */
	strcpy(buf, "before");
	assert_int_equal(small_file_read(AT_FDCWD, "/proc/self", buf, sizeof(buf)), -EISDIR);
	assert_string_equal(buf, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newline_at_the_end_alone_is_left_out),
		cmocka_unit_test(what_does_not_fit_is_cut),
		cmocka_unit_test(a_path_is_below_the_directory_that_is_given),
		cmocka_unit_test(no_file_is_an_error_and_an_empty_string),
	};
	int fd = mkstemp(name), r;

	close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(name);
	return r;
}
