/*
 * Go's table of functions (pclntab): names, extents, and how far each instruction has moved the
 * stack pointer. It is in every Go binary, stripped or not: the runtime needs it.
 *
 * Source of the layout: src/runtime/symtab.go and src/debug/gosym/pclntab.go of Go 1.2, 1.16, 1.18
 * and 1.20, each of which changed it and its magic number.
 *
 *   header:   magic:4  0:2  instruction quantum:1  pointer size:1  counts and offsets
 *   functab:  (entry, offset of its func record) … , end of the last function
 *   func:     entry  name  args  deferreturn  pcsp …
 *   pcsp:     (value delta, pc delta) as varints, the value zigzag
 *
 * Every byte may lie: what does not add up ends the function it is in.
 */
#ifndef MEMSCOPE_ELF_GOPCLNTAB_H
#define MEMSCOPE_ELF_GOPCLNTAB_H

#include "elf/elf_file.h"

enum { GOPCLNTAB_FUNCS_MAX = 4 << 20 };

struct gopclntab;

struct go_func {
	uint64_t start, end;  /* vaddr, [start, end)                                       */
	const char *name;     /* "main.main"; lives as long as the table; "" when it is not there */
};

/*
 * Reads the table; `elf` may be closed afterwards. -ENOENT: not a Go binary, or one whose table is
 * not found; -EOPNOTSUPP: of a version not known; -EBADMSG: it does not add up.
 */
int gopclntab_open(struct elf_file *elf, struct gopclntab **ret_tab, struct err *e);
void gopclntab_free(struct gopclntab *tab);
DEFINE_CLEANUP(struct gopclntab *, gopclntab_freep, gopclntab_free)

/* By address, without overlaps. */
uint32_t gopclntab_n_funcs(const struct gopclntab *tab);
struct go_func gopclntab_func(const struct gopclntab *tab, uint32_t i);
/* The function at `vaddr`. -ENOENT: none. O(log n). */
int gopclntab_find(const struct gopclntab *tab, uint64_t vaddr, uint32_t *ret_i);

/* The first function of that name. -ENOENT: none. O(n). */
int gopclntab_find_name(const struct gopclntab *tab, const char *name, uint32_t *ret_i);
/*
 * Bytes of function `i`'s arguments and results, 8 for each register: what Go's own version says in
 * words. -EOPNOTSUPP: of before Go 1.18, whose arguments were on the stack; -EBADMSG: not there.
 */
int gopclntab_args(const struct gopclntab *tab, uint32_t i);

/*
 * In [start, end) sp is `delta` bytes below what it was at the function's first instruction. Returns
 * 0 to go on.
 */
typedef int (*gopclntab_row_fn)(void *arg, uint64_t start, uint64_t end, int32_t delta);
/* All of function `i`, in order; a damaged table ends it early. 0, or what `fn` returned. */
int gopclntab_rows(const struct gopclntab *tab, uint32_t i, gopclntab_row_fn fn, void *arg);

/* True when the file says that Go's linker made it, whether or not its table can be read. */
bool elf_is_go(struct elf_file *elf);

#endif
