/*
 * The stubs of a procedure linkage table by address: which function of another library each one
 * calls. They have no symbols, and are executed at every such call.
 *
 * A stub jumps through a slot of the GOT; the dynamic relocation of that slot names the function.
 * The jump is decoded, so the order of stubs (lazy, bound at start, with branch protection) does
 * not matter: System V ABI, AMD64 supplement §5.2, and AArch64 ELF ABI §9. Both 64-bit.
 */
#ifndef MEMSCOPE_ELF_ELF_PLT_H
#define MEMSCOPE_ELF_ELF_PLT_H

#include "elf/elf_file.h"

struct elf_plt;

/* -ENOENT: no stub whose function is known; else as elf_file_read_section(). `elf` may be closed
 * after. */
int elf_plt_load(struct elf_file *elf, struct elf_plt **ret_plt, struct err *e);
void elf_plt_free(struct elf_plt *plt);
DEFINE_CLEANUP(struct elf_plt *, elf_plt_freep, elf_plt_free)

/* The function that the stub at `vaddr` calls (its linker name), NULL when there is none. O(log
 * n). */
const char *elf_plt_find(const struct elf_plt *plt, uint64_t vaddr);

#endif
