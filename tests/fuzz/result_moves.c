/*
 * Code behind a call, of a hostile file: what is read of it are whole instructions of it, one behind the other, and each is one that
 * the disassembler, too, calls a move. First byte: machine.
 */
#include "elf/result_moves.h"
#include "elf/disassembler.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { VADDR = 0x401000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_move(uint64_t at, uint64_t behind, const uint8_t *code, size_t len)
{
	_cleanup_(disassembler_closep) struct disassembler *dis = NULL;
	struct instruction in;

	if (disassembler_open(EM_X86_64, SYNTAX_INTEL, &dis) < 0)
		abort();
	disassembler_read(dis, code + (at - VADDR), len - (at - VADDR), at, &in);
	return in.size == behind - at && strstr(in.text, "mov");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result_moves moves;
	uint64_t last = VADDR;
	size_t len;

	if (!size)
		return 0;
	data++;
	len = size - 1 < RESULT_CODE_BYTES ? size - 1 : RESULT_CODE_BYTES;
	result_moves_read(data, len, VADDR, data[-1] & 1 ? EM_AARCH64 : EM_X86_64, &moves);
	if (moves.vaddr != VADDR || moves.n > RESULT_MOVES_MAX || (data[-1] & 1 && moves.n))
		abort();
	for (uint32_t i = 0; i < moves.n; i++) {
		const struct result_move *m = &moves.move[i];

		if (m->at < last || m->behind <= m->at || m->behind > VADDR + len ||
		    m->kind > MOVE_ADDRESS || (m->kind != MOVE_ADDRESS && m->reg > 15) ||
		    !is_move(m->at, m->behind, data, len))
			abort();
		last = m->behind;
	}
	return 0;
}
