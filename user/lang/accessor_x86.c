/*
 * x86-64: one instruction of a short function. What is not understood makes what it writes unknown.
 */
#include "lang/accessor.h"

#if defined(__x86_64__)

#include <Zydis/Zydis.h>

static int number_of(ZydisRegister reg)
{
	ZydisRegister large = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (large < ZYDIS_REGISTER_RAX || large > ZYDIS_REGISTER_R15)
		return -1;
	return large - ZYDIS_REGISTER_RAX;
}

static struct place register_value(const struct accessor_state *s, ZydisRegister reg)
{
	int n = number_of(reg);
	struct place p = n < 0 ? (struct place){ 0 } : s->reg[n];

	if (ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) == 32 &&
	    p.base == PLACE_NUMBER && p.reads == 0)
		p.off[0] = (uint32_t)p.off[0];
	return p;
}

static struct place address_of(const struct accessor_state *s, const ZydisDecodedInstruction *in,
			       const ZydisDecodedOperand *op, uint64_t at)
{
	struct place p = place_number((uint64_t)op->mem.disp.value), part;

	if (op->mem.base == ZYDIS_REGISTER_RIP) {
		p = (struct place){ .base = PLACE_IMAGE };
		return place_add(p, at + in->length + (uint64_t)op->mem.disp.value);
	}
	/* Code that is not moved has its addresses as numbers. */
	if (op->mem.base != ZYDIS_REGISTER_NONE)
		p = place_sum(p, register_value(s, op->mem.base));
	if (op->mem.index != ZYDIS_REGISTER_NONE) {
		part = register_value(s, op->mem.index);
		if (part.base == PLACE_NUMBER && part.reads == 0)
			part.off[0] = (int64_t)((uint64_t)part.off[0] * op->mem.scale);
		else if (op->mem.scale != 1)
			return (struct place){ 0 };
		p = place_sum(p, part);
	}
	if (op->mem.segment == ZYDIS_REGISTER_FS && p.base == PLACE_NUMBER && p.reads == 0)
		p.base = PLACE_THREAD;
	else if (op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS)
		return (struct place){ 0 };
	return p;
}

/* The head of a thread's block points to itself, at 0 by the ABI and at 16 in glibc (tcbhead_t.self). */
static struct place read_at(struct place at, unsigned bytes)
{
	if (at.base == PLACE_THREAD && at.reads == 0 && bytes == 8 &&
	    (at.off[0] == 0 || at.off[0] == 16))
		return (struct place){ .base = PLACE_THREAD };
	return place_read(at, bytes);
}

static struct place operand_value(const struct accessor_state *s, const ZydisDecodedInstruction *in,
				  const ZydisDecodedOperand *op, uint64_t at)
{
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return register_value(s, op->reg.value);
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return place_number(op->imm.value.u);
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return read_at(address_of(s, in, op, at), op->size / 8);
	default:
		return (struct place){ 0 };
	}
}

static bool are_numbers(struct place a, struct place b)
{
	return a.base == PLACE_NUMBER && b.base == PLACE_NUMBER && !a.reads && !b.reads;
}

static struct place computed(ZydisMnemonic mnemonic, struct place a, struct place b, bool narrow)
{
	uint64_t x = (uint64_t)a.off[0], y = (uint64_t)b.off[0], n;

	if (mnemonic == ZYDIS_MNEMONIC_ADD)
		return place_sum(a, b);
	if (mnemonic == ZYDIS_MNEMONIC_SUB && b.base == PLACE_NUMBER && !b.reads)
		return place_add(a, -y);
	if (!are_numbers(a, b))
		return (struct place){ 0 };
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
		n = x << (y & (narrow ? 31 : 63));
		break;
	case ZYDIS_MNEMONIC_SHR:
		n = x >> (y & (narrow ? 31 : 63));
		break;
	case ZYDIS_MNEMONIC_AND:
		n = x & y;
		break;
	case ZYDIS_MNEMONIC_OR:
		n = x | y;
		break;
	default:
		return (struct place){ 0 };
	}
	return place_number(narrow ? (uint32_t)n : n);
}

