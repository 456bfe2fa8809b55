/*
 * GHC's run-time system in files: what its code says, its version, and a stripped program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/ghc_version.h"
#include "lang/ghc.h"

/* StgRun() of 9.0.2. */
static const uint8_t run[] = {
	0x48, 0x83, 0xec, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x81, 0xec, 0x00, 0x40, 0x00, 0x00, 0x48,
	0x89, 0x18, 0x48, 0x89, 0x68, 0x08, 0x4c, 0x89, 0x60, 0x10, 0x4c, 0x89, 0x68, 0x18, 0x4c,
	0x89, 0x70, 0x20, 0x4c, 0x89, 0x78, 0x28, 0x49, 0x89, 0xf5, 0x48, 0x89, 0xf8, 0xff, 0xe0,
};

static void stg_run_says_how_much_it_leaves_free(void **state)
{
	uint8_t code[sizeof(run)];
	uint32_t saved = 0;

	(void)state;
	assert_true(ghc_run_read(run, sizeof(run), &saved));
	assert_int_equal(saved, 0x4000);
	/* One register is not saved. */
	memcpy(code, run, sizeof(run));
	code[16] = 0x08;
	assert_false(ghc_run_read(code, sizeof(code), &saved));
	/* 16 MiB are none that it leaves. */
	memcpy(code, run, sizeof(run));
	code[13] = 1;
	assert_false(ghc_run_read(code, sizeof(code), &saved));
	for (size_t len = 0; len < 37; len++)
		assert_false(ghc_run_read(run, len, &saved));
}

/* stg_returnToStackTop of 9.0.2, from its first instruction on. */
static const uint8_t loads[] = {
	0x49, 0x8b, 0x85, 0x68, 0x03, 0x00, 0x00, 0x48, 0x8b, 0x58, 0x18,
	0x48, 0x8b, 0x6b, 0x10, 0x4c, 0x8d, 0xbb, 0xc0, 0x00, 0x00, 0x00,
};

static void where_stacks_are_is_what_all_code_says(void **state)
{
	uint8_t code[3 * sizeof(loads) + 5];
	struct ghc_offsets o = { 0 };

	(void)state;
	memset(code, 0x90, sizeof(code));
	memcpy(code + 1, loads, sizeof(loads));
	memcpy(code + 40, loads, sizeof(loads));
	assert_true(ghc_offsets_read(code, sizeof(code), &o));
	assert_int_equal(o.reg_tso, 0x368);
	assert_int_equal(o.tso_stack, 0x18);
	assert_int_equal(o.stack_sp, 0x10);
	/* Two that differ. */
	code[40 + 10] = 0x20;
	assert_false(ghc_offsets_read(code, sizeof(code), &o));
	/* Nothing. */
	assert_false(ghc_offsets_read(code + 2, 20, &o));
	assert_false(ghc_offsets_read(code, 0, &o));
}

static void versions_are_read(void **state)
{
	(void)state;
	assert_int_equal(ghc_version_of("9.0.2", 5), 0x090002);
	assert_int_equal(ghc_version_of("8.10.7\0", 7), 0x080a07);
	assert_int_equal(ghc_version_of("9.12.1", 6), 0x090c01);
	assert_int_equal(ghc_version_of("9.0.2", 4), 0);
	assert_int_equal(ghc_version_of("9.0", 3), 0);
	assert_int_equal(ghc_version_of("7.10.3", 6), 0);
	assert_int_equal(ghc_version_of("9.0.2021", 8), 0);
	assert_int_equal(ghc_version_of("", 0), 0);
}

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

/* Debian 12's, of 90 MB of Haskell code, which has neither names nor its compiler's. */
static void a_stripped_program_is_known(void **state)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;

	(void)state;
	assert_int_equal(read_image("/usr/bin/pandoc", &image), 0);
	assert_int_equal(lang_image_lang(image), MS_LANG_GHC);
	assert_true(lang_is_compiled(MS_LANG_GHC));
	assert_int_equal(image->ghc.version, 0x090002);
	assert_int_equal(image->ghc.run_saved, 0x4000);
	assert_true(image->ghc.has_offsets);
	assert_int_equal(image->ghc.offsets.reg_tso, 0x368);
}

static void programs_of_c_are_none(void **state)
{
	struct lang_image *image = NULL;

	(void)state;
	assert_false(lang_is_compiled(MS_LANG_PYTHON));
	assert_int_equal(read_image("/proc/self/exe", &image), -ENOENT);
	assert_int_equal(read_image("/bin/sh", &image), -ENOENT);
	assert_null(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stg_run_says_how_much_it_leaves_free),
		cmocka_unit_test(where_stacks_are_is_what_all_code_says),
		cmocka_unit_test(versions_are_read),
		cmocka_unit_test(a_stripped_program_is_known),
		cmocka_unit_test(programs_of_c_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
