/*
 * Arrays that may become very large, in nameless files instead of anonymous memory: the kernel writes their pages out when
 * memory is short, so that a heap of 10^8 blocks can be looked at where there are not so many gigabytes.
 *
 * Until large_use() all of these are calloc(), reallocarray() and free(). Also after it for what is smaller than `least`, and
 * where the folder has no room. What large_alloc() returned goes to large_free() only; large_free() also takes what malloc()
 * returned. For any thread.
 */
#ifndef MEMSCOPE_BASE_LARGE_H
#define MEMSCOPE_BASE_LARGE_H

#include "base/grow.h"

#include <stddef.h>
#include <stdlib.h>

enum { LARGE_LEAST = 64 << 20 };

/* `folder` is kept, not copied. NULL: no more. */
void large_use(const char *folder, size_t least);

/* `n` times `size` bytes, zeros. NULL: out of memory. */
void *large_alloc(size_t n, size_t size);
/* `at` (NULL: nothing yet) with room for `n` times `size` bytes; what is new is not zeroed. NULL: out of memory, `at` stays. */
void *large_resize(void *at, size_t n, size_t size);
void large_free(void *at);

/* Room for one more row in an array of large_alloc() or large_resize(): as GROW of base/grow.h. */
#define GROW_LARGE(rows, n, cap) GROW_BY(large_resize, rows, n, cap)

static inline void large_freep(void *ptr)
{
	large_free(*(void **)ptr);
}

#endif
