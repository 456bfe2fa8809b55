/*
 * Machine code as text, an instruction at a time: x86-64 by Zydis, arm64 by Capstone.
 *
 * Two libraries, because each is the one that knows its machine: of the 335,736 instructions in the .text of Debian 12's
 * libc, Zydis 4.0 puts every boundary where objdump does, and Capstone 4.0.2 6,362 elsewhere (it has no EVEX forms
 * of many instructions). Zydis knows no arm64. Zydis writes `jnz` where objdump writes `jne`, and no suffix of size where a register
 * says the size.
 *
 * The bytes may be anything: what is no instruction is "(bad)", and reading goes on behind it.
 */
#ifndef MEMSCOPE_ELF_DISASSEMBLER_H
#define MEMSCOPE_ELF_DISASSEMBLER_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSTRUCTION_TEXT_MAX = 200 };

enum disassembly_syntax { SYNTAX_ATT, SYNTAX_INTEL }; /* of x86; as objdump has it, ATT is the usual one */

struct instruction {
	uint64_t vaddr;
	uint32_t size;    /* bytes, at least 1 */
	bool branches;    /* to `target`: a jump or a call whose address is in the instruction */
	bool calls;
	uint64_t target;
	char text[INSTRUCTION_TEXT_MAX]; /* a target is written as 0x… */
};

struct disassembler;

/* Loads the library that may be needed, for a process that cannot later. */
void disassembler_prepare(void);

/*
 * `machine`: EM_… of <elf.h>. -EOPNOTSUPP: another machine, or one that this build does not read; -ENOENT: Capstone, which reads it, is not
 * installed.
 */
int disassembler_open(uint16_t machine, enum disassembly_syntax syntax, struct disassembler **ret_dis);
void disassembler_close(struct disassembler *dis);
DEFINE_CLEANUP(struct disassembler *, disassembler_closep, disassembler_close)

/* The instruction at the front of `len` bytes (more than none) that are at `vaddr`. */
void disassembler_read(struct disassembler *dis, const uint8_t *code, size_t len, uint64_t vaddr,
		       struct instruction *ret);

#endif
