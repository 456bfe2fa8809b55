#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elf/sdt.h"
#include "unit/elf/code_image.h"

#include <errno.h>
#include <stdlib.h>

static struct code_image im;

static void begin(void)
{
	code_init(&im);
	im.frames_name = ".note.stapsdt";
	im.frames_flags = 0;
}

static void align(void)
{
	while (im.frames_len % 4)
		put8(&im, 0);
}

static void put_note(const char *owner, uint32_t type, uint64_t place, uint64_t semaphore,
		     const char *provider, const char *name, const char *args)
{
	put32(&im, (uint32_t)strlen(owner) + 1);
	put32(&im, (uint32_t)(24 + strlen(provider) + strlen(name) + strlen(args) + 3));
	put32(&im, type);
	put(&im, owner, strlen(owner) + 1);
	align();
	put64(&im, place);
	put64(&im, 0);
	put64(&im, semaphore);
	put(&im, provider, strlen(provider) + 1);
	put(&im, name, strlen(name) + 1);
	put(&im, args, strlen(args) + 1);
	align();
}

static struct sdt_notes *load(int want)
{
	struct sdt_notes *notes = NULL;
	struct elf_file *elf;

	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(sdt_notes_load(elf, &notes, NULL), want);
	elf_file_close(elf);
	return notes;
}

static void notes_say_where_in_the_file_their_places_are(void **state)
{
	struct sdt_notes *notes;

	(void)state;
	begin();
	put_note("stapsdt", 3, CODE_TEXT + 0x10, 0, "otel_memory", "alloc", "8@%rdi 8@%rsi 8@%rdx");
	put_note("stapsdt", 3, CODE_TEXT + 0x20, CODE_TEXT + 0x80, "other", "x", "");
	notes = load(0);
	assert_int_equal(sdt_notes_count(notes), 2);
	assert_int_equal(sdt_notes_at(notes, 0)->off, CODE_TEXT_OFF + 0x10);
	assert_int_equal(sdt_notes_at(notes, 0)->semaphore_off, 0);
	assert_string_equal(sdt_notes_at(notes, 0)->provider, "otel_memory");
	assert_string_equal(sdt_notes_at(notes, 0)->name, "alloc");
	assert_string_equal(sdt_notes_at(notes, 0)->args, "8@%rdi 8@%rsi 8@%rdx");
	assert_int_equal(sdt_notes_at(notes, 1)->semaphore_off, CODE_TEXT_OFF + 0x80);
	sdt_notes_free(notes);
}

static void a_note_that_does_not_hold_together_is_left_out(void **state)
{
	struct sdt_notes *notes;

	(void)state;
	begin();
	put_note("GNU", 3, CODE_TEXT, 0, "p", "not-ours", "");
	put_note("stapsdt", 2, CODE_TEXT, 0, "p", "old", "");
	put_note("stapsdt", 3, 0x10, 0, "p", "nowhere", "");
	put_note("stapsdt", 3, CODE_TEXT, 0x10, "p", "semaphore-nowhere", "");
	put32(&im, 8); /* its strings have no end */
	put32(&im, 28);
	put32(&im, 3);
	put(&im, "stapsdt", 8);
	put64(&im, CODE_TEXT);
	put64(&im, 0);
	put64(&im, 0);
	put32(&im, 0x61616161);
	put_note("stapsdt", 3, CODE_TEXT + 1, 0, "p", "good", "");
	notes = load(0);
	assert_int_equal(sdt_notes_count(notes), 1);
	assert_string_equal(sdt_notes_at(notes, 0)->name, "good");
	sdt_notes_free(notes);
}

static void a_note_longer_than_the_section_ends_it(void **state)
{
	struct sdt_notes *notes;

	(void)state;
	begin();
	put_note("stapsdt", 3, CODE_TEXT + 1, 0, "p", "good", "");
	put32(&im, 8);
	put32(&im, 0xfffffff0);
	put32(&im, 3);
	put(&im, "stapsdt", 8);
	notes = load(0);
	assert_int_equal(sdt_notes_count(notes), 1);
	sdt_notes_free(notes);
}

static void a_file_without_the_section_has_none(void **state)
{
	(void)state;
	begin();
	im.frames_name = ".other";
	assert_null(load(-ENOENT));
}

