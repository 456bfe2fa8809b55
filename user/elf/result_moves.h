/*
 * Where the code behind a call puts what the call returned, as far as that is seen in a straight line of a few instructions:
 *
 *   call malloc
 *   mov  %rax, %rbx            MOVE_REGISTER 3, from the next instruction on
 *   mov  %rax, -0x18(%rbp)     MOVE_SLOT, register 6, offset -24
 *   mov  %rax, 0x2ee4(%rip)    MOVE_ADDRESS
 *
 * x86-64; on others nothing is read but that the result is in its register. Registers have their numbers in DWARF (System V ABI for
 * AMD64, figure 3.36; AAPCS64).
 */
#ifndef MEMSCOPE_ELF_RESULT_MOVES_H
#define MEMSCOPE_ELF_RESULT_MOVES_H

#include <stddef.h>
#include <stdint.h>

enum { RESULT_MOVES_MAX = 6, RESULT_CODE_BYTES = 48 };

enum result_move_kind { MOVE_REGISTER, MOVE_SLOT, MOVE_ADDRESS };

struct result_move {
	enum result_move_kind kind;
	uint32_t reg;   /* that it is copied to; of a slot: whose address that is relative to */
	int64_t off;    /* of a slot                                                          */
	uint64_t vaddr; /* of MOVE_ADDRESS: where it is stored                                */
	uint64_t at, behind; /* vaddrs of the instruction, and of the next one                  */
};

struct result_moves {
	uint64_t vaddr; /* where the call returns to */
	uint32_t reg;   /* that has the result there */
	uint32_t n;
	struct result_move move[RESULT_MOVES_MAX];
};

/* `code`: `len` bytes from `vaddr` on. `machine`: EM_… of <elf.h>. */
void result_moves_read(const uint8_t *code, size_t len, uint64_t vaddr, uint16_t machine, struct result_moves *ret_moves);

#endif
