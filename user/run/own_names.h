/*
 * Names of places in memscope's own BPF programs. Where they are is asked once, when they are loaded: the kernel tells only who has CAP_BPF
 * then, which writers of windows, and who names at a run's end, have laid down.
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
