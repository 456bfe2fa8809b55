/*
 * Grow-only memory, freed in one call: for many small things of one lifetime.
 */
#ifndef MEMSCOPE_BASE_ARENA_H
#define MEMSCOPE_BASE_ARENA_H

#include <stddef.h>

struct arena {
	struct arena_block *blocks;  /* the newest first */
	size_t used, cap;            /* bytes of the newest */
};

/* `size` bytes, aligned for any type, uninitialised; NULL when out of memory. */
void *arena_alloc(struct arena *a, size_t size);
/* A copy of `len` bytes with a NUL after them, not aligned. */
char *arena_strndup(struct arena *a, const char *s, size_t len);
/* Forgets everything given out but keeps one block for what comes. */
void arena_reset(struct arena *a);
void arena_free(struct arena *a);

#endif
