#include "collect/probes/placement.h"

#include "abi.h"

#include <string.h>

#if defined(__x86_64__)

#include <Zydis/Zydis.h>

#define N_ARGS 3
#define RSP    4 /* as instructions number registers: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 … */

static const uint8_t abi_args[N_ARGS + 1] = { 7, 6, 2, 1 }; /* rdi, rsi, rdx, rcx */

/* What is known on the straight line, before an instruction. */
struct state {
	uint32_t held[N_ARGS]; /* registers that hold the argument: a bit for each */
	uint32_t sp;           /* bytes that sp is below where it was              */
};

struct insn {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const uint8_t *code, size_t len, struct insn *ret_insn)
{
	static ZydisDecoder decoder;
	static bool ready;

	if (!ready) {
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ready = true;
	}
	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&decoder, code, len, &ret_insn->i, ret_insn->ops));
}

/*
 * push of rax to r15 without any other prefix; jmp, jcc and call with a displacement, without any
 * prefix; nop. Nops of several bytes are emulated by the newest kernels only.
 */
static bool is_emulated(const uint8_t *code, size_t len)
{
	if (code[0] == 0x41 && len > 1)
		return code[1] >= 0x50 && code[1] <= 0x57;
	if (code[0] == 0x66)
		return len > 1 && code[1] == 0x90;
	if (code[0] == 0x0f)
		return len > 1 && code[1] >= 0x80 && code[1] <= 0x8f;
	return (code[0] >= 0x50 && code[0] <= 0x57) || (code[0] >= 0x70 && code[0] <= 0x7f) ||
	       code[0] == 0x90 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb;
}

static int reg_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return -1;
	return ZydisRegisterGetId(whole);
}

/* sp after the instruction; false: not known. */
static bool sp_step(const struct insn *in, struct state *st)
{
	const ZydisDecodedOperand *ops = in->ops;

	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		st->sp += 8;
		return in->i.operand_width == 64;
	case ZYDIS_MNEMONIC_SUB:
		if (ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || ops[1].imm.value.s < 0 ||
		    ops[1].imm.value.s > 0x7fff)
			return false;
		st->sp += (uint32_t)ops[1].imm.value.s;
		return true;
	default:
		return false;
	}
}

