/*
 * Which functions of an image refer to an address, by the bytes of their code alone.
 *
 * Four bytes that make such an address, as a distance from behind them (call, jmp, jcc, lea and mov with rip)
 * or as they are (programs at a fixed address), count as a reference: instructions are not decoded. So
 * nothing of these kinds is missed, and bytes that only look like one, of which there is about one in 4 GB of
 * code, are counted too. A pointer that lies in data is none. x86-64 alone.
 */
#ifndef MEMSCOPE_ELF_CODE_REFS_H
#define MEMSCOPE_ELF_CODE_REFS_H

#include "elf/cfi.h"

enum { CODE_REFS_MAX = 1024 };

/*
 * The functions whose code refers to one of `n` vaddrs: numbers of their FDEs, ascending, `cap` at most. Returns
 * how many; -EOPNOTSUPP: another machine; -E2BIG: more than `cap`; -ENOMEM.
 */
int code_refs_users(const struct elf_file *elf, const struct cfi *cfi, const uint64_t *vaddrs,
		    uint32_t n, uint32_t *ret_fdes, uint32_t cap);

/*
 * Of the functions `fdes` (ascending), those that other code refers to as well, or that none does: these stay,
 * in place. Those that only the others of the list refer to are parts of them. Returns how many stay, or as
 * above.
 */
int code_refs_entries(const struct elf_file *elf, const struct cfi *cfi, uint32_t *fdes, uint32_t n);

/*
 * May an exception leave the function? If one that it refers to, over three such steps, has a personality
 * routine: what throws in an allocator is C++ code that first calls the new-handler, and catches what that
 * throws. Also when that cannot be found out.
 */
bool code_refs_may_throw(const struct elf_file *elf, const struct cfi *cfi, uint32_t fde);

#endif
