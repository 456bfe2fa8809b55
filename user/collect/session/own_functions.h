/*
 * Where the kernel has put memscope's own BPF programs, and what their functions are called: samples find them at work, and
 * /proc/kallsyms, which has their names too, takes the kernel 40 ms to write.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_OWN_FUNCTIONS_H
#define MEMSCOPE_COLLECT_SESSION_OWN_FUNCTIONS_H

#include <stdint.h>

struct session;

/* `name`: "bpf_prog_NAME", without the kernel's tag, which is another after each change of a program. */
typedef void (*own_function_fn)(void *ctx, uint64_t addr, uint64_t len, const char *name);

/* Where addresses are hidden from us, there are none. */
void own_functions_each(const struct session *s, own_function_fn fn, void *ctx);

#endif
