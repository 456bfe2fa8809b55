#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/rules.h"

static struct cfi_rules in;
static struct cfi_fde fde;
static struct ms_rule out;

/* An x86-64 function's first instruction. */
static int setup(void **state)
{
	in = (struct cfi_rules){ .cfa_kind = CFI_CFA_REG, .cfa_reg = MS_X86_RSP, .cfa_off = 8 };
	in.regs[16] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -8 };
	fde = (struct cfi_fde){ .start = 0x1000, .end = 0x2000, .ra_reg = 16 };
	return 0;
}

static void arm64(void)
{
	in = (struct cfi_rules){ .cfa_kind = CFI_CFA_REG, .cfa_reg = MS_A64_SP };
	fde.ra_reg = MS_A64_LR;
}

static enum rule_why translate(uint16_t machine)
{
	return rule_of_cfi(rule_machine(machine), &fde, &in, &out);
}

static void a_call_has_pushed_the_return_address(void **state)
{
	const struct ms_rule want = { .kind = MS_RULE_REG, .reg = 7, .off = 8, .ra_off = -8 };

	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_memory_equal(&out, &want, sizeof(want));
}

static void saved_registers_are_in_the_order_of_the_header(void **state)
{
	static const uint8_t regs[] = { 3, 6, 12, 13, 14, 15 };

	for (int i = 0; i < 6; i++)
		in.regs[regs[i]] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -16 - 8 * i };
	/* Of no use to any caller. */
	in.regs[0] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -800 };
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	for (int i = 0; i < 6; i++)
		assert_int_equal(out.save[i], -16 - 8 * i);
	for (int i = 6; i < MS_N_SAVED; i++)
		assert_int_equal(out.save[i], 0);
	assert_int_equal(out.from_reg, 0);
}

static void what_is_relative_to_the_cfas_register_is_relative_to_the_cfa(void **state)
{
	in.cfa_off = 40;
	in.regs[16] = (struct cfi_reg){ CFI_REG_AT, MS_X86_RSP, 32 };
	in.regs[6] = (struct cfi_reg){ CFI_REG_AT, MS_X86_RSP, 16 };
	in.regs[7] = (struct cfi_reg){ CFI_REG_IS, MS_X86_RSP, 40 };
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_int_equal(out.ra_off, -8);
	assert_int_equal(out.save[1], -24);
}

/* push %rbp; mov %rsp,%rbp after the stack was aligned: CFA = *(rbp-8), rbp at rbp+0 */
static void a_realigned_stack_saves_relative_to_rbp(void **state)
{
	in.cfa_kind = CFI_CFA_DEREF;
	in.cfa_reg = 6;
	in.cfa_off = -8;
	in.regs[6] = (struct cfi_reg){ CFI_REG_AT, 6, 0 };
	in.regs[3] = (struct cfi_reg){ CFI_REG_AT, 6, -40 };
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_int_equal(out.kind, MS_RULE_DEREF);
	assert_int_equal(out.reg, 6);
	assert_int_equal(out.off, -8);
	assert_int_equal(out.off2, 0);
	assert_int_equal(out.base_reg, 6);
	assert_int_equal(out.from_reg, 1 << 0 | 1 << 1);
	assert_int_equal(out.save[0], -40);
	assert_int_equal(out.save[1], 0);
}

static void the_plt_keeps_its_threshold(void **state)
{
	in.cfa_kind = CFI_CFA_PLT;
	in.cfa_off2 = 11;
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_int_equal(out.kind, MS_RULE_PLT);
	assert_int_equal(out.off, 8);
	assert_int_equal(out.off2, 11);
}

static void vfork_returns_by_a_register(void **state)
{
	in.regs[16] = (struct cfi_reg){ CFI_REG_IS, 5, 0 };
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_int_equal(out.flags, MS_RULE_RA_REG);
	assert_int_equal(out.ra_reg, 5);
}

