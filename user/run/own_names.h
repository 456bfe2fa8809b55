/*
 * Names of locations in memscope's own BPF programs. Their addresses are read once, when the programs are loaded: the kernel gives them only
 * to a process that has CAP_BPF at that moment, and writers of windows have dropped it.
 */
#ifndef MEMSCOPE_RUN_OWN_NAMES_H
#define MEMSCOPE_RUN_OWN_NAMES_H

struct dict;
struct session;
struct own_names;

/* NULL: out of memory; then /proc/kallsyms has them. */
struct own_names *own_names_read(const struct session *s);
void own_names_free(struct own_names *own);

/* Names those that have no name yet; symbolize() does the rest. NULL: none. */
void own_names(const struct own_names *own, struct dict *d);

#endif
