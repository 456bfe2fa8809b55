#include "elf/cfi_program.h"

#include <dwarf.h>

enum {
	DW_CFA_HIGH = 0xc0, /* instructions with an operand in their low 6 bits */
	DW_CFA_MIPS_LOC8 = 0x1d,
	DW_CFA_GNU_NEG = 0x2f, /* GNU_negative_offset_extended */
	VALUES_MAX = 8,        /* stack of an expression       */
};

/* --- encoded pointers --- */

static int pointer_format(struct bytes *b, uint8_t format, uint64_t *ret)
{
	uint16_t u16;
	uint32_t u32;
	int64_t s64;
	int r;

	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return bytes_u64(b, ret);
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		r = bytes_u32(b, &u32);
		if (r == 0)
			*ret = format == DW_EH_PE_udata4 ? u32 : (uint64_t)(int64_t)(int32_t)u32;
		return r;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		r = bytes_u16(b, &u16);
		if (r == 0)
			*ret = format == DW_EH_PE_udata2 ? u16 : (uint64_t)(int64_t)(int16_t)u16;
		return r;
	case DW_EH_PE_uleb128:
		return bytes_uleb(b, ret);
	case DW_EH_PE_sleb128:
		r = bytes_sleb(b, &s64);
		if (r == 0)
			*ret = (uint64_t)s64;
		return r;
	default:
		return -EOPNOTSUPP;
	}
}

