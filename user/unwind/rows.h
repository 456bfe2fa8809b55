/*
 * The unwind table of one ELF file: everything that is known of how its code finds its callers, in
 * the form of bpf/walk/rows.h. From there it goes into the pool (publish.h) or onto the disk
 * (row_cache.h).
 *
 * Known from, the first that covers an address counts:
 *   roots.h      functions that nobody calls
 *   elf/cfi.h    .eh_frame, else .debug_frame
 *   patterns     the return from a signal handler, where it has no CFI
 *   Go's tables  elf/gopclntab.h
 *   roots.h      code known to keep frame pointers
 * The rest of the executable segments is MS_RULE_NONE, and there is no hole in a table: every
 * address from its first page to its last has a row.
 */
#ifndef MEMSCOPE_UNWIND_ROWS_H
#define MEMSCOPE_UNWIND_ROWS_H

#include "elf/elf_file.h"
#include "unwind/rules.h"

enum {
	UNWIND_PAGES_MAX = 1 << 19,  /* of one file: 2 GiB from its first executable byte to its last */
};

enum unwind_kind {
	UNWIND_CFI,    /* rows from CFI                                                       */
	UNWIND_GO,     /* rows from Go's tables; from CFI where there is cgo                  */
	UNWIND_FP,     /* Go whose tables cannot be read: MS_RULE_FP                          */
	UNWIND_GUESS,  /* nothing but roots: a span of it may as well be MS_SPAN_GUESS        */
};

struct unwind_counts {
	uint32_t functions;         /* FDEs that made rows, Go's functions included              */
	uint32_t bad[N_RULE_WHY];   /* functions with a row of MS_RULE_BAD, by the first reason  */
	uint32_t damaged;           /* entries of the CFI that do not add up                     */
	uint64_t code_bytes;        /* of executable sections (segments, when there are none)    */
	uint64_t none_bytes;        /* of these, with MS_RULE_NONE                               */
};

struct unwind_table {
	uint32_t kind;        /* enum unwind_kind                                                */
	uint16_t machine;     /* EM_…                                                            */
	uint64_t first_page;  /* vaddr >> MS_ROW_PAGE_SHIFT                                      */
	uint32_t n_pages;     /* at least 1                                                      */
	uint32_t *dir;        /* n_pages + 1 row numbers, the first 0, the last n_rows           */
	uint32_t *rows;       /* ms_row() with the number of a rule below                        */
	uint32_t n_rows;      /* at least 1: the first is at the first byte of the first page     */
	struct ms_rule *rules;  /* the fixed ones of rows.h first                                */
	uint32_t n_rules;
	struct unwind_counts counts;
	int64_t cpu_ns;       /* what making it took of another process (table_cell.h)           */
};

/*
 * Makes the table of `elf`, which may be closed afterwards. Without any CFI there still is one, of
 * kind UNWIND_GUESS. -EOPNOTSUPP: neither x86-64 nor arm64; -ENOENT: no executable segment;
 * -EFBIG: too large for rows.h; -ENOMEM.
 */
int unwind_table_build(struct elf_file *elf, struct unwind_table **ret_table, struct err *e);
void unwind_table_free(struct unwind_table *table);
DEFINE_CLEANUP(struct unwind_table *, unwind_table_freep, unwind_table_free)

/* The rule in force at `vaddr`, as the walker finds it. O(log n). */
const struct ms_rule *unwind_table_find(const struct unwind_table *table, uint64_t vaddr);

/* Pool words that the table takes: directory and rows. */
uint64_t unwind_table_words(const struct unwind_table *table);

#endif
