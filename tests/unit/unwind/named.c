#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "table_image.h"

static void nobody_calls_the_entry_point(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	im.entry = F - 0x20;
	put_usual_cie(&im);
	put_fde(&im, F, 0x100, INSNS(DW_CFA_nop));
	table = table_of_image();
	assert_int_equal(kind_at(table, F - 0x21), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F - 0x20), MS_RULE_END);
	assert_int_equal(kind_at(table, F - 1), MS_RULE_END);
	assert_int_equal(kind_at(table, F), MS_RULE_REG);
}

static void listed_symbols_say_what_cfi_does_not(void **state)
{
	/* mov $56,%al; syscall; test %eax,%eax; jnz; xor %ebp,%ebp; pop %rdi; call *%r9 */
	static const uint8_t clone[] = { 0xb0, 0x38, 0x0f, 0x05, 0x85, 0xc0, 0x75,
					 0x06, 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1 };
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	put_usual_cie(&im);
	put_fde(&im, F, 0x100, INSNS(DW_CFA_nop));
	code_sym(&im, "_start", F + 0x10, 0x10);
	code_sym(&im, "__clone", F + 0x200, sizeof(clone));
	memcpy(code_text(&im, F + 0x200), clone, sizeof(clone));
	code_sym(&im, "PushAllRegistersAndIterateStack", F + 0x280, 0);
	code_sym(&im, "Builtins_Abort", F + 0x300, 0x20);
	code_sym(&im, "Builtins_Call", F + 0x340, 0x20);
	code_sym(&im, "other", F + 0x400, 0x20);
	table = table_of_image();
	check_table(table);
	assert_int_equal(kind_at(table, F + 0xf), MS_RULE_REG);
	assert_int_equal(kind_at(table, F + 0x10), MS_RULE_END);
	assert_int_equal(kind_at(table, F + 0x20), MS_RULE_REG);
	assert_int_equal(kind_at(table, F + 0x207), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x208), MS_RULE_END);
	assert_int_equal(kind_at(table, F + 0x20d), MS_RULE_END);
	assert_int_equal(kind_at(table, F + 0x20e), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x280), MS_RULE_FP);
	assert_int_equal(kind_at(table, F + 0x2b0), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x2ff), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x330), MS_RULE_FP);
	assert_int_equal(kind_at(table, F + 0x360), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x400), MS_RULE_NONE);
}

/* An image whose .text is 2 MiB: what is behind the first 4 KiB is whatever lies there. */
static struct unwind_table *table_of_large_image(void)
{
	enum { LARGE = 2 << 20 };
	_cleanup_(freep) uint8_t *bytes = calloc(1, CODE_TEXT_OFF + LARGE);
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct unwind_table *table = NULL;
	struct err e = { 0 };
	Elf64_Ehdr *eh;

	assert_non_null(bytes);
	code_finish(&im);
	memcpy(bytes, im.bytes, im.len);
	eh = (Elf64_Ehdr *)(void *)bytes;
	((Elf64_Shdr *)(void *)(bytes + eh->e_shoff))[1].sh_size = LARGE;
	((Elf64_Phdr *)(void *)(bytes + eh->e_phoff))[0].p_filesz = LARGE;
	((Elf64_Phdr *)(void *)(bytes + eh->e_phoff))[0].p_memsz = LARGE;
	assert_int_equal(elf_file_open_memory(bytes, CODE_TEXT_OFF + LARGE, "image", &elf, &e), 0);
	if (unwind_table_build(elf, &table, &e) < 0)
		fail_msg("%s", e.msg);
	return table;
}

static void builtins_of_a_stripped_v8_keep_frame_pointers(void **state)
{
	static const char *const exported[] = { "_ZNK2v88internal7Isolate18embedded_blob_codeEv",
						"_ZN2v87Isolate3NewEv" };

	for (int i = 0; i < 2; i++) {
		_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
		int kind = i == 0 ? MS_RULE_FP : MS_RULE_NONE;

		setup(state);
		put_usual_cie(&im);
		put_fde(&im, F, 0x100, INSNS(DW_CFA_nop));
		put_fde(&im, F + 0x10000, 0x100, INSNS(DW_CFA_nop));
		put_fde(&im, F + 0x110000, 0x100, INSNS(DW_CFA_nop));
		code_sym(&im, exported[i], F, 0x10);
		table = table_of_large_image();
		check_table(table);
		assert_int_equal(kind_at(table, F), MS_RULE_REG);
		assert_int_equal(kind_at(table, F + 0x8000), MS_RULE_NONE);
		assert_int_equal(kind_at(table, F + 0x10100), kind);
		assert_int_equal(kind_at(table, F + 0x10ffff), kind);
		assert_int_equal(kind_at(table, F + 0x110000), MS_RULE_REG);
		assert_int_equal(kind_at(table, F + 0x120000), MS_RULE_NONE);
	}
}

static void a_huge_start_symbol_does_not_end_every_stack(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	put_usual_cie(&im);
	put_fde(&im, F, 0x400, INSNS(DW_CFA_nop));
	code_sym(&im, "_start", F, 0x400);
	table = table_of_image();
	assert_int_equal(kind_at(table, F), MS_RULE_END);
	assert_int_equal(kind_at(table, F + 0x100), MS_RULE_REG);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(nobody_calls_the_entry_point),
		FACT(listed_symbols_say_what_cfi_does_not),
		FACT(builtins_of_a_stripped_v8_keep_frame_pointers),
		FACT(a_huge_start_symbol_does_not_end_every_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
