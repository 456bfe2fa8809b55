/*
 * The part of a profile that collects garbage, by the collectors' own functions: HotSpot, V8, Go, CPython, GHC, Ruby,
 * PHP; and that which compiles the program while it runs (HotSpot, V8). Where the runtime is stripped of their names, nothing
 * is found.
 */
#ifndef MEMSCOPE_ANALYSE_GC_TIME_H
#define MEMSCOPE_ANALYSE_GC_TIME_H

#include "analyse/frame.h"
#include "model/profile.h"

enum gc_runtime {
	GC_HOTSPOT,
	GC_V8,
	GC_GO,
	GC_CPYTHON,
	GC_GHC,
	GC_RUBY,
	GC_PHP,
	N_GC_RUNTIMES,
};

/* "HotSpot", … */
const char *gc_runtime_name(enum gc_runtime runtime);
/* The place in a stack, root first, of the frame below which all is garbage collection; path->n: it collects none. */
uint32_t gc_place(const struct dict *d, const struct frame_path *path);
/* Of value type `type`, of each runtime. 0 or -ENOMEM. */
int gc_time(const struct profile *p, uint32_t type, int64_t ret_values[N_GC_RUNTIMES]);
/* Of value type `type`, what compilers in a running program (JIT) took. 0 or -ENOMEM. */
int jit_time(const struct profile *p, uint32_t type, int64_t *ret_value);

#endif
