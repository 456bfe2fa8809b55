/*
 * What libdw says of a place in call frame information, as numbers: its operations are evaluated over made-up registers and a
 * made-up memory, so that two readers agree where their numbers do.
 */
#ifndef MEMSCOPE_TESTS_LIBDW_FIXTURE_H
#define MEMSCOPE_TESTS_LIBDW_FIXTURE_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { N_VALUES = 16, N_REGS = 33 };

/* What the memory of a walk that never happened holds. */
static inline uint64_t memory(uint64_t addr)
{
	addr ^= addr >> 31;
	addr *= 0x9e3779b97f4a7c15;
	return addr ^ addr >> 29;
}

struct frame {
	uint64_t regs[N_REGS], pc, cfa;
};

static inline void make_frame(struct frame *f, uint64_t pc)
{
	for (int i = 0; i < N_REGS; i++)
		f->regs[i] = memory((uint64_t)i + 77) & ~7ull;
	f->pc = pc;
	f->regs[16] = pc;
}

/* --- libdw's answer --- */

struct stack {
	uint64_t v[N_VALUES];
	int n;
};

static inline bool op_pops(struct stack *s, const Dwarf_Op *op)
{
	uint64_t b = s->n ? s->v[s->n - 1] : 0, a = s->n > 1 ? s->v[s->n - 2] : 0;

	if (s->n < 2)
		return false;
	s->n--;
	switch (op->atom) {
	case DW_OP_plus:
		a += b;
		break;
	case DW_OP_minus:
		a -= b;
		break;
	case DW_OP_and:
		a &= b;
		break;
	case DW_OP_ge:
		a = (int64_t)a >= (int64_t)b;
		break;
	case DW_OP_shl:
		a = b < 64 ? a << b : 0;
		break;
	default:
		return false;
	}
	s->v[s->n - 1] = a;
	return true;
}

/* 1: an address or (`*ret_is_value`) a value; 0: none; -1: unknown operation */
static inline int evaluate(const Dwarf_Op *ops, size_t n, const struct frame *f, uint64_t *ret,
		    bool *ret_is_value)
{
	struct stack s = { .n = 0 };

	*ret_is_value = false;
	for (size_t i = 0; i < n; i++) {
		const Dwarf_Op *op = &ops[i];
		uint64_t push;

		if (s.n >= N_VALUES)
			return -1;
		if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
			push = op->atom - DW_OP_lit0;
		else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
			push = f->regs[op->atom - DW_OP_breg0] + op->number;
		else if (op->atom == DW_OP_bregx && op->number < N_REGS)
			push = f->regs[op->number] + op->number2;
		else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
			push = op->number;
		else if (op->atom == DW_OP_call_frame_cfa)
			push = f->cfa;
		else if (op->atom == DW_OP_regx && op->number < N_REGS) {
			push = f->regs[op->number];
			*ret_is_value = true;
		} else if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
			push = f->regs[op->atom - DW_OP_reg0];
			*ret_is_value = true;
		} else if (op->atom == DW_OP_stack_value) {
			*ret_is_value = true;
			continue;
		} else if (op->atom == DW_OP_plus_uconst && s.n) {
			s.v[s.n - 1] += op->number;
			continue;
		} else if (op->atom == DW_OP_deref && s.n) {
			s.v[s.n - 1] = memory(s.v[s.n - 1]);
			continue;
		} else if (op->atom == DW_OP_nop) {
			continue;
		} else if (op_pops(&s, op)) {
			continue;
		} else {
			return -1;
		}
		s.v[s.n++] = push;
	}
	if (!s.n)
		return 0;
	*ret = s.v[s.n - 1];
	return 1;
}

enum answer { KNOWN, LOST, STRANGE };

static inline enum answer libdw_register(Dwarf_Frame *frame, const struct frame *f, int reg, uint64_t *ret)
{
	Dwarf_Op mem[3], *ops;
	bool is_value;
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0)
		return STRANGE;
	if (n == 0) {
		*ret = f->regs[reg];
		return ops == mem ? LOST : KNOWN;
	}
	if (evaluate(ops, n, f, ret, &is_value) != 1)
		return STRANGE;
	if (!is_value)
		*ret = memory(*ret);
	return KNOWN;
}

#endif
