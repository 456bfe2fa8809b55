/*
 * Functions of stripped interpreters that a USDT probe gives away: the probe of a known name lies in one function of
 * every build. Where compilers have put the probe into a part of its own for code that rarely runs, the function is the
 * one that jumps there.
 */
#ifndef MEMSCOPE_SYMBOLIZE_PROBE_FUNCTIONS_H
#define MEMSCOPE_SYMBOLIZE_PROBE_FUNCTIONS_H

#include "elf/cfi.h"
#include "elf/elf_file.h"

enum { PROBE_FUNCTIONS_MAX = 8 };

struct probe_function {
	uint32_t fde;     /* its number */
	const char *name; /* static     */
};

/* Those of one file. How many; 0 also where it has no probes, or they cannot be read. */
uint32_t probe_functions_find(struct elf_file *elf, const struct cfi *cfi,
			      struct probe_function ret_found[PROBE_FUNCTIONS_MAX]);

#endif