int cfi_pointer(struct bytes *b, const struct cfi_bases *bases, uint8_t enc, uint64_t *ret_value)
{
	uint64_t base, value;
	int r;

	if (enc == CFI_PTR_OMIT || (enc & DW_EH_PE_indirect))
		return -EOPNOTSUPP;
	switch (enc & 0x70) {
	case DW_EH_PE_absptr:
		base = 0;
		break;
	case DW_EH_PE_pcrel:
		base = bases->vaddr + (uint64_t)(b->data - bases->data);
		break;
	case DW_EH_PE_textrel:
		base = bases->text;
		break;
	case DW_EH_PE_datarel:
		base = bases->got;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (!base && (enc & 0x70))
		return -EOPNOTSUPP;
	r = pointer_format(b, enc & 0x0f, &value);
	if (r < 0)
		return r;
	*ret_value = base + value;
	return 0;
}

int cfi_skip_pointer(struct bytes *b, const struct cfi_bases *bases, uint8_t enc)
{
	uint64_t value;

	if (enc == CFI_PTR_OMIT)
		return 0;
	if ((enc & 0x70) == DW_EH_PE_aligned) {
		uint64_t at = bases->vaddr + (uint64_t)(b->data - bases->data);

		return bytes_skip(b, -at & 7) < 0 ? -EBADMSG : bytes_skip(b, 8);
	}
	return pointer_format(b, enc & 0x0f, &value);
}

/* --- expressions --- */

/* base + off, or *(base + off) + off2, or a constant (`off`). */
struct value {
	bool constant, deref;
	uint8_t base;
	int64_t off, off2;
};

struct values {
	struct value v[VALUES_MAX];
	unsigned n;
};

static bool push(struct values *s, struct value v)
{
	if (s->n == VALUES_MAX)
		return false;
	s->v[s->n++] = v;
	return true;
}

static bool push_constant(struct values *s, int64_t value)
{
	return push(s, (struct value){ .constant = true, .off = value });
}

static bool push_register(struct values *s, uint64_t reg, struct bytes *b)
{
	int64_t off;

	if (reg >= CFI_N_REGS || bytes_sleb(b, &off) < 0)
		return false;
	return push(s, (struct value){ .base = (uint8_t)reg, .off = off });
}

static bool add(struct value *v, int64_t n)
{
	int64_t *off = v->deref ? &v->off2 : &v->off;

	return !__builtin_add_overflow(*off, n, off);
}

/* a + b or a - b, of which one at least is a constant. */
static bool add_top(struct values *s, bool minus)
{
	struct value a, b;

	if (s->n < 2)
		return false;
	b = s->v[--s->n];
	a = s->v[--s->n];
	if (!b.constant && (minus || !a.constant))
		return false;
	if (b.constant)
		return b.off != INT64_MIN && add(&a, minus ? -b.off : b.off) && push(s, a);
	return add(&b, a.off) && push(s, b);
}

static bool constant_operand(uint8_t op, struct bytes *b, int64_t *ret)
{
	static const uint8_t formats[] = {
		[DW_OP_const2u - DW_OP_const1u] = DW_EH_PE_udata2,
		[DW_OP_const2s - DW_OP_const1u] = DW_EH_PE_sdata2,
		[DW_OP_const4u - DW_OP_const1u] = DW_EH_PE_udata4,
		[DW_OP_const4s - DW_OP_const1u] = DW_EH_PE_sdata4,
		[DW_OP_const8u - DW_OP_const1u] = DW_EH_PE_udata8,
		[DW_OP_const8s - DW_OP_const1u] = DW_EH_PE_sdata8,
		[DW_OP_constu - DW_OP_const1u] = DW_EH_PE_uleb128,
		[DW_OP_consts - DW_OP_const1u] = DW_EH_PE_sleb128,
	};
	uint64_t value;
	uint8_t u8;

	if (op == DW_OP_const1u || op == DW_OP_const1s) {
		if (bytes_u8(b, &u8) < 0)
			return false;
		*ret = op == DW_OP_const1u ? u8 : (int8_t)u8;
		return true;
	}
	if (pointer_format(b, formats[op - DW_OP_const1u], &value) < 0)
		return false;
	*ret = (int64_t)value;
	return true;
}

static bool step(struct values *s, uint8_t op, struct bytes *b)
{
	uint64_t n;
	int64_t c;

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return push_register(s, op - DW_OP_breg0, b);
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return push_constant(s, op - DW_OP_lit0);
	if (op >= DW_OP_const1u && op <= DW_OP_consts)
		return constant_operand(op, b, &c) && push_constant(s, c);
	switch (op) {
	case DW_OP_bregx:
		return bytes_uleb(b, &n) == 0 && push_register(s, n, b);
	case DW_OP_plus_uconst:
		return bytes_uleb(b, &n) == 0 && n <= INT64_MAX && s->n > 0 &&
		       add(&s->v[s->n - 1], (int64_t)n);
	case DW_OP_plus:
		return add_top(s, false);
	case DW_OP_minus:
		return add_top(s, true);
	case DW_OP_deref:
		if (!s->n || s->v[s->n - 1].constant || s->v[s->n - 1].deref)
			return false;
		s->v[s->n - 1].deref = true;
		return true;
	case DW_OP_nop:
		return true;
	default:
		return false;
	}
}

/* `first`: what is on the stack at the beginning; NULL: nothing. */
static bool evaluate(struct bytes b, const struct value *first, struct value *ret)
{
	struct values s = { .n = 0 };
	uint8_t op;

	if (first)
		push(&s, *first);
	while (bytes_u8(&b, &op) == 0)
		if (!step(&s, op, &b))
			return false;
	if (!s.n)
		return false;
	*ret = s.v[s.n - 1];
	return !ret->constant && ret->off == (int32_t)ret->off && ret->off2 == (int32_t)ret->off2;
}

/* The linkers' .plt: rsp + 8, and 8 more behind the push at byte 6 (10 or 11 with its length). */
static bool plt_expression(struct bytes b, uint8_t *ret_from)
{
	static const uint8_t ops[] = {
		DW_OP_breg7, 8,        DW_OP_breg16, 0,         DW_OP_lit15, DW_OP_and,
		0,           DW_OP_ge, DW_OP_lit3,   DW_OP_shl, DW_OP_plus,
	};

	if (b.len != sizeof(ops) || memcmp(b.data, ops, 6) != 0 ||
	    memcmp(b.data + 7, ops + 7, 4) != 0 || b.data[6] < DW_OP_lit0 ||
	    b.data[6] > DW_OP_lit15)
		return false;
	*ret_from = b.data[6] - DW_OP_lit0;
	return true;
}

static void set_cfa_bad(struct cfi_rules *rules)
{
	rules->cfa_kind = CFI_CFA_BAD;
	rules->why = CFI_WHY_EXPRESSION;
}

static void set_cfa(struct cfi_rules *rules, enum cfi_cfa_kind kind, uint64_t reg, int64_t off)
{
	if (reg >= CFI_N_REGS || off != (int32_t)off) {
		set_cfa_bad(rules);
		return;
	}
	rules->cfa_kind = kind;
	rules->cfa_reg = (uint8_t)reg;
	rules->cfa_off = (int32_t)off;
	rules->cfa_off2 = 0;
	rules->why = CFI_WHY_NOTHING;
}

static void set_cfa_expression(struct cfi_rules *rules, struct bytes expr)
{
	struct value v;
	uint8_t from;

	if (plt_expression(expr, &from)) {
		set_cfa(rules, CFI_CFA_PLT, 7, 8);
		rules->cfa_off2 = from;
	} else if (evaluate(expr, NULL, &v)) {
		set_cfa(rules, v.deref ? CFI_CFA_DEREF : CFI_CFA_REG, v.base, v.off);
		rules->cfa_off2 = (int32_t)v.off2;
	} else {
		set_cfa_bad(rules);
	}
}

/* --- registers --- */

/* Vector and control registers have numbers above; nobody finds a caller with them. */
static void set_reg(struct cfi_rules *rules, uint64_t reg, enum cfi_reg_kind kind, uint8_t base,
		    int64_t off)
{
	if (reg >= CFI_N_REGS)
		return;
	if (off != (int32_t)off)
		kind = CFI_REG_BAD;
	rules->regs[reg] = (struct cfi_reg){ kind, base, kind == CFI_REG_BAD ? 0 : (int32_t)off };
}

/* The address of the saved value, or (`is_value`) the value itself; the CFA is on the stack. */
static void set_reg_expression(struct cfi_rules *rules, uint64_t reg, struct bytes expr,
			       bool is_value)
{
	const struct value cfa = { .base = CFI_BASE_CFA };
	struct value v;

	if (!evaluate(expr, &cfa, &v) || (v.deref && (!is_value || v.off2)))
		set_reg(rules, reg, CFI_REG_BAD, 0, 0);
	else
		set_reg(rules, reg, is_value && !v.deref ? CFI_REG_IS : CFI_REG_AT, v.base, v.off);
}

/* --- instructions --- */

static bool factored(const struct cfi_program *p, int64_t n, int64_t *ret)
{
	return !__builtin_mul_overflow(n, p->data_align, ret);
}

/* register, then an unsigned or signed factored offset */
static int offset_insn(struct cfi_program *p, struct bytes *b, struct cfi_rules *rules,
		       uint64_t reg, enum cfi_reg_kind kind, bool is_signed, bool negative)
{
	uint64_t u;
	int64_t n;
	int r = is_signed ? bytes_sleb(b, &n) : bytes_uleb(b, &u);

	if (r < 0)
		return r;
	if (!is_signed) {
		if (u > INT64_MAX)
			return -EBADMSG;
		n = negative ? -(int64_t)u : (int64_t)u;
	}
	if (!factored(p, n, &n))
		return -EBADMSG;
	set_reg(rules, reg, kind, CFI_BASE_CFA, n);
	return 0;
}

static int go_to(struct cfi_program *p, uint64_t loc, const struct cfi_rules *rules)
{
	uint64_t end = loc < p->end ? loc : p->end;
	int r = 0;

	if (loc < p->loc)
		return -EBADMSG;
	if (p->fn && p->loc < end)
		r = p->fn(p->arg, p->loc, end, rules);
	p->loc = loc;
	return r;
}

static int advance(struct cfi_program *p, uint64_t n, const struct cfi_rules *rules)
{
	uint64_t loc;

	if (__builtin_mul_overflow(n, p->code_align, &n) || __builtin_add_overflow(p->loc, n, &loc))
		return -EBADMSG;
	return go_to(p, loc, rules);
}

static void restore(struct cfi_rules *rules, const struct cfi_rules *initial, uint64_t reg)
{
	if (reg < CFI_N_REGS)
		rules->regs[reg] = initial->regs[reg];
}

static int def_cfa_insn(struct cfi_program *p, uint8_t op, struct bytes *b, struct cfi_rules *rules)
{
	bool with_reg = op != DW_CFA_def_cfa_offset && op != DW_CFA_def_cfa_offset_sf;
	bool with_off = op != DW_CFA_def_cfa_register;
	bool factor = op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_offset_sf;
	uint64_t reg = rules->cfa_reg, u;
	/* Behind an expression, def_cfa_register means the offset from before it: so do assemblers
	 * and libgcc (libgcrypt has it), though DWARF does not say. */
	int64_t off = rules->last_off;

	if (!with_reg && rules->cfa_kind != CFI_CFA_REG)
		return -EBADMSG;
	if (with_reg && bytes_uleb(b, &reg) < 0)
		return -EBADMSG;
	if (with_off && factor && (bytes_sleb(b, &off) < 0 || !factored(p, off, &off)))
		return -EBADMSG;
	if (with_off && !factor) {
		if (bytes_uleb(b, &u) < 0 || u > INT64_MAX)
			return -EBADMSG;
		off = (int64_t)u;
	}
	set_cfa(rules, CFI_CFA_REG, reg, off);
	rules->last_off = off;
	return 0;
}

static int expression_insn(uint8_t op, struct bytes *b, struct cfi_rules *rules)
{
	uint64_t reg = 0, len;
	struct bytes expr;

	if (op != DW_CFA_def_cfa_expression && bytes_uleb(b, &reg) < 0)
		return -EBADMSG;
	if (bytes_uleb(b, &len) < 0 || bytes_take(b, len, &expr) < 0)
		return -EBADMSG;
	if (op == DW_CFA_def_cfa_expression)
		set_cfa_expression(rules, expr);
	else
		set_reg_expression(rules, reg, expr, op == DW_CFA_val_expression);
	return 0;
}

static int loc_insn(struct cfi_program *p, uint8_t op, struct bytes *b,
		    const struct cfi_rules *rules)
{
	uint64_t n;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;

	switch (op) {
	case DW_CFA_advance_loc1:
		return bytes_u8(b, &u8) < 0 ? -EBADMSG : advance(p, u8, rules);
	case DW_CFA_advance_loc2:
		return bytes_u16(b, &u16) < 0 ? -EBADMSG : advance(p, u16, rules);
	case DW_CFA_advance_loc4:
		return bytes_u32(b, &u32) < 0 ? -EBADMSG : advance(p, u32, rules);
	case DW_CFA_MIPS_LOC8:
		return bytes_u64(b, &n) < 0 ? -EBADMSG : advance(p, n, rules);
	default:
		return cfi_pointer(b, p->bases, p->enc, &n) < 0 ? -EBADMSG : go_to(p, n, rules);
	}
}

/* Instructions whose first operand is a register. */
static int reg_insn(struct cfi_program *p, uint8_t op, struct bytes *b,
		    const struct cfi_rules *initial, struct cfi_rules *rules)
{
	uint64_t reg, other;

	if (bytes_uleb(b, &reg) < 0)
		return -EBADMSG;
	switch (op) {
	case DW_CFA_offset_extended:
		return offset_insn(p, b, rules, reg, CFI_REG_AT, false, false);
	case DW_CFA_offset_extended_sf:
		return offset_insn(p, b, rules, reg, CFI_REG_AT, true, false);
	case DW_CFA_GNU_NEG:
		return offset_insn(p, b, rules, reg, CFI_REG_AT, false, true);
	case DW_CFA_val_offset:
		return offset_insn(p, b, rules, reg, CFI_REG_IS, false, false);
	case DW_CFA_val_offset_sf:
		return offset_insn(p, b, rules, reg, CFI_REG_IS, true, false);
	case DW_CFA_restore_extended:
		restore(rules, initial, reg);
		return 0;
	case DW_CFA_undefined:
		set_reg(rules, reg, CFI_REG_UNDEFINED, 0, 0);
		return 0;
	case DW_CFA_same_value:
		set_reg(rules, reg, CFI_REG_SAME, 0, 0);
		return 0;
	default: /* DW_CFA_register */
		if (bytes_uleb(b, &other) < 0)
			return -EBADMSG;
		set_reg(rules, reg, other < CFI_N_REGS ? CFI_REG_IS : CFI_REG_BAD, (uint8_t)other,
			0);
		return 0;
	}
}

/* The states that DW_CFA_remember_state has put aside. */
struct remembered {
	struct cfi_rules rules[CFI_REMEMBER_MAX];
	unsigned n;
};

static int insn(struct cfi_program *p, uint8_t op, struct bytes *b, const struct cfi_rules *initial,
		struct cfi_rules *rules, struct remembered *saved)
{
	uint64_t n;

	switch (op & DW_CFA_HIGH) {
	case DW_CFA_advance_loc:
		return advance(p, op & 0x3f, rules);
	case DW_CFA_offset:
		return offset_insn(p, b, rules, op & 0x3f, CFI_REG_AT, false, false);
	case DW_CFA_restore:
		restore(rules, initial, op & 0x3f);
		return 0;
	}
	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* arm64: negate_ra_state; the walker masks the signature */
		return 0;
	case DW_CFA_set_loc:
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
	case DW_CFA_MIPS_LOC8:
		return loc_insn(p, op, b, rules);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_NEG:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
		return reg_insn(p, op, b, initial, rules);
	case DW_CFA_remember_state:
		if (saved->n == CFI_REMEMBER_MAX)
			return -EBADMSG;
		saved->rules[saved->n++] = *rules;
		return 0;
	case DW_CFA_restore_state:
		if (!saved->n)
			return -EBADMSG;
		*rules = saved->rules[--saved->n];
		return 0;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
		return def_cfa_insn(p, op, b, rules);
	case DW_CFA_def_cfa_expression:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return expression_insn(op, b, rules);
	case DW_CFA_GNU_args_size:
		return bytes_uleb(b, &n);
	default:
		return -EBADMSG;
	}
}

int cfi_run(struct cfi_program *p, struct bytes insns, const struct cfi_rules *initial,
	    struct cfi_rules *rules)
{
	struct remembered saved;
	uint8_t op;
	int r = 0;

	saved.n = 0;
	while (r == 0 && p->loc < p->end && bytes_u8(&insns, &op) == 0)
		r = insn(p, op, &insns, initial, rules, &saved);
	if (r == 0 && p->fn)
		r = go_to(p, p->end > p->loc ? p->end : p->loc, rules);
	return r;
}
