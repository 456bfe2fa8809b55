/*
 * Where a function returns: its return instructions, and those of functions that it ends in by a
 * jump. For functions that may throw: a return probe would replace their return address, which
 * breaks unwinding for the exception; a probe on the return instruction itself changes nothing.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_RETURN_SITES_H
#define MEMSCOPE_COLLECT_PROBES_RETURN_SITES_H

#include "elf/cfi.h"
#include "elf/elf_plt.h"
#include "elf/elf_syms.h"

#include <stdint.h>

#define RETURN_SITES_MAX 24 /* of one function */

/* A file: where its functions end, and what the stubs of its PLT call. */
struct return_sites_image {
	struct elf_file *elf;
	struct cfi *cfi;
	struct elf_syms *syms; /* NULL: none */
	struct elf_plt *plt;   /* NULL: none */
};

/* `elf` is borrowed. -errno: the file lacks what this needs. */
int return_sites_image_open(struct elf_file *elf, struct return_sites_image *ret_image);
void return_sites_image_close(struct return_sites_image *im);

/*
 * The vaddrs of the return instructions of the function at `vaddr`, RETURN_SITES_MAX at most, to
 * `ret_sites`. x86-64. After a call that never returns, the next function is not followed. Returns
 * how many, or -EOPNOTSUPP: the function may also end by a jump that is computed or leads to
 * another file; -E2BIG: too many; else as elf_file_read().
 */
int return_sites_find(const struct return_sites_image *im, uint64_t vaddr, uint64_t *ret_sites);
/* The same as offsets in the file, where probes go. `im` NULL, or one that the file does not have: -EOPNOTSUPP. */
int return_sites_offs(const struct return_sites_image *im, uint64_t vaddr, uint64_t *ret_offs);

#endif