static void an_arm64_leaf_returns_by_x30(void **state)
{
	arm64();
	assert_int_equal(translate(EM_AARCH64), RULE_OK);
	assert_int_equal(out.flags, MS_RULE_RA_REG);
	assert_int_equal(out.ra_reg, 30);
	assert_int_equal(out.off, 0);
	in.cfa_off = 48;
	in.regs[29] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -48 };
	in.regs[30] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -40 };
	assert_int_equal(translate(EM_AARCH64), RULE_OK);
	assert_int_equal(out.flags, 0);
	assert_int_equal(out.ra_off, -40);
	assert_int_equal(out.save[10], -48);
	assert_int_equal(out.save[11], -40);
}

static void an_undefined_return_address_ends_the_stack_whatever_else_is_said(void **state)
{
	const struct ms_rule end = { .kind = MS_RULE_END };

	in.regs[16].kind = CFI_REG_UNDEFINED;
	in.cfa_kind = CFI_CFA_BAD;
	in.why = CFI_WHY_NO_CFA;
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_memory_equal(&out, &end, sizeof(end));
}

/* glibc 2.36's __restore_rt: every register by an expression over rsp */
static void a_signals_frame_begins_where_its_rip_says(void **state)
{
	const struct ms_rule want = { .kind = MS_RULE_SIGNAL, .reg = 7, .off = 40 };

	fde.signal = true;
	in.cfa_kind = CFI_CFA_DEREF;
	in.cfa_off = 160;
	in.regs[16] = (struct cfi_reg){ CFI_REG_AT, 7, 168 };
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_memory_equal(&out, &want, sizeof(want));
	/* Marked as one, with CFI like any function: that is what is walked. */
	setup(NULL);
	fde.signal = true;
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_int_equal(out.kind, MS_RULE_REG);
}

static void arm64s_signal_frame_is_where_the_kernel_puts_it(void **state)
{
	arm64();
	fde.signal = true;
	in.cfa_reg = 29;
	assert_int_equal(translate(EM_AARCH64), RULE_OK);
	assert_int_equal(out.kind, MS_RULE_SIGNAL);
	assert_int_equal(out.reg, 31);
	/* struct rt_sigframe: siginfo (128), flags, link, stack (24), mask (8 of 128), then 16-aligned */
	assert_int_equal(out.off, 128 + 176);
}

static void a_register_that_cannot_be_recovered_is_lost_alone(void **state)
{
	static const struct cfi_reg nowhere[] = {
		{ CFI_REG_BAD, 0, 0 },
		{ CFI_REG_UNDEFINED, 0, 0 },
		{ CFI_REG_IS, 8, 0 },
		{ CFI_REG_IS, CFI_BASE_CFA, -8 },
		{ CFI_REG_AT, CFI_BASE_CFA, 0 },
		{ CFI_REG_AT, 6, 40000 },
		{ CFI_REG_AT, 32, 8 },
	};

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		setup(NULL);
		in.regs[12] = nowhere[i];
		in.regs[6] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -16 };
		assert_int_equal(translate(EM_X86_64), RULE_OK);
		assert_int_equal(out.kind, MS_RULE_REG);
		assert_int_equal(out.lost, 1 << 2);
		assert_int_equal(out.save[2], 0);
		assert_int_equal(out.save[1], -16);
	}
}

static void two_other_bases_are_one_too_many(void **state)
{
	in.regs[6] = (struct cfi_reg){ CFI_REG_AT, 10, -8 };
	in.regs[12] = (struct cfi_reg){ CFI_REG_AT, 11, -8 };
	assert_int_equal(translate(EM_X86_64), RULE_OK);
	assert_int_equal(out.base_reg, 10);
	assert_int_equal(out.from_reg, 1 << 1);
	assert_int_equal(out.lost, 1 << 2);
}

static void a_register_far_from_the_cfa_is_near_sp(void **state)
{
	arm64();
	in.cfa_off = 40000;
	in.regs[30] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -8 };
	in.regs[19] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -40000 + 16 };
	assert_int_equal(translate(EM_AARCH64), RULE_OK);
	assert_int_equal(out.base_reg, 31);
	assert_int_equal(out.from_reg, 1);
	assert_int_equal(out.save[0], 16);
	/* gcc puts x29 and x30 there, too. */
	in.regs[30] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -40000 + 8 };
	in.regs[29] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -40000 };
	assert_int_equal(translate(EM_AARCH64), RULE_OK);
	assert_int_equal(out.flags, MS_RULE_RA_BASE);
	assert_int_equal(out.ra_off, 8);
	assert_int_equal(out.base_reg, 31);
	assert_int_equal(out.lost, 0);
	assert_int_equal(out.save[10], 0);
	assert_int_equal(out.from_reg, 1 | 1 << 10 | 1 << 11);
}

