/*
 * Where functions of the kernel are, from /proc/kallsyms: to find them in stacks.
 */
#ifndef MEMSCOPE_COLLECT_KERNEL_FUNCTIONS_H
#define MEMSCOPE_COLLECT_KERNEL_FUNCTIONS_H

#include <stdint.h>

struct kernel_function {
	uint64_t addr, size; /* up to the next function; 0: not there, or addresses are hidden */
};

/* Of the `n` functions in `names`. Reads the list once. */
void kernel_functions_find(const char *const *names, struct kernel_function *ret, uint32_t n);

#endif
