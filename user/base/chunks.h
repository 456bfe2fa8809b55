/*
 * A grow-only array whose elements never move, so that ids (indexes) and pointers to elements
 * both stay good. Elements are zeroed when added. Freed in one call.
 */
#ifndef MEMSCOPE_BASE_CHUNKS_H
#define MEMSCOPE_BASE_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

enum { CHUNK_LEN = 512 };  /* elements a chunk */

struct chunks {
	size_t elem_size;
	char **dir;
	uint32_t n, n_dir;
};

#define CHUNKS_OF(type) ((struct chunks){ .elem_size = sizeof(type) })

/* Appends one element; NULL when memory (or 32-bit ids) ran out. */
void *chunks_add(struct chunks *c);
/* Takes back the element added last. */
void chunks_drop(struct chunks *c);
void chunks_free(struct chunks *c);

static inline void *chunks_at(const struct chunks *c, uint32_t ix)
{
	return c->dir[ix / CHUNK_LEN] + ix % CHUNK_LEN * c->elem_size;
}

#endif
