/*
 * The kernel's functions by address, modules and BPF programs included, from /proc/kallsyms.
 *
 *   ffffffff81000000 T _stext
 *   ffffffffc0201000 t helper	[some_module]
 *
 * Symbols have no size: a function reaches to the next symbol of any kind, and no further than
 * KALLSYMS_FUNCTION_MAX. Aliases: global before local, fewer leading underscores, shorter.
 * About 20 bytes a function, and its name.
 *
 * To read them all takes the kernel 40 ms and us another 30 (122,000 symbols), so what is between _stext and _etext,
 * which stays as it is until the next boot, is kept in a file (base/boot_file.h): rows, and the names behind them. In another one are those of
 * modules, until one is loaded or removed.
 */
#ifndef MEMSCOPE_SYMBOLIZE_KALLSYMS_H
#define MEMSCOPE_SYMBOLIZE_KALLSYMS_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KALLSYMS_FUNCTION_MAX = 64 << 10 };

struct kallsyms;

/*
 * Reads `path`. -EPERM: the kernel hides its addresses (kptr_restrict; they are all zero).
 * -ENOENT: no functions in it. -ENOMEM, or the errno of the file.
 */
int kallsyms_load(const char *path, struct kallsyms **ret_syms);
/* The kernel's own functions alone, as kept in this boot. -ENOENT: they are not, or not as kallsyms_keep() writes them. */
int kallsyms_kept(struct kallsyms **ret_syms);
/* Keeps them; where that fails, they are read anew. */
int kallsyms_keep(const struct kallsyms *k);
/*
 * The same of modules, for as long as `sign` (kernel_modules.h) is the same; BPF programs are in neither. A function that is not found may be
 * there: the last one of each module is not.
 */
int kallsyms_modules_kept(uint64_t sign, struct kallsyms **ret_syms);
int kallsyms_modules_keep(const struct kallsyms *k, uint64_t sign);
/* Is it of what is kept? */
bool kallsyms_covers(const struct kallsyms *k, uint64_t addr);

/* What a file has; `len` bytes at `data`, aligned for a number of 64 bits, that stay there. -EBADMSG: it is damaged. */
int kallsyms_parse(const void *data, size_t len, struct kallsyms **ret_syms);

void kallsyms_free(struct kallsyms *k);
DEFINE_CLEANUP(struct kallsyms *, kallsyms_freep, kallsyms_free)

/* The function at `addr`, NULL when none covers it. O(log n). */
const char *kallsyms_find(const struct kallsyms *k, uint64_t addr);

#endif
