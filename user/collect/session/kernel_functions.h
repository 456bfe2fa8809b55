/*
 * Addresses of kernel functions, from /proc/kallsyms: to find them in stacks.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_KERNEL_FUNCTIONS_H
#define MEMSCOPE_COLLECT_SESSION_KERNEL_FUNCTIONS_H

#include "base/cleanup.h"

#include <stdint.h>

struct kernel_function {
	uint64_t addr, size; /* up to the next function; 0: not there, or addresses are hidden */
};

/*
 * Looks for the `n` functions in `names`, which must outlive it, in a thread: /proc/kallsyms takes the kernel
 * as long to write as some programs take to load. What was found is kept for later runs (base/boot_file.h). NULL: out of
 * memory.
 */
struct kernel_functions;
struct kernel_functions *kernel_functions_begin(const char *const *names, uint32_t n);
/* Waits for the search. `n` functions, which live as long as `k`. */
const struct kernel_function *kernel_functions_found(struct kernel_functions *k);
void kernel_functions_free(struct kernel_functions *k);
DEFINE_CLEANUP(struct kernel_functions *, kernel_functions_freep, kernel_functions_free)

#endif
