#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "table_image.h"

/* The kind of rule that some code has between two functions with CFI. */
static uint32_t kind_of_hole(const uint8_t *bytes, size_t len)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	const struct ms_rule *rule;

	setup(NULL);
	put_usual_cie(&im);
	put_fde(&im, F, 0x10, INSNS(DW_CFA_def_cfa_offset, 24));
	memset(code_text(&im, F), 0xc3, 0x10);
	memset(code_text(&im, F + 0x10), 0xcc, 0x70);
	memcpy(code_text(&im, F + 0x10), bytes, len);
	put_fde(&im, F + 0x80, 0x10, INSNS(DW_CFA_def_cfa_offset, 32));
	table = table_of_image();
	check_table(table);
	rule = unwind_table_find(table, F + 0x10 + len / 2);
	if (rule->kind == MS_RULE_REG) {
		assert_int_equal(rule->reg, MS_X86_RSP);
		assert_int_equal(rule->off, 8);
		assert_int_equal(rule->ra_off, -8);
	}
	assert_int_equal(kind_at(table, F + 0x80), MS_RULE_REG);
	return rule->kind;
}

#define KIND_OF(...)                                                                               \
	kind_of_hole((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }))

static void code_that_never_touches_the_stack_returns_by_sp(void **state)
{
#if !defined(__x86_64__)
	skip();
#endif
	/* mov (%rsi,%rdx,8),%rax; mov %rax,(%rdi,%rdx,8); inc %rdx; jne; ret */
	assert_int_equal(KIND_OF(0x48, 0x8b, 0x04, 0xd6, 0x48, 0x89, 0x04, 0xd7, 0x48, 0xff, 0xc2,
				 0x75, 0xf3, 0xc3),
			 MS_RULE_REG);
	/* two functions, a tail call; rbp is read */
	assert_int_equal(KIND_OF(0xf3, 0x90, 0xc3, 0x90, 0x48, 0x89, 0xe8, 0xff, 0xe0),
			 MS_RULE_REG);
}

static void code_that_might_is_guessed(void **state)
{
	assert_int_equal(KIND_OF(0x53, 0x5b, 0xc3), MS_RULE_NONE);          /* push, pop */
	assert_int_equal(KIND_OF(0x48, 0x83, 0xec, 8, 0xc3), MS_RULE_NONE); /* sub $8,%rsp */
	assert_int_equal(KIND_OF(0xe8, 0, 0, 0, 0, 0xc3), MS_RULE_NONE);    /* call */
	assert_int_equal(KIND_OF(0xc9, 0xc3), MS_RULE_NONE);                /* leave */
	assert_int_equal(KIND_OF(0x48, 0x89, 0xe0, 0xc3), MS_RULE_NONE);    /* mov %rsp,%rax */
	assert_int_equal(KIND_OF(0x48, 0x89, 0x44, 0x24, 8, 0xc3),
			 MS_RULE_NONE);                                  /* mov %rax,8(%rsp) */
	assert_int_equal(KIND_OF(0x48, 0x94, 0xc3), MS_RULE_NONE);       /* xchg %rax,%rsp */
	assert_int_equal(KIND_OF(0xbb, 1, 0, 0, 0, 0xc3), MS_RULE_NONE); /* mov $1,%ebx */
	assert_int_equal(KIND_OF(0x48, 0x31, 0xed, 0xc3), MS_RULE_NONE); /* xor %rbp,%rbp */
	assert_int_equal(KIND_OF(0xc2, 8, 0), MS_RULE_NONE);             /* ret $8 */
	assert_int_equal(KIND_OF(0x90, 0xeb, 0xfd), MS_RULE_NONE);       /* no return */
	assert_int_equal(KIND_OF(0x90, 0xc3, 0x06), MS_RULE_NONE);       /* no instruction */
	assert_int_equal(KIND_OF(0xc3, 0x9c, 0x9d, 0xc3), MS_RULE_NONE); /* pushf, popf */
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(code_that_never_touches_the_stack_returns_by_sp),
		FACT(code_that_might_is_guessed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
