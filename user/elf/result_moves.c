#include "elf/result_moves.h"

#include <elf.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <Zydis/Zydis.h>

enum { INSTRUCTIONS_MAX = 8 };

/* Of a general register of 64 bits: its number in DWARF, which has another order; UINT32_MAX: it is none. */
static uint32_t dwarf_register(ZydisRegister reg)
{
	static const uint8_t low[8] = {
		0, 2, 1, 3, 7, 6, 4, 5
	}; /* rax rcx rdx rbx rsp rbp rsi rdi */
	uint32_t n = reg - ZYDIS_REGISTER_RAX;

	if (reg < ZYDIS_REGISTER_RAX || reg > ZYDIS_REGISTER_R15)
		return UINT32_MAX;
	return n < 8 ? low[n] : n;
}

static bool is_rax(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) ==
	       ZYDIS_REGISTER_RAX;
}

/* `mov %rax, …` of all 64 bits. */
static void read_move(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
		      uint64_t at, struct result_moves *to)
{
	struct result_move move = { .at = at, .behind = at + in->length };
	const ZydisDecodedOperand *dst = &ops[0], *src = &ops[1];

	if (in->mnemonic != ZYDIS_MNEMONIC_MOV || src->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    src->reg.value != ZYDIS_REGISTER_RAX || to->n == RESULT_MOVES_MAX)
		return;
	if (dst->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		move.kind = MOVE_REGISTER;
		move.reg = dwarf_register(dst->reg.value);
	} else if (dst->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		   dst->mem.index != ZYDIS_REGISTER_NONE || dst->mem.segment == ZYDIS_REGISTER_FS ||
		   dst->mem.segment == ZYDIS_REGISTER_GS) {
		return;
	} else if (dst->mem.base == ZYDIS_REGISTER_RIP) {
		move.kind = MOVE_ADDRESS;
		move.vaddr = move.behind + (uint64_t)dst->mem.disp.value;
	} else {
		move.kind = MOVE_SLOT;
		move.reg = dwarf_register(dst->mem.base);
		move.off = dst->mem.disp.value;
	}
	if (move.kind == MOVE_ADDRESS || move.reg != UINT32_MAX)
		to->move[to->n++] = move;
}

/* Is rax another value behind it? */
static bool writes_rax(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	for (uint32_t i = 0; i < in->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) && is_rax(ops[i].reg.value))
			return true;
	return false;
}

/* A conditional jump is mostly the one for NULL: what is behind it is what there is otherwise. */
static bool ends_line(const ZydisDecodedInstruction *in)
{
	return in->meta.category == ZYDIS_CATEGORY_CALL ||
	       in->meta.category == ZYDIS_CATEGORY_RET ||
	       in->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

static void read_x86_64(const uint8_t *code, size_t len, struct result_moves *to)
{
	ZydisDecoder decoder;
	size_t at = 0;

	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return;
	for (int i = 0; i < INSTRUCTIONS_MAX && at < len; i++) {
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction in;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, len - at, &in, ops)))
			return;
		read_move(&in, ops, to->vaddr + at, to);
		if (ends_line(&in) || writes_rax(&in, ops))
			return;
		at += in.length;
	}
}

#endif

void result_moves_read(const uint8_t *code, size_t len, uint64_t vaddr, uint16_t machine,
		       struct result_moves *ret_moves)
{
	*ret_moves = (struct result_moves){ .vaddr = vaddr };
#if defined(__x86_64__)
	if (machine == EM_X86_64)
		read_x86_64(code, len, ret_moves);
#else
	(void)code;
	(void)len;
	(void)machine;
#endif
}
