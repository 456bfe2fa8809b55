#include "unwind/rules.h"
#include "base/grow.h"
#include "base/hash.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	X86_RA = 16,
	X86_RIP_IN_SIGCONTEXT = 16 * 8, /* struct sigcontext, asm/sigcontext.h: r8 first      */
	X86_UC_MCONTEXT = 40,           /* struct ucontext; sp is at it once handlers return  */
	A64_SIGINFO = 128,              /* struct rt_sigframe: siginfo, then ucontext         */
	A64_UC_MCONTEXT = 176,
	FIRST_SLOTS = 256,
};

static const uint8_t saved_x86[MS_N_SAVED_X86] = { MS_X86_RBX, MS_X86_RBP, 12, 13, 14, 15 };
static const uint8_t saved_a64[MS_N_SAVED_A64] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30 };

static const struct rule_machine machines[] = {
	{ EM_X86_64, MS_X86_RSP, MS_N_SAVED_X86, saved_x86, X86_UC_MCONTEXT },
	{ EM_AARCH64, MS_A64_SP, MS_N_SAVED_A64, saved_a64, A64_SIGINFO + A64_UC_MCONTEXT },
};

const struct rule_machine *rule_machine(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

/* --- from DWARF's terms --- */

/* Registers found relative to the one that the CFA is relative to, are found relative to the CFA. */
static struct cfi_reg by_cfa(const struct cfi_rules *rules, struct cfi_reg reg)
{
	int64_t off = (int64_t)reg.off - rules->cfa_off;

	if (rules->cfa_kind == CFI_CFA_REG && reg.base == rules->cfa_reg &&
	    (reg.kind == CFI_REG_AT || reg.kind == CFI_REG_IS) && off == (int32_t)off) {
		reg.base = CFI_BASE_CFA;
		reg.off = (int32_t)off;
	}
	return reg;
}

/* And the other way round: large frames of arm64 keep registers at their low end. */
static struct cfi_reg by_reg(const struct cfi_rules *rules, struct cfi_reg reg)
{
	int64_t off = (int64_t)reg.off + rules->cfa_off;

	if (off != (int32_t)off)
		return (struct cfi_reg){ .kind = CFI_REG_BAD };
	return (struct cfi_reg){ reg.kind, rules->cfa_reg, (int32_t)off };
}

static enum rule_why set_cfa(const struct cfi_rules *rules, struct ms_rule *r)
{
	static const uint8_t kinds[] = {
		[CFI_CFA_REG] = MS_RULE_REG,
		[CFI_CFA_DEREF] = MS_RULE_DEREF,
		[CFI_CFA_PLT] = MS_RULE_PLT,
	};
	static const uint8_t whys[] = {
		[CFI_WHY_NOTHING] = RULE_NO_CFA,
		[CFI_WHY_NO_CFA] = RULE_NO_CFA,
		[CFI_WHY_EXPRESSION] = RULE_EXPRESSION,
		[CFI_WHY_PROGRAM] = RULE_PROGRAM,
	};

	if (rules->cfa_kind == CFI_CFA_BAD)
		return whys[rules->why];
	if (rules->cfa_reg >= MS_N_REGS)
		return RULE_EXPRESSION;
	r->kind = kinds[rules->cfa_kind];
	r->reg = rules->cfa_reg;
	r->off = rules->cfa_off;
	r->off2 = rules->cfa_off2;
	return RULE_OK;
}

static enum rule_why set_return(const struct rule_machine *m, uint8_t ra_reg,
				const struct cfi_rules *rules, struct ms_rule *r)
{
	struct cfi_reg ra = by_cfa(rules, rules->regs[ra_reg]);

	switch (ra.kind) {
	case CFI_REG_UNSET:
	case CFI_REG_SAME:
		/* The return address column of x86-64 is no register. */
		if (ra_reg >= MS_N_REGS || (m->machine == EM_X86_64 && ra_reg == X86_RA))
			return RULE_RETURN;
		r->flags |= MS_RULE_RA_REG;
		r->ra_reg = ra_reg;
		return RULE_OK;
	case CFI_REG_UNDEFINED:
		*r = (struct ms_rule){ .kind = MS_RULE_END };
		return RULE_OK;
	case CFI_REG_AT:
		if (ra.base != CFI_BASE_CFA)
			return RULE_RETURN;
		if (ra.off != (int16_t)ra.off && rules->cfa_kind == CFI_CFA_REG) {
			ra = by_reg(rules, ra);
			r->flags |= MS_RULE_RA_BASE;
			r->base_reg = rules->cfa_reg;
		}
		if (ra.kind != CFI_REG_AT || ra.off != (int16_t)ra.off)
			return RULE_RANGE;
		r->ra_off = (int16_t)ra.off;
		return RULE_OK;
	case CFI_REG_IS:
		if (ra.base >= MS_N_REGS || ra.off != 0)
			return RULE_RETURN;
		r->flags |= MS_RULE_RA_REG;
		r->ra_reg = ra.base;
		return RULE_OK;
	default:
		return RULE_RETURN;
	}
}

/*
 * A register that is somewhere else (clang and glibc move one aside in a few leaves; libmvec rounds
 * the CFA) is lost, and the frame is walked all the same: hardly a frame further out needs it.
 */
static void set_saved(const struct cfi_rules *rules, uint8_t number, int i, struct ms_rule *r)
{
	struct cfi_reg reg = by_cfa(rules, rules->regs[number]);

	if (reg.kind == CFI_REG_UNSET || reg.kind == CFI_REG_SAME ||
	    (reg.kind == CFI_REG_IS && reg.base == number && reg.off == 0))
		return;
	if (reg.base == CFI_BASE_CFA && reg.off != (int16_t)reg.off &&
	    rules->cfa_kind == CFI_CFA_REG)
		reg = by_reg(rules, reg);
	if (reg.kind != CFI_REG_AT || reg.off != (int16_t)reg.off ||
	    (reg.base == CFI_BASE_CFA
		     ? reg.off == 0
		     : reg.base >= MS_N_REGS || (((r->from_reg || r->flags & MS_RULE_RA_BASE) &&
						  r->base_reg != reg.base)))) {
		r->lost |= (uint16_t)(1u << i);
		return;
	}
	r->save[i] = (int16_t)reg.off;
	if (reg.base == CFI_BASE_CFA)
		return;
	r->from_reg |= (uint16_t)(1u << i);
	r->base_reg = reg.base;
}

/* The caller's stack pointer is the CFA, by definition of the walker's rules. */
static bool sp_is_cfa(const struct rule_machine *m, const struct cfi_rules *rules)
{
	struct cfi_reg sp = by_cfa(rules, rules->regs[m->sp]);

	return sp.kind == CFI_REG_UNSET || sp.kind == CFI_REG_SAME ||
	       (sp.kind == CFI_REG_IS && sp.base == CFI_BASE_CFA && sp.off == 0);
}

/*
 * Where the sigcontext is. glibc's __restore_rt says by expressions where each register is; rip
 * gives the whole away. arm64's trampoline in the vDSO describes no registers but fp and lr.
 */
static bool signal_rule(const struct rule_machine *m, const struct cfi_fde *fde,
			const struct cfi_rules *rules, struct ms_rule *r)
{
	const struct cfi_reg *ra = &rules->regs[fde->ra_reg];

	*r = rule_of_signal(m);
	if (m->machine == EM_AARCH64)
		return true;
	if (ra->kind != CFI_REG_AT || ra->base != m->sp)
		return false;
	r->off = ra->off - X86_RIP_IN_SIGCONTEXT;
	return true;
}

enum rule_why rule_of_cfi(const struct rule_machine *m, const struct cfi_fde *fde,
			  const struct cfi_rules *rules, struct ms_rule *ret_rule)
{
	struct ms_rule r = { 0 };
	enum rule_why why = RULE_OK;

	if (fde->signal && rules->why != CFI_WHY_PROGRAM && signal_rule(m, fde, rules, &r)) {
		*ret_rule = r;
		return RULE_OK;
	}
	r = (struct ms_rule){ 0 };
	/* Nobody called: what else there is does not matter, a damaged program apart. */
	if (rules->regs[fde->ra_reg].kind != CFI_REG_UNDEFINED)
		why = set_cfa(rules, &r);
	if (why == RULE_OK)
		why = set_return(m, fde->ra_reg, rules, &r);
	if (why == RULE_OK && r.kind != MS_RULE_END) {
		for (int i = 0; i < m->n_saved; i++)
			set_saved(rules, m->saved[i], i, &r);
		if (!sp_is_cfa(m, rules))
			why = RULE_SP;
	}
	if (why != RULE_OK)
		r = (struct ms_rule){ .kind = MS_RULE_BAD };
	*ret_rule = r;
	return why;
}

struct ms_rule rule_of_signal(const struct rule_machine *m)
{
	return (struct ms_rule){ .kind = MS_RULE_SIGNAL, .reg = m->sp, .off = m->sigcontext };
}

/* --- sets --- */

static uint32_t *slot_of(struct rule_set *set, const struct ms_rule *rule)
{
	uint32_t i = hash_bytes(rule, sizeof(*rule));

	for (;; i++) {
		uint32_t *slot = &set->slots[i & (set->n_slots - 1)];

		if (!*slot || !memcmp(&set->rules[*slot - 1], rule, sizeof(*rule)))
			return slot;
	}
}

static int grow_slots(struct rule_set *set)
{
	uint32_t n = set->n_slots ? 2 * set->n_slots : FIRST_SLOTS;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(set->slots);
	set->slots = slots;
	set->n_slots = n;
	for (uint32_t i = 0; i < set->n; i++)
		*slot_of(set, &set->rules[i]) = i + 1;
	return 0;
}

int rule_set_init(struct rule_set *set)
{
	static const uint8_t fixed[MS_RULE_FIRST] = {
		[MS_RULE_IX_NONE] = MS_RULE_NONE,
		[MS_RULE_IX_END] = MS_RULE_END,
		[MS_RULE_IX_FP] = MS_RULE_FP,
		[MS_RULE_IX_BAD] = MS_RULE_BAD,
	};
	uint32_t ix;

	*set = (struct rule_set){ 0 };
	for (int i = 0; i < MS_RULE_FIRST; i++) {
		const struct ms_rule rule = { .kind = fixed[i] };

		if (rule_set_add(set, &rule, &ix) < 0) {
			rule_set_fini(set);
			return -ENOMEM;
		}
	}
	return 0;
}

void rule_set_fini(struct rule_set *set)
{
	free(set->rules);
	free(set->slots);
	*set = (struct rule_set){ 0 };
}

int rule_set_add(struct rule_set *set, const struct ms_rule *rule, uint32_t *ret_ix)
{
	uint32_t *slot;

	if (2 * set->n >= set->n_slots && grow_slots(set) < 0)
		return -ENOMEM;
	slot = slot_of(set, rule);
	if (!*slot) {
		if (set->n > MS_ROW_RULE_MASK)
			return -EFBIG;
		if (!GROW(set->rules, set->n, set->cap))
			return -ENOMEM;
		set->rules[set->n++] = *rule;
		*slot = set->n;
	}
	*ret_ix = *slot - 1;
	return 0;
}