static void what_has_no_rule_says_why(void **state)
{
	static const enum rule_why want[] = { RULE_NO_CFA, RULE_EXPRESSION, RULE_PROGRAM };
	static const enum cfi_why why[] = { CFI_WHY_NO_CFA, CFI_WHY_EXPRESSION, CFI_WHY_PROGRAM };
	const struct ms_rule bad = { .kind = MS_RULE_BAD };

	for (int i = 0; i < 3; i++) {
		in.cfa_kind = CFI_CFA_BAD;
		in.why = why[i];
		assert_int_equal(translate(EM_X86_64), want[i]);
		assert_memory_equal(&out, &bad, sizeof(bad));
	}
	setup(NULL);
	in.regs[7] = (struct cfi_reg){ CFI_REG_IS, 8, 0 }; /* longjmp */
	assert_int_equal(translate(EM_X86_64), RULE_SP);
	setup(NULL);
	in.regs[16].kind = CFI_REG_UNSET;
	assert_int_equal(translate(EM_X86_64), RULE_RETURN);
	in.regs[16] = (struct cfi_reg){ CFI_REG_AT, CFI_BASE_CFA, -40000 };
	assert_int_equal(translate(EM_X86_64), RULE_RANGE);
	in.regs[16] = (struct cfi_reg){ CFI_REG_AT, 6, 8 };
	assert_int_equal(translate(EM_X86_64), RULE_RETURN);
	assert_memory_equal(&out, &bad, sizeof(bad));
}

static void equal_rules_have_one_number(void **state)
{
	struct ms_rule rule = { .kind = MS_RULE_REG, .reg = 7, .ra_off = -8 };
	struct rule_set set;
	uint32_t ix;

	assert_int_equal(rule_set_init(&set), 0);
	assert_int_equal(set.n, MS_RULE_FIRST);
	assert_int_equal(set.rules[MS_RULE_IX_END].kind, MS_RULE_END);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3000; i++) {
			rule.off = 8 * i;
			assert_int_equal(rule_set_add(&set, &rule, &ix), 0);
			assert_int_equal(ix, MS_RULE_FIRST + i);
		}
	}
	assert_int_equal(set.n, MS_RULE_FIRST + 3000);
	rule = (struct ms_rule){ .kind = MS_RULE_FP };
	assert_int_equal(rule_set_add(&set, &rule, &ix), 0);
	assert_int_equal(ix, MS_RULE_IX_FP);
	rule_set_fini(&set);
}

static void other_machines_have_no_rules(void **state)
{
	assert_null(rule_machine(EM_386));
	assert_null(rule_machine(EM_RISCV));
	assert_int_equal(rule_machine(EM_X86_64)->n_saved, MS_N_SAVED_X86);
	assert_int_equal(rule_machine(EM_AARCH64)->n_saved, MS_N_SAVED_A64);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(a_call_has_pushed_the_return_address),
		FACT(saved_registers_are_in_the_order_of_the_header),
		FACT(what_is_relative_to_the_cfas_register_is_relative_to_the_cfa),
		FACT(a_realigned_stack_saves_relative_to_rbp),
		FACT(the_plt_keeps_its_threshold),
		FACT(vfork_returns_by_a_register),
		FACT(an_arm64_leaf_returns_by_x30),
		FACT(an_undefined_return_address_ends_the_stack_whatever_else_is_said),
		FACT(a_signals_frame_begins_where_its_rip_says),
		FACT(arm64s_signal_frame_is_where_the_kernel_puts_it),
		FACT(a_register_that_cannot_be_recovered_is_lost_alone),
		FACT(two_other_bases_are_one_too_many),
		FACT(a_register_far_from_the_cfa_is_near_sp),
		FACT(what_has_no_rule_says_why),
		FACT(equal_rules_have_one_number),
		FACT(other_machines_have_no_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
