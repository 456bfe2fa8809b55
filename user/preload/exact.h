/*
 * Every call of the allocator, recorded in the process itself (exact_area.h), as alloc.c and agent.c
 * see it.
 */
#ifndef MEMSCOPE_PRELOAD_EXACT_H
#define MEMSCOPE_PRELOAD_EXACT_H

#include "preload/exact_area.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The frame of a function that was jumped to from one that the program has called: where that
 * function's caller is, and its frame pointer. */
#define EXACT_CALLER ((const uintptr_t *)__builtin_frame_address(0))

/* `p` is new, of `size` bytes; NULL: the call failed. `function`: the allocator's. */
void exact_allocated(const void *p, size_t size, const void *function, const uintptr_t *caller);
/* `p` is about to be freed. `quiet`: it may be that its free comes once more, or has come. */
void exact_freed(const void *p, const uintptr_t *caller, bool quiet);

/* The block that realloc may move: taken out, then freed, or put back. */
struct exact_old {
	struct exact_block block;
	bool was_there;
};
void exact_realloc_begins(const void *p, const uintptr_t *caller, struct exact_old *ret_old);
void exact_realloc_ends(const void *p, bool moved, const uintptr_t *caller,
			const struct exact_old *old);

/*
 * Of an allocator that takes its blocks from another one that is recorded, or not: what of that came between
 * exact_object_begins() and _allocated() is the same block where the address is.
 */
void exact_object_begins(void);
void exact_object_allocated(const void *p, size_t size, const void *function, const uintptr_t *caller);
/* It may be freed once more, by the other one. */
void exact_object_freed(const void *p, const uintptr_t *caller);
void exact_object_realloc_begins(const void *p, const uintptr_t *caller, struct exact_old *ret_old);
void exact_object_realloc_ends(const void *p, bool moved, const uintptr_t *caller,
			       const struct exact_old *old);

/* What an interpreter says of itself (CPython's _PyThreadState_UncheckedGet and _Py_IsFinalizing). Once; it is
 * never unmapped from then on. */
struct exact_interpreter {
	void *(*current)(void);  /* the state of the thread that holds its lock, or of this one if it does */
	int (*finalizing)(void);
};
void exact_interpreter(const struct exact_interpreter *of);

/* Maps the memfd and records in it from now on. 0, or -errno. */
int exact_begin(int fd);
/* Records no more; what was mapped is unmapped, when no thread is in it any more. */
void exact_end(void);

/* In a forked child, of which nothing is recorded: its parent's threads are not there. */
void exact_in_child(void);

#endif
