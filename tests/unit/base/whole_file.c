#include "base/whole_file.h"

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

static char dir[64], path[96];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/memscope-whole-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void write_file(const char *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void all_bytes_come_and_a_null_behind_them(void **state)
{
	char *bytes;
	size_t len;

	(void)state;
	write_file("a\0b", 3);
	assert_int_equal(whole_file_read(path, 3, "a text", &bytes, &len, NULL), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "a\0b", 4);
	free(bytes);
	write_file("", 0);
	assert_int_equal(whole_file_read(path, 3, "a text", &bytes, &len, NULL), 0);
	assert_int_equal(len, 0);
	assert_string_equal(bytes, "");
	free(bytes);
}

static void what_is_too_large_or_no_file_is_refused_with_a_sentence(void **state)
{
	struct err e = { 0 };
	char *bytes;
	size_t len;

	(void)state;
	assert_int_equal(whole_file_read(path, 3, "a text", &bytes, &len, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "/file: cannot be opened: No such file"));
	write_file("abcd", 4);
	assert_int_equal(whole_file_read(path, 3, "a text", &bytes, &len, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "/file: not a text"));
	assert_int_equal(whole_file_read(dir, 1 << 20, "a text", &bytes, &len, &e), -EBADMSG);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for who would write into it */
	assert_int_equal(whole_file_read(path, 3, "a text", &bytes, &len, &e), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_bytes_come_and_a_null_behind_them, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			what_is_too_large_or_no_file_is_refused_with_a_sentence, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
