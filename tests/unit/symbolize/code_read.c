/* A function's instructions, from an image whose every byte is known; lines, from this test's own file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolize/code_read.h"
#include "unit/elf/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fixture {
	struct dict *d;
	struct image image;
	struct symbolize_opts files;
	bool own; /* /proc/self/exe instead */
	struct code_answer answer;
};

static int open_module(void *ctx, module_id m, struct err *e)
{
	struct fixture *f = ctx;
	int fd;

	if (f->own)
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	fd = memfd_create("image", MFD_CLOEXEC);
	assert_int_equal(write(fd, f->image.bytes, f->image.len), f->image.len);
	return fd;
}

#if defined(__x86_64__)
enum { X86 = 1 };
#else
enum { X86 = 0 }; /* the image's code is read there alone */
#endif

/* The loop of 5 bytes; a call of the other function, and a return. */
static const uint8_t code[] = { 0x31, 0xc0, 0xff, 0xc0, 0x75, 0xfc,
				0xe8, 0xf5, 0x00, 0x00, 0x00, 0xc3 };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->files = (struct symbolize_opts){ .open_module = open_module, .ctx = f };
	image_init(&f->image);
	image_sym(&f->image, "_ZN3app4spinEv", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x100,
		  sizeof(code));
	image_sym(&f->image, "other", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x200, 8);
	image_finish(&f->image);
	memcpy(f->image.bytes + IMAGE_TEXT_OFF + 0x100, code, sizeof(code));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	code_answer_fini(&f->answer);
	dict_free(f->d);
	free(f);
	return 0;
}

static void read_at(struct fixture *f, const char *build_id, uint64_t vaddr, const char *name)
{
	const struct code_wanted wanted = { vaddr, name };
	struct module m = { .kind = MODULE_ELF,
			    .path = dict_string(f->d, "/opt/app"),
			    .build_id = dict_string(f->d, build_id) };

	code_answer_fini(&f->answer);
	assert_int_equal(code_read(f->d, &f->files, dict_module(f->d, &m), &wanted, 1, SYNTAX_ATT,
				   20000, &f->answer),
			 0);
}

#if defined(__x86_64__)
static void a_symbol_is_disassembled_with_its_jumps_and_calls(void **state)
{
	struct fixture *f = *state;
	const struct code_text *c = &f->answer.functions[0];

	read_at(f, "", IMAGE_TEXT + 0x104, "app::spin()");
	assert_int_equal(f->answer.n, 1);
	assert_string_equal(c->name, "app::spin()");
	assert_int_equal(c->start, IMAGE_TEXT + 0x100);
	assert_int_equal(c->n, 5);
	assert_string_equal(c->instructions[1].text, "inc %eax");
	assert_int_equal(c->instructions[2].vaddr, IMAGE_TEXT + 0x104);
	assert_int_equal(c->instructions[2].jump, 2);
	assert_null(c->instructions[2].target_name);
	assert_int_equal(c->instructions[3].jump, 0);
	assert_string_equal(c->instructions[3].target_name, "other");
	assert_false(c->cut);
	assert_string_equal(c->no_lines, "it has no debug info, and none was found for it");
}
#endif

static void another_build_is_not_shown(void **state)
{
	struct fixture *f = *state;

	read_at(f, "0123456789abcdef", IMAGE_TEXT + 0x104, "app::spin()");
	assert_int_equal(f->answer.n, 0);
	assert_string_equal(f->answer.problem, "file changed");
}

static void addresses_that_name_another_function_are_not_the_files(void **state)
{
	struct fixture *f = *state;

	if (!X86)
		skip();
	read_at(f, "", IMAGE_TEXT + 0x204, "app::spin()");
	assert_int_equal(f->answer.n, 0);
	assert_string_equal(f->answer.problem, "the profile's addresses are not those of the file");
}

static int own_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	*(uint64_t *)bias = info->dlpi_addr;
	return 1; /* the first is the program */
}

__attribute__((noinline)) static int add_up(const int *of, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += of[i] * (i + sum);
	return sum;
}

static void instructions_have_the_lines_they_were_compiled_from(void **state)
{
	struct fixture *f = *state;
	const struct code_text *c = &f->answer.functions[0];
	static const int of[] = { 1, 2, 3 };
	uint64_t bias = 0;
	bool loop = false;

	assert_int_not_equal(add_up(of, 3), 0);
	dl_iterate_phdr(own_bias, &bias);
	f->own = true;
	read_at(f, "", (uint64_t)(uintptr_t)add_up - bias, "add_up");
	assert_int_equal(f->answer.n, 1);
	assert_null(c->no_lines);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct code_origin *o = c->instructions[i].origins;

		if (!c->instructions[i].n_origins)
			continue;
		assert_string_equal(strrchr(o->file, '/'), "/code_read.c");
		loop |= c->instructions[i].jump != 0;
		assert_true(o->line > 100 && o->line < 160);
	}
	assert_true(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test_setup_teardown(a_symbol_is_disassembled_with_its_jumps_and_calls,
						setup, teardown),
#endif
		cmocka_unit_test_setup_teardown(another_build_is_not_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(
			addresses_that_name_another_function_are_not_the_files, setup, teardown),
		cmocka_unit_test_setup_teardown(instructions_have_the_lines_they_were_compiled_from,
						setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