static bool is_copy(const struct insn *in)
{
	return in->i.mnemonic == ZYDIS_MNEMONIC_MOV && in->i.operand_width == 64 &&
	       in->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       in->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* What is known behind the instruction; false: nothing, or it does not go on there. */
static bool step(const struct insn *in, struct state *st)
{
	uint32_t copied[N_ARGS] = { 0 };
	bool sp_written = false;

	switch (in->i.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SYSTEM:
		return false;
	default:
		break;
	}
	if (is_copy(in)) {
		int from = reg_number(in->ops[1].reg.value), to = reg_number(in->ops[0].reg.value);

		for (int a = 0; a < N_ARGS && from >= 0 && to >= 0; a++)
			if (st->held[a] >> from & 1)
				copied[a] = 1u << to;
	}
	for (int i = 0; i < in->i.operand_count; i++) {
		const ZydisDecodedOperand *op = &in->ops[i];
		int reg;

		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = reg_number(op->reg.value);
		if (reg == RSP)
			sp_written = true;
		for (int a = 0; a < N_ARGS && reg >= 0; a++)
			st->held[a] &= ~(1u << reg);
	}
	for (int a = 0; a < N_ARGS; a++)
		st->held[a] |= copied[a];
	return !sp_written || sp_step(in, st);
}

/* At the entry. */
static struct state state_begin(const struct placement_ask *ask)
{
	struct state st = { 0 };

	for (int a = 0; a < N_ARGS; a++)
		st.held[a] = 1u << abi_args[a + (ask->first != 0)];
	return st;
}

/* Where everything is, for the program. 0: where it expects it. */
static uint64_t place_of(const struct state *st, uint32_t args)
{
	uint64_t place = MS_COOKIE_MOVED | (uint64_t)st->sp << MS_COOKIE_SP_SHIFT;
	bool moved = st->sp;

	for (int a = 0; a < N_ARGS; a++) {
		uint32_t reg = abi_args[a];

		if (args >> a & 1 && !(st->held[a] >> reg & 1)) {
			reg = (uint32_t)__builtin_ctz(st->held[a]);
			moved = true;
		}
		place |= (uint64_t)reg << (a * MS_COOKIE_ARG_BITS);
	}
	return moved ? place : 0;
}

void placement_entry(const struct placement_ask *ask, struct placement *ret_placement)
{
	struct state st = state_begin(ask);

	*ret_placement = (struct placement){
		.emulated = ask->len && is_emulated(ask->code, ask->len),
		.place = place_of(&st, ask->args),
	};
}

/* Does an instruction from `at` on jump into (0, at], by its own account? */
static bool is_jumped_into(const struct placement_ask *ask, size_t at)
{
	size_t len = ask->len < PLACEMENT_MAX_CODE ? ask->len : PLACEMENT_MAX_CODE, off = at;
	struct insn in;

	while (off < len && decode(ask->code + off, len - off, &in)) {
		const ZydisDecodedOperand *op = &in.ops[0];

		off += in.i.length;
		if (in.i.operand_count && op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    op->imm.is_relative) {
			int64_t to = (int64_t)off + op->imm.value.s;

			if (to > 0 && to <= (int64_t)at)
				return true;
		}
	}
	return false;
}

void placement_find(const struct placement_ask *ask, struct placement *ret_placement)
{
	size_t len = ask->len < PLACEMENT_MAX_CODE ? ask->len : PLACEMENT_MAX_CODE;
	struct state st = state_begin(ask);
	struct insn in;

	placement_entry(ask, ret_placement);
	for (size_t at = 0; at < len && decode(ask->code + at, len - at, &in); at += in.i.length) {
		uint64_t place;

		for (int a = 0; a < N_ARGS; a++)
			if (ask->args >> a & 1 && !st.held[a])
				return;
		place = place_of(&st, ask->args);
		if (is_emulated(ask->code + at, in.i.length) && !(ask->returns && st.sp) &&
		    (ask->moved || !place)) {
			if (!is_jumped_into(ask, at))
				*ret_placement = (struct placement){ (uint32_t)at, true, place };
			return;
		}
		if (!step(&in, &st))
			return;
	}
}

bool placement_behind_call(const uint8_t *code, size_t len, size_t at)
{
	bool call = false;
	struct insn in;
	size_t off = 0;

	for (; off < at && at < len && decode(code + off, len - off, &in); off += in.i.length)
		call = in.i.meta.category == ZYDIS_CATEGORY_CALL;
	return off == at && call;
}

static void jump_to(uint64_t to, struct placement_gap *gaps, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		gaps[i].hit |= to > gaps[i].from && to <= gaps[i].to;
}

void placement_jumps(const uint8_t *text, size_t len, uint64_t vaddr, struct placement_gap *gaps,
		     uint32_t n)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint32_t i = 0; i < n; i++) {
		low = gaps[i].from < low ? gaps[i].from : low;
		high = gaps[i].to > high ? gaps[i].to : high;
	}
	for (size_t i = 0; n && i + 5 <= len; i++) {
		bool is_jump = (text[i] & 0xfe) == 0xe8 ||
			       ((text[i] & 0xf0) == 0x80 && i && text[i - 1] == 0x0f);
		int32_t by;
		uint64_t to;

		if (!is_jump)
			continue;
		memcpy(&by, text + i + 1, sizeof(by));
		to = vaddr + i + 5 + (uint64_t)(int64_t)by;
		if (to > low && to <= high)
			jump_to(to, gaps, n);
	}
}

#else

/* arm64: branches are simulated, and none begins a function. */
void placement_entry(const struct placement_ask *ask, struct placement *ret_placement)
{
	*ret_placement = (struct placement){ 0 };
	(void)ask;
}

void placement_find(const struct placement_ask *ask, struct placement *ret_placement)
{
	placement_entry(ask, ret_placement);
}

bool placement_behind_call(const uint8_t *code, size_t len, size_t at)
{
	(void)code;
	(void)len;
	(void)at;
	return false;
}

void placement_jumps(const uint8_t *text, size_t len, uint64_t vaddr, struct placement_gap *gaps,
		     uint32_t n)
{
	(void)text;
	(void)len;
	(void)vaddr;
	(void)gaps;
	(void)n;
}

#endif
