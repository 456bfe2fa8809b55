/*
 * The kernel's functions by address, modules and BPF programs included, from /proc/kallsyms.
 *
 *   ffffffff81000000 T _stext
 *   ffffffffc0201000 t helper	[some_module]
 *
 * Symbols have no size: a function reaches to the next symbol of any kind, and no further than
 * KALLSYMS_FUNCTION_MAX. Aliases: global before local, fewer leading underscores, shorter.
 * About 20 bytes a function, and its name.
 */
#ifndef MEMSCOPE_SYMBOLIZE_KALLSYMS_H
#define MEMSCOPE_SYMBOLIZE_KALLSYMS_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

enum { KALLSYMS_FUNCTION_MAX = 64 << 10 };

struct kallsyms;

/*
 * Reads `path`. -EPERM: the kernel hides its addresses (kptr_restrict; they are all zero).
 * -ENOENT: no functions in it. -ENOMEM, or the errno of the file.
 */
int kallsyms_load(const char *path, struct kallsyms **ret_syms);
void kallsyms_free(struct kallsyms *k);
DEFINE_CLEANUP(struct kallsyms *, kallsyms_freep, kallsyms_free)

/* The function at `addr`, NULL when none covers it. O(log n). */
const char *kallsyms_find(const struct kallsyms *k, uint64_t addr);

#endif
