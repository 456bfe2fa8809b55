/* The names of variables in processes, by their addresses. */
#ifndef MEMSCOPE_PROC_VARIABLE_H
#define MEMSCOPE_PROC_VARIABLE_H

#include "proc/proc_table.h"

/* What was read of images so far: the second question to one costs no more than a search. */
struct variable_names;

/* NULL: out of memory. It borrows `procs`. */
struct variable_names *variable_names_new(struct proc_table *procs);
void variable_names_free(struct variable_names *v);
DEFINE_CLEANUP(struct variable_names *, variable_names_freep, variable_names_free)

/*
 * The variable that an address of a process is in, by the symbols of the image whose variables lie there, demangled:
 * "sessions", "app::cache+0x18". false: no image is below it, or its symbols do not cover it.
 */
bool variable_name(struct variable_names *v, struct proc *proc, uint64_t addr, char *name, size_t cap);

#endif