static struct place result_of(const struct accessor_state *s, const ZydisDecodedInstruction *in,
			      const ZydisDecodedOperand *ops, uint64_t at)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVSXD:
		return operand_value(s, in, &ops[1], at);
	case ZYDIS_MNEMONIC_LEA:
		return address_of(s, in, &ops[1], at);
	case ZYDIS_MNEMONIC_XOR:
		if (ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ops[0].reg.value == ops[1].reg.value)
			return place_number(0);
		return (struct place){ 0 };
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
		return computed(in->mnemonic, operand_value(s, in, &ops[0], at),
				operand_value(s, in, &ops[1], at), ops[0].size == 32);
	default:
		return (struct place){ 0 };
	}
}

/* Is the branch taken? -1: who knows. */
static int8_t is_taken(const struct accessor_state *s, ZydisMnemonic mnemonic)
{
	uint64_t a = (uint64_t)s->left.off[0], b = (uint64_t)s->right.off[0];

	if (!are_numbers(s->left, s->right))
		return -1;
	if (s->narrow) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JNBE:
		return a > b;
	case ZYDIS_MNEMONIC_JBE:
		return a <= b;
	case ZYDIS_MNEMONIC_JB:
		return a < b;
	case ZYDIS_MNEMONIC_JNB:
		return a >= b;
	case ZYDIS_MNEMONIC_JZ:
		return a == b;
	case ZYDIS_MNEMONIC_JNZ:
		return a != b;
	default:
		return -1;
	}
}

static void set_flow(const struct accessor_state *s, const ZydisDecodedInstruction *in,
		     const ZydisDecodedOperand *ops, uint64_t at, struct accessor_insn *ret_insn)
{
	bool direct = in->operand_count_visible > 0 && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	if (direct)
		ret_insn->target = at + in->length + ops[0].imm.value.u;
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_RET:
		ret_insn->flow = FLOW_RETURN;
		break;
	case ZYDIS_CATEGORY_CALL:
		ret_insn->flow = FLOW_CALL;
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
		/* Through a word of the image: to another function. */
		if (!direct)
			ret_insn->target = ~0ULL;
		ret_insn->flow = FLOW_JUMP;
		break;
	case ZYDIS_CATEGORY_COND_BR:
		ret_insn->flow = FLOW_BRANCH;
		ret_insn->taken = is_taken(s, in->mnemonic);
		break;
	default:
		ret_insn->flow = in->mnemonic == ZYDIS_MNEMONIC_INT3 ||
						 in->mnemonic == ZYDIS_MNEMONIC_UD2 ||
						 in->mnemonic == ZYDIS_MNEMONIC_HLT
					 ? FLOW_END
					 : FLOW_NEXT;
	}
}

static void set_comparison(struct accessor_state *s, const ZydisDecodedInstruction *in,
			   const ZydisDecodedOperand *ops, uint64_t at)
{
	if (in->mnemonic == ZYDIS_MNEMONIC_CMP) {
		s->left = operand_value(s, in, &ops[0], at);
		s->right = operand_value(s, in, &ops[1], at);
		s->narrow = ops[0].size <= 32;
	} else if (in->cpu_flags && in->cpu_flags->modified) {
		s->left = s->right = (struct place){ 0 };
	}
}

bool accessor_step_x86(struct accessor_state *s, const uint8_t *bytes, size_t len, uint64_t at,
		       struct accessor_insn *ret_insn)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	struct place result;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, len, &in, ops)))
		return false;
	ret_insn->len = in.length;
	set_flow(s, &in, ops, at, ret_insn);
	set_comparison(s, &in, ops, at);
	if (ret_insn->flow != FLOW_NEXT)
		return true;
	result = result_of(s, &in, ops, at);
	for (int i = 0; i < in.operand_count; i++) {
		int n = ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
					ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE
				? number_of(ops[i].reg.value)
				: -1;

		/* The first operand is what is written; a part of a register is not followed. */
		if (n >= 0)
			s->reg[n] = i == 0 && ops[i].size >= 32 ? result : (struct place){ 0 };
	}
	return true;
}

#else

bool accessor_step_x86(struct accessor_state *s, const uint8_t *bytes, size_t len, uint64_t at,
		       struct accessor_insn *ret_insn)
{
	return false;
}

#endif
