/*
 * CPython in files: known versions, a stripped interpreter, and files that have none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lang/python.h"

static int read_image(const char *path, struct lang_image **ret_image)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err e;

	if (fd < 0)
		skip();
	assert_int_equal(elf_file_open(fd, path, &elf, &e), 0);
	return lang_image_read(elf, ret_image, &e);
}

static void versions_are_read(void **state)
{
	assert_int_equal(python_version_of("3.8.18"), 0x030812);
	assert_int_equal(python_version_of("3.10.13+"), 0x030a0d);
	assert_int_equal(python_version_of("3.14.0rc2"), 0x030e00);
	assert_int_equal(python_version_of("3.9.0a1"), 0x030900);
	assert_int_equal(python_version_of("3.9"), 0);
	assert_int_equal(python_version_of("3.9."), 0);
	assert_int_equal(python_version_of("3.9.100"), 0);
	assert_int_equal(python_version_of("3.1000.1"), 0);
	assert_int_equal(python_version_of("2.7.18"), 0);
	assert_int_equal(python_version_of("3.9.1.2"), 0);
	assert_int_equal(python_version_of("3.9.1 (main"), 0);
	assert_int_equal(python_version_of(""), 0);
	assert_int_equal(python_version_of("%.80s (%.80s) %.80s"), 0);
}

/* Debian's is stripped, linked statically, and has a fifth of its loop elsewhere. */
static void a_stripped_interpreter_has_all_its_parts(void **state)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	const struct python_image *py;

	assert_int_equal(read_image("/usr/bin/python3.11", &image), 0);
	assert_int_equal(lang_image_lang(image), MS_LANG_PYTHON);
	assert_false(lang_image_is_libc(image));
	py = &image->python;
	assert_int_equal(py->version >> 8, 0x030b);
	assert_true(py->runtime && py->runtime_size > 4096 && py->code_type && py->tstate.len);
	assert_in_range(image->n_ranges, 2, MS_LANG_RANGES);
	for (uint32_t i = 0; i < image->n_ranges; i++)
		for (uint32_t k = 0; k < image->n_ranges; k++)
			assert_true(i == k || image->range[i].end <= image->range[k].start ||
				    image->range[i].start >= image->range[k].end);
}

static void files_without_a_runtime_have_none(void **state)
{
	struct lang_image *image = NULL;

	assert_int_equal(read_image("/proc/self/exe", &image), -ENOENT);
	assert_int_equal(read_image("/bin/sh", &image), -ENOENT);
	assert_null(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_read),
		cmocka_unit_test(a_stripped_interpreter_has_all_its_parts),
		cmocka_unit_test(files_without_a_runtime_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
