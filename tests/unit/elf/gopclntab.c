#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <cmocka.h>

#include "elf/gopclntab.h"
#include "go_image.h"

static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };

static struct code_image im;

struct rows {
	uint64_t start[8], end[8];
	int32_t delta[8];
	int n;
};

static int keep(void *arg, uint64_t start, uint64_t end, int32_t delta)
{
	struct rows *rows = arg;

	assert_true(rows->n < 8 && start < end);
	rows->start[rows->n] = start;
	rows->end[rows->n] = end;
	rows->delta[rows->n++] = delta;
	return 0;
}

static int setup(void **state)
{
	code_init(&im);
	return 0;
}

static int open_image(struct gopclntab **ret_tab)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	return gopclntab_open(elf, ret_tab, NULL);
}

static void check_functions(const struct gopclntab *tab)
{
	struct rows rows = { .n = 0 };

	assert_int_equal(gopclntab_n_funcs(tab), GO_FUNCS);
	for (uint32_t i = 0; i < GO_FUNCS; i++) {
		struct go_func f = gopclntab_func(tab, i);

		assert_int_equal(f.start, CODE_TEXT + i * GO_FUNC_BYTES);
		assert_int_equal(f.end, f.start + GO_FUNC_BYTES);
		assert_string_equal(f.name, go_names[i]);
	}
	assert_int_equal(gopclntab_rows(tab, 0, keep, &rows), 0);
	assert_int_equal(rows.n, 3);
	assert_int_equal(rows.delta[0], 0);
	assert_int_equal(rows.start[1], CODE_TEXT + 4);
	assert_int_equal(rows.delta[1], 24);
	assert_int_equal(rows.end[1], CODE_TEXT + 0x30);
	assert_int_equal(rows.delta[2], 0);
	assert_int_equal(rows.end[2], CODE_TEXT + 0x40);
}

static void every_version_says_the_same(void **state)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;

		setup(NULL);
		go_put(&im, magics[i], CODE_TEXT);
		assert_int_equal(open_image(&tab), 0);
		check_functions(tab);
	}
}

static void functions_are_found_by_name_and_say_their_arguments(void **state)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
		uint32_t found = 99;

		setup(NULL);
		go_put(&im, magics[i], CODE_TEXT);
		assert_int_equal(open_image(&tab), 0);
		assert_int_equal(gopclntab_find_name(tab, "runtime.system", &found), -ENOENT);
		assert_int_equal(found, 99);
		assert_int_equal(gopclntab_find_name(tab, "runtime.systemstack", &found), 0);
		assert_int_equal(found, 2);
		/* Up to Go 1.17 they say nothing of registers. */
		assert_int_equal(gopclntab_args(tab, 2), i < 2 ? -EOPNOTSUPP : 16);
	}
}

static void it_is_found_without_sections(void **state)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;

		setup(NULL);
		go_put(&im, magics[i], CODE_TEXT);
		/* Something like it before. */
		memmove(im.frames + 0x40, im.frames, 0x800);
		memset(im.frames + 8, 0xff, 0x38);
		im.frames_len += 0x40;
		im.no_sections = true;
		assert_int_equal(open_image(&tab), 0);
		check_functions(tab);
	}
}

/* Each try reads what follows: a file made of beginnings would cost its square. */
static void it_is_not_looked_for_behind_many_beginnings(void **state)
{
	struct gopclntab *tab = NULL;

	go_put(&im, 0xfffffff0, CODE_TEXT);
	memmove(im.frames + 0x400, im.frames, 0x800);
	memset(im.frames, 0, 0x400);
	im.frames_len = 0xc00;
	for (int i = 0; i < 8; i++)
		memcpy(im.frames + 16 * i, "\xf0\xff\xff\xff\0\0\1\10", 8);
	im.no_sections = true;
	assert_int_equal(open_image(&tab), -EBADMSG);
	assert_null(tab);
}

static void arm64_counts_instructions(void **state)
{
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;

	im.machine = EM_AARCH64;
	go_put(&im, 0xfffffff0, CODE_TEXT);
	assert_int_equal(open_image(&tab), 0);
	check_functions(tab);
}

/* The text's start is filled in when it is loaded. */
static void a_position_independent_one_counts_from_its_text(void **state)
{
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;

	go_put(&im, 0xfffffff1, 0);
	assert_int_equal(open_image(&tab), 0);
	check_functions(tab);
}

static void functions_are_found_by_address(void **state)
{
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
	uint32_t i;

	go_put(&im, 0xfffffff0, CODE_TEXT);
	assert_int_equal(open_image(&tab), 0);
	assert_int_equal(gopclntab_find(tab, CODE_TEXT - 1, &i), -ENOENT);
	assert_int_equal(gopclntab_find(tab, CODE_TEXT + 0x7f, &i), 0);
	assert_int_equal(i, 1);
	assert_int_equal(gopclntab_find(tab, CODE_TEXT + 0x100, &i), -ENOENT);
}

static void what_is_not_gos_is_not_there(void **state)
{
	struct gopclntab *tab = NULL;

	put_usual_cie(&im);
	assert_int_equal(open_image(&tab), -ENOENT);
	setup(NULL);
	go_put(&im, 0xfffffff7, CODE_TEXT);
	assert_int_equal(open_image(&tab), -EOPNOTSUPP);
	assert_null(tab);
}

static void damage_anywhere_keeps_rows_in_their_function(void **state)
{
	for (size_t m = 0; m < sizeof(magics) / sizeof(magics[0]); m++) {
		setup(NULL);
		go_put(&im, magics[m], CODE_TEXT);
		for (size_t at = 0; at < im.frames_len; at++) {
			_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
			uint8_t was = im.frames[at];

			im.frames[at] ^= at % 2 ? 0xff : 0x81;
			if (open_image(&tab) == 0) {
				for (uint32_t i = 0; i < gopclntab_n_funcs(tab) && i < 8; i++) {
					struct rows rows = { .n = 0 };
					struct go_func f = gopclntab_func(tab, i);

					gopclntab_rows(tab, i, keep, &rows);
					if (rows.n)
						assert_true(rows.start[0] == f.start &&
							    rows.end[rows.n - 1] <= f.end);
				}
			}
			im.frames[at] = was;
		}
	}
}

static void gos_own_compiler_is_read(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
	_cleanup_(closep) int fd = open("/usr/lib/go-1.19/bin/go", O_RDONLY | O_CLOEXEC);
	int found = 0;

	if (fd < 0) {
		print_message("needs golang-1.19-go\n");
		skip();
	}
	assert_int_equal(elf_file_open(fd, "go", &elf, NULL), 0);
	assert_true(elf_is_go(elf));
	assert_int_equal(gopclntab_open(elf, &tab, NULL), 0);
	for (uint32_t i = 0; i < gopclntab_n_funcs(tab); i++) {
		struct go_func f = gopclntab_func(tab, i);

		found += !strcmp(f.name, "main.main") || !strcmp(f.name, "runtime.goexit.abi0") ||
			 !strcmp(f.name, "runtime.goexit");
	}
	assert_int_equal(found, 2);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(every_version_says_the_same),
		FACT(functions_are_found_by_name_and_say_their_arguments),
		FACT(it_is_found_without_sections),
		FACT(it_is_not_looked_for_behind_many_beginnings),
		FACT(arm64_counts_instructions),
		FACT(a_position_independent_one_counts_from_its_text),
		FACT(functions_are_found_by_address),
		FACT(what_is_not_gos_is_not_there),
		FACT(damage_anywhere_keeps_rows_in_their_function),
		FACT(gos_own_compiler_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
