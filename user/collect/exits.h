/*
 * Where a function returns: its return instructions, and those of the functions that it ends in by
 * a jump. For functions that may throw: a return probe would replace their return address, and
 * nobody who unwinds for an exception can do anything with what is there then; a probe on the
 * return instruction itself changes nothing.
 */
#ifndef MEMSCOPE_COLLECT_EXITS_H
#define MEMSCOPE_COLLECT_EXITS_H

#include "elf/cfi.h"
#include "elf/elf_plt.h"
#include "elf/elf_syms.h"

#include <stdint.h>

#define EXITS_MAX 24 /* of one function */

/* Of a file: where its functions end, and what the stubs of its PLT call. */
struct exits_image {
	struct elf_file *elf;
	struct cfi *cfi;
	struct elf_syms *syms; /* NULL: none */
	struct elf_plt *plt;   /* NULL: none */
};

/* `elf` is borrowed. -errno: this file has not what it takes. */
int exits_image_open(struct elf_file *elf, struct exits_image *ret_image);
void exits_image_close(struct exits_image *im);

/*
 * The vaddrs of the return instructions of the function at `vaddr`, EXITS_MAX at most, to
 * `ret_exits`. x86-64. What is behind a call that never returns is not followed into the next
 * function. Returns how many, or -EOPNOTSUPP: the function may also end by a jump that is computed or
 * leads to another file; -E2BIG: too many; else as elf_file_read().
 */
int exits_find(const struct exits_image *im, uint64_t vaddr, uint64_t *ret_exits);

#endif
