#include "unwind/leaf_code.h"

#if defined(__x86_64__)

#include <Zydis/Zydis.h>
#include <elf.h>

enum { INSN_MAX = 15, TRAP = 0xcc };

static bool is_kept(ZydisRegister reg)
{
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)) {
	case ZYDIS_REGISTER_RBX:
	case ZYDIS_REGISTER_RBP:
	case ZYDIS_REGISTER_R12:
	case ZYDIS_REGISTER_R13:
	case ZYDIS_REGISTER_R14:
	case ZYDIS_REGISTER_R15:
		return true;
	default:
		return false;
	}
}

static bool is_sp(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) ==
	       ZYDIS_REGISTER_RSP;
}

/* Operands that are not written down (of push, call, leave …) are among them. */
static bool leaves_frame_alone(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	for (int i = 0; i < in->operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (is_sp(op->mem.base) || is_sp(op->mem.index)))
			return false;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (is_sp(op->reg.value) ||
		     (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && is_kept(op->reg.value))))
			return false;
	}
	return true;
}

bool leaf_code(struct code *code, uint64_t start, uint64_t end)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	bool returns = false;

	if (elf_file_machine(code->elf) != EM_X86_64 || end - start > LEAF_CODE_MAX)
		return false;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t at = start; at < end; at += in.length) {
		size_t len = end - at < INSN_MAX ? end - at : INSN_MAX;
		const uint8_t *p = code_at(code, at, len);

		if (!p)
			return false;
		if (*p == TRAP) {
			in.length = 1;
			continue;
		}
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, p, len, &in, ops)))
			return false;
		if (in.mnemonic == ZYDIS_MNEMONIC_RET && in.operand_count_visible == 0)
			returns = true;
		else if (!leaves_frame_alone(&in, ops))
			return false;
	}
	return returns;
}

#else

bool leaf_code(struct code *code, uint64_t start, uint64_t end)
{
	return false;
}

#endif
