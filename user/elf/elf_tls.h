/*
 * Where a thread-local variable that an image exports is, by what the linker left for the dynamic linker to fill in.
 *
 *   R_*_TPOFF64     a word: from the thread's pointer to the variable (initial exec)
 *   R_*_DTPMOD64    two words: the module's number, and where the variable is in its block (global dynamic); of no symbol: the
 *                   number of this module (local dynamic)
 *   R_*_TLSDESC     two words: a function, and its argument: the distance from the thread's pointer, or the address of
 *                   those two words (TLS descriptors)
 *   none            in an executable: its block is at a fixed distance of the thread's pointer (local exec)
 *
 * "ELF Handling For Thread-Local Storage" (U. Drepper, 0.21); the distance: §3.4.6 of the x86-64 psABI (variant II), and the ELF for
 * the Arm 64-bit Architecture, "Thread Local Storage" (variant I). x86-64 and arm64.
 */
#ifndef MEMSCOPE_ELF_ELF_TLS_H
#define MEMSCOPE_ELF_ELF_TLS_H

#include "elf/elf_file.h"

enum elf_tls_access {
	ELF_TLS_FIXED,  /* `offset` from the thread's pointer                                     */
	ELF_TLS_OFFSET, /* the word at `slot` has it                                              */
	ELF_TLS_MODULE, /* the word at `slot` is the module; in its block it is at `offset`      */
	ELF_TLS_PAIR,   /* … and there is the second word, which says where it is in it          */
	ELF_TLS_DESC,   /* the second word at `slot`; `offset` is added to what it leads to      */
};

struct elf_tls {
	enum elf_tls_access access;
	uint64_t slot; /* vaddr */
	int64_t offset;
	uint64_t size; /* of the variable */
};

/*
 * `main`: it is the program, no library. -ENOENT: no such variable is exported (no sentence is set); -EOPNOTSUPP: nothing says where
 * it is. Else as elf_file_read().
 */
int elf_tls_find(struct elf_file *elf, const char *name, bool main, struct elf_tls *ret_tls, struct err *e);

/* What the word `desc` of an ELF_TLS_DESC is: true: the address of two words, as of ELF_TLS_PAIR; false: a distance from the
 * thread's pointer. */
bool elf_tls_desc_is_address(uint64_t desc);

#endif