static void check_arg(uint16_t machine, const char *args, uint32_t ix, enum sdt_arg_kind kind,
		      int size, int reg, int64_t value)
{
	struct sdt_arg arg;

	assert_int_equal(sdt_arg_parse(machine, args, ix, &arg), 0);
	assert_int_equal(arg.kind, kind);
	assert_int_equal(arg.size, abs(size));
	assert_int_equal(arg.is_signed, size < 0);
	assert_int_equal(arg.reg, reg);
	assert_int_equal(arg.value, value);
}

static void arguments_are_registers_memory_and_numbers(void **state)
{
	const char *x86 = "8@%rdi -4@%eax 8@-16(%rbp) 4@$-7 8@(%rsp) 1@%sil  8@$0x10 8@24(%r15)";
	const char *arm = "8@x0 -4@w3 8@[sp, 16] 8@[x29] 4@12 8@[x2, #-8] 8@sp";

	(void)state;
	check_arg(EM_X86_64, x86, 0, SDT_ARG_REG, 8, 5, 0);
	check_arg(EM_X86_64, x86, 1, SDT_ARG_REG, -4, 0, 0);
	check_arg(EM_X86_64, x86, 2, SDT_ARG_MEMORY, 8, 6, -16);
	check_arg(EM_X86_64, x86, 3, SDT_ARG_CONST, 4, 0, -7);
	check_arg(EM_X86_64, x86, 4, SDT_ARG_MEMORY, 8, 7, 0);
	check_arg(EM_X86_64, x86, 5, SDT_ARG_REG, 1, 4, 0);
	check_arg(EM_X86_64, x86, 6, SDT_ARG_CONST, 8, 0, 16);
	check_arg(EM_X86_64, x86, 7, SDT_ARG_MEMORY, 8, 15, 24);
	check_arg(EM_AARCH64, arm, 0, SDT_ARG_REG, 8, 0, 0);
	check_arg(EM_AARCH64, arm, 1, SDT_ARG_REG, -4, 3, 0);
	check_arg(EM_AARCH64, arm, 2, SDT_ARG_MEMORY, 8, 31, 16);
	check_arg(EM_AARCH64, arm, 3, SDT_ARG_MEMORY, 8, 29, 0);
	check_arg(EM_AARCH64, arm, 4, SDT_ARG_CONST, 4, 0, 12);
	check_arg(EM_AARCH64, arm, 5, SDT_ARG_MEMORY, 8, 2, -8);
	check_arg(EM_AARCH64, arm, 6, SDT_ARG_REG, 8, 31, 0);
}

static void what_is_not_understood_is_not_guessed(void **state)
{
	static const char *const forms[] = {
		"%rdi",
		"8@",
		"8@%xmm0",
		"8@(%rax,%rbx,2)",
		"8@foo(%rip)",
		"3@%rdi",
		"8@%rdi,8@",
		"8@8(%rax",
		"8@$",
		"8@(",
		"99999999999999999999999@%rax",
	};
	struct sdt_arg arg = { .size = 77 };

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		assert_int_equal(sdt_arg_parse(EM_X86_64, forms[i], 0, &arg), -EOPNOTSUPP);
	assert_int_equal(sdt_arg_parse(EM_AARCH64, "8@[x0, x1]", 0, &arg), -EOPNOTSUPP);
	assert_int_equal(sdt_arg_parse(EM_AARCH64, "8@x31", 0, &arg), -EOPNOTSUPP);
	assert_int_equal(sdt_arg_parse(EM_386, "4@%eax", 0, &arg), -EOPNOTSUPP);
	assert_int_equal(sdt_arg_parse(EM_X86_64, "8@%rdi", 1, &arg), -ENOENT);
	assert_int_equal(sdt_arg_parse(EM_X86_64, "", 0, &arg), -ENOENT);
	assert_int_equal(arg.size, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes_say_where_in_the_file_their_places_are),
		cmocka_unit_test(a_note_that_does_not_hold_together_is_left_out),
		cmocka_unit_test(a_note_longer_than_the_section_ends_it),
		cmocka_unit_test(a_file_without_the_section_has_none),
		cmocka_unit_test(arguments_are_registers_memory_and_numbers),
		cmocka_unit_test(what_is_not_understood_is_not_guessed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
