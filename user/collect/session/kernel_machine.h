/*
 * Machines that are not a Linux host, or one whose kernel somebody else has built, by what the kernel says of itself. Each row has where
 * that is known from; none is guessed.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_KERNEL_MACHINE_H
#define MEMSCOPE_COLLECT_SESSION_KERNEL_MACHINE_H

#include "collect/session/kernel.h"

/* `version`: the text of /proc/version. `types`: the kernel has type information (BTF). `f` arrives as KERNEL_OK with empty texts. */
void kernel_machine_find(const char *version, bool types, struct kernel_finding *f);
/* The processor and the size of its kernel's pages: what of memscope is not made for them. `f` as above. */
void kernel_processor_find(long page_bytes, struct kernel_finding *f);

#endif
