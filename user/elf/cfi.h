/*
 * Call frame information: from an address of an ELF file to the rules that find its caller.
 *
 * Reads .eh_frame (LSB Core, "Exception Frames") and, for code that has none there, .debug_frame
 * (DWARF 5 §6.4). A file without section headers is read through PT_GNU_EH_FRAME. What is here are
 * the rules in DWARF's terms; packing them for the walker is unwind/rows.h.
 *
 *   section:  [CIE][FDE][FDE][CIE][FDE] … [0]
 *   CIE:      length:4 (or ~0:4 length:8)  id  version:1  augmentation…  initial instructions
 *   FDE:      length  CIE pointer  pc_begin  pc_range  augmentation data  instructions
 *
 * Every byte may lie. What does not add up is left out and counted; nothing is read outside the
 * section, and memory is 32 bytes an FDE and 40 a CIE beside the section's own bytes.
 */
#ifndef MEMSCOPE_ELF_CFI_H
#define MEMSCOPE_ELF_CFI_H

#include "elf/elf_file.h"

enum {
	CFI_N_REGS = 33,           /* x86-64: 16 and the return address; arm64: x0 to x30, sp       */
	CFI_FDES_MAX = 4 << 20,    /* of one file; libLLVM-14 has 94,994                             */
	CFI_CIES_MAX = 1 << 20,
	CFI_REMEMBER_MAX = 32,     /* nested DW_CFA_remember_state                                   */
};

/* --- rules --- */

#define CFI_BASE_CFA 0xff  /* as a `base`: the CFA instead of a register */

enum cfi_cfa_kind {
	CFI_CFA_BAD,    /* `why` says what is in the way      */
	CFI_CFA_REG,    /* CFA = reg + off                    */
	CFI_CFA_DEREF,  /* CFA = *(reg + off) + off2          */
	CFI_CFA_PLT,    /* CFA = reg + off + ((pc & 15) >= off2 ? 8 : 0) */
};

enum cfi_reg_kind {
	CFI_REG_UNSET,      /* no rule: as the ABI has it                       */
	CFI_REG_SAME,       /* the caller's value is in the register            */
	CFI_REG_UNDEFINED,  /* lost; of the return address: there is no caller  */
	CFI_REG_AT,         /* the caller's value is stored at base + off       */
	CFI_REG_IS,         /* it is base + off                                 */
	CFI_REG_BAD,        /* an expression that is none of these              */
};

/* Why rules are not there. */
enum cfi_why {
	CFI_WHY_NOTHING,
	CFI_WHY_NO_CFA,      /* no rule for the CFA was given              */
	CFI_WHY_EXPRESSION,  /* the CFA is an expression of another form   */
	CFI_WHY_PROGRAM,     /* damaged or unknown instructions            */
};

struct cfi_reg {
	uint8_t kind;  /* enum cfi_reg_kind                        */
	uint8_t base;  /* a register's DWARF number, CFI_BASE_CFA  */
	int32_t off;
};

struct cfi_rules {
	uint8_t cfa_kind;  /* enum cfi_cfa_kind */
	uint8_t cfa_reg;
	uint8_t why;       /* enum cfi_why      */
	int32_t cfa_off, cfa_off2;
	int64_t last_off;  /* of the last CFA that was not an expression, as it was given */
	struct cfi_reg regs[CFI_N_REGS];
};

/* --- functions --- */

struct cfi_fde {
	uint64_t start, end;  /* vaddr, [start, end), at least one byte                   */
	bool signal;          /* augmentation 'S': the frame above was interrupted        */
	bool lands;           /* 'P': it has a personality routine, for exceptions may land in it */
	uint8_t ra_reg;       /* column of the return address (x86-64: 16, arm64: 30)     */
};

struct cfi;

enum {
	CFI_EH_FRAME = 1 << 0,
	CFI_DEBUG_FRAME = 1 << 1,  /* where .eh_frame says nothing */
};

/* The DWARF number of the frame pointer: rbp, x29. `machine`: EM_… */
uint8_t cfi_frame_pointer(uint16_t machine);

/*
 * Reads and sorts the FDEs; `elf` may be closed afterwards. `from`: CFI_EH_FRAME and
 * CFI_DEBUG_FRAME.
 * -ENOENT: the file has no CFI; -EOPNOTSUPP: a machine other than x86-64 and arm64.
 */
int cfi_open(struct elf_file *elf, unsigned from, struct cfi **ret_cfi, struct err *e);
void cfi_free(struct cfi *cfi);
DEFINE_CLEANUP(struct cfi *, cfi_freep, cfi_free)

/*
 * The FDEs of executable segments, by address and without overlaps: of two that begin at one
 * address the first in the file counts, else an FDE ends where the next begins.
 */
uint32_t cfi_n_fdes(const struct cfi *cfi);
struct cfi_fde cfi_fde_at(const struct cfi *cfi, uint32_t i);
/* Number of the FDE that covers `vaddr`; -ENOENT: none does. O(log n). */
int cfi_find(const struct cfi *cfi, uint64_t vaddr, uint32_t *ret_i);

/* `rules` hold in [start, end); they are the callee's and change when it returns. */
typedef int (*cfi_row_fn)(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules);

/*
 * Runs the program of FDE `i`: its rows in order of address, without gaps, from the FDE's start
 * to its end. A damaged program ends in one row of CFI_CFA_BAD. 0, or what `fn` returned when that
 * was not 0 (it must not be -EBADMSG).
 */
int cfi_rows(const struct cfi *cfi, uint32_t i, cfi_row_fn fn, void *arg);

/* What was left out when the file was opened. */
struct cfi_counts {
	uint32_t cies, fdes;  /* read                                                        */
	uint32_t bad;         /* entries that do not add up, or of an encoding not read       */
	uint32_t outside;     /* of no executable segment: of code the linker threw away      */
	uint32_t overlaps;    /* doubles dropped, or FDEs cut off                             */
};
struct cfi_counts cfi_counts(const struct cfi *cfi);

#endif
