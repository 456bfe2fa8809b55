#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "table_image.h"

static void padding_stays_with_the_function_before_it(void **state)
{
	static const uint8_t nops[] = { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0,    0,    0,    0,    0,
					0x0f, 0x1f, 0x40, 0,    0x66, 0x90, 0x90, 0xcc, 0xcc, 0 };
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	put_usual_cie(&im);
	put_fde(&im, F, 0x10, INSNS(DW_CFA_def_cfa_offset, 16));
	put_fde(&im, F + 0x10 + sizeof(nops), 0x10, INSNS(DW_CFA_def_cfa_offset, 24));
	memcpy(code_text(&im, F + 0x10), nops, sizeof(nops));
	/* A function without CFI in between, and too much of nothing. */
	memset(code_text(&im, F + 0x40), 0x90, 0x10);
	*code_text(&im, F + 0x46) = 0x53; /* push: nothing that is known without CFI */
	*code_text(&im, F + 0x48) = 0xc3;
	put_fde(&im, F + 0x50, 0x10, INSNS(DW_CFA_def_cfa_offset, 32));
	memset(code_text(&im, F + 0x60), 0x90, 0x40);
	put_fde(&im, F + 0xa0, 0x10, INSNS(DW_CFA_def_cfa_offset, 40));
	table = table_of_image();
	check_table(table);
	assert_int_equal(unwind_table_find(table, F + 0x10 + sizeof(nops) - 1)->off, 16);
	assert_int_equal(unwind_table_find(table, F + 0x10 + sizeof(nops))->off, 24);
	assert_int_equal(kind_at(table, F + 0x44), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x70), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0xb0), MS_RULE_NONE);
}

static void a_signal_return_without_cfi_is_known_by_its_instructions(void **state)
{
	static const uint8_t restore[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	put_usual_cie(&im);
	put_fde(&im, F, 0x100, INSNS(DW_CFA_nop));
	memcpy(code_text(&im, F + 0x20), restore, sizeof(restore)); /* described already */
	memcpy(code_text(&im, F + 0x201), restore, sizeof(restore));
	table = table_of_image();
	check_table(table);
	assert_int_equal(kind_at(table, F + 0x20), MS_RULE_REG);
	/* Handlers return to its first byte, which is looked up one before. */
	assert_int_equal(kind_at(table, F + 0x1ff), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x200), MS_RULE_SIGNAL);
	assert_int_equal(unwind_table_find(table, F + 0x200)->off, 40);
	assert_int_equal(unwind_table_find(table, F + 0x200)->reg, MS_X86_RSP);
	/* A thread in the system call is behind it. */
	assert_int_equal(kind_at(table, F + 0x20a), MS_RULE_SIGNAL);
	assert_int_equal(kind_at(table, F + 0x20b), MS_RULE_NONE);
}

static void a_thread_in_a_signal_return_is_behind_its_last_byte(void **state)
{
	static const uint8_t restore[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0xc3 };
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	put_usual_cie(&im);
	put_fde(&im, F + 0x200, 0x7, INSNS(DW_CFA_nop));
	memcpy(code_text(&im, F + 0x200), restore, sizeof(restore)); /* ends with its function */
	put_fde(&im, F + 0x308, 0x10, INSNS(DW_CFA_nop));
	memcpy(code_text(&im, F + 0x301), restore, 7); /* next to a function */
	table = table_of_image();
	check_table(table);
	assert_int_equal(kind_at(table, F + 0x206), MS_RULE_REG);
	assert_int_equal(kind_at(table, F + 0x207), MS_RULE_SIGNAL);
	assert_int_equal(kind_at(table, F + 0x208), MS_RULE_NONE);
	assert_int_equal(kind_at(table, F + 0x307), MS_RULE_SIGNAL);
	assert_int_equal(kind_at(table, F + 0x308), MS_RULE_REG);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(padding_stays_with_the_function_before_it),
		FACT(a_signal_return_without_cfi_is_known_by_its_instructions),
		FACT(a_thread_in_a_signal_return_is_behind_its_last_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
