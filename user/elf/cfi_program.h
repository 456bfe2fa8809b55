/*
 * CFA programs: the instructions of a CIE or FDE (DWARF 5 §6.4.2 with the extensions of GNU and
 * of arm64) and the expressions in them. Used by cfi.c alone.
 */
#ifndef MEMSCOPE_ELF_CFI_PROGRAM_H
#define MEMSCOPE_ELF_CFI_PROGRAM_H

#include "base/bytes.h"
#include "elf/cfi.h"

/* Where encoded pointers (DW_EH_PE_…) count from. */
struct cfi_bases {
	const uint8_t *data;  /* bytes of the section, at `vaddr`        */
	uint64_t vaddr;
	uint64_t text, got;   /* of textrel and datarel; 0: not known    */
};

enum { CFI_PTR_OMIT = 0xff };

/*
 * The pointer at the front of `b`, which lies in `bases->data`. -EBADMSG: past the end;
 * -EOPNOTSUPP: an encoding that needs the running process (indirect), or an unknown one.
 */
int cfi_pointer(struct bytes *b, const struct cfi_bases *bases, uint8_t enc, uint64_t *ret_value);
/* Takes a pointer whose value nobody needs. */
int cfi_skip_pointer(struct bytes *b, const struct cfi_bases *bases, uint8_t enc);

struct cfi_program {
	const struct cfi_bases *bases;
	uint8_t enc;          /* of pointers in the instructions */
	uint64_t code_align;
	int64_t data_align;
	uint64_t loc, end;    /* vaddr */
	cfi_row_fn fn;        /* NULL: a CIE's instructions, which make no rows */
	void *arg;
};

/*
 * Runs `insns` on `rules`. `initial`: what DW_CFA_restore returns to. 0, -EBADMSG: damaged (rows
 * up to there were made, p->loc says how far), or what `fn` returned.
 */
int cfi_run(struct cfi_program *p, struct bytes insns, const struct cfi_rules *initial,
	    struct cfi_rules *rules);

#endif
