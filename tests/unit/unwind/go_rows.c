#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "table_image.h"

static void gos_frames_come_from_its_tables(void **state)
{
	static const uint8_t store[] = { 0x48, 0x89, 0x6c, 0x24, 0x10 }; /* mov %rbp,16(%rsp) */
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	const struct ms_rule *rule;

	go_put(&im, 0xfffffff0, CODE_TEXT);
	memcpy(code_text(&im, CODE_TEXT + 4), store, sizeof(store));
	table = table_of_image();
	check_table(table);
	assert_int_equal(table->kind, UNWIND_GO);
	rule = unwind_table_find(table, CODE_TEXT);
	assert_int_equal(rule->off, 8);
	assert_int_equal(rule->ra_off, -8);
	/* rbp is saved behind the instruction that saves it. */
	rule = unwind_table_find(table, CODE_TEXT + 8);
	assert_int_equal(rule->off, 32);
	assert_int_equal(rule->save[1], 0);
	rule = unwind_table_find(table, CODE_TEXT + 9);
	assert_int_equal(rule->off, 32);
	assert_int_equal(rule->save[1], -16);
	assert_int_equal(unwind_table_find(table, CODE_TEXT + 0x30)->off, 8);
	assert_int_equal(kind_at(table, CODE_TEXT + 0x40), MS_RULE_END);
	rule = unwind_table_find(table, CODE_TEXT + 0x80);
	assert_int_equal(rule->reg, MS_X86_RBP);
	assert_int_equal(rule->off, 16);
	/* The last one's first byte is returned to: it begins a byte early. */
	assert_int_equal(unwind_table_find(table, CODE_TEXT + 0xbe)->reg, MS_X86_RBP);
	assert_int_equal(unwind_table_find(table, CODE_TEXT + 0xbf)->reg, MS_X86_RSP);
	assert_int_equal(unwind_table_find(table, CODE_TEXT + 0xc0)->reg, MS_X86_RSP);
	assert_int_equal(kind_at(table, CODE_TEXT + 0x100), MS_RULE_NONE);
}

static void gos_frames_on_arm64_keep_the_return_address_at_sp(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	const struct ms_rule *rule;

	im.machine = EM_AARCH64;
	go_put(&im, 0xfffffff1, CODE_TEXT);
	table = table_of_image();
	rule = unwind_table_find(table, CODE_TEXT);
	assert_int_equal(rule->flags, MS_RULE_RA_REG);
	assert_int_equal(rule->ra_reg, MS_A64_LR);
	rule = unwind_table_find(table, CODE_TEXT + 8);
	assert_int_equal(rule->off, 24);
	assert_int_equal(rule->ra_off, -24);
	assert_int_equal(rule->save[10], -32);
	assert_int_equal(kind_at(table, CODE_TEXT + 0x80), MS_RULE_NONE);
}

static void go_without_its_table_keeps_frame_pointers(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;

	go_put(&im, 0xfffffff7, CODE_TEXT);
	table = table_of_image();
	assert_int_equal(table->kind, UNWIND_FP);
	assert_int_equal(kind_at(table, F), MS_RULE_FP);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(gos_frames_come_from_its_tables),
		FACT(gos_frames_on_arm64_keep_the_return_address_at_sp),
		FACT(go_without_its_table_keeps_frame_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
