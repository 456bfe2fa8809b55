/* The names of variables in processes, by their addresses. */
#ifndef MEMSCOPE_PROC_VARIABLE_H
#define MEMSCOPE_PROC_VARIABLE_H

#include "proc/proc_table.h"

/*
 * The variable that an address of a process is in, by the symbols of the image whose variables lie there, demangled:
 * "sessions", "app::cache+0x18". false: no image is below it, or its symbols do not cover it. Reads the image's symbols each
 * time. `image`: the image, where it is known even if the variable is not; NULL.
 */
bool proc_variable_name(struct proc_table *procs, struct proc *proc, uint64_t addr, char *name, size_t cap,
			module_id *ret_image);

#endif
