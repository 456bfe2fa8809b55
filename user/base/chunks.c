#include "base/chunks.h"

#include <stdlib.h>
#include <string.h>

static int add_chunk(struct chunks *c)
{
	/* The directory doubles: its capacity is the power of two at or above its length. */
	if (!(c->n_dir & (c->n_dir - 1))) {
		size_t cap = c->n_dir ? (size_t)c->n_dir * 2 : 1;
		char **dir = reallocarray(c->dir, cap, sizeof(*dir));

		if (!dir)
			return -1;
		c->dir = dir;
	}
	c->dir[c->n_dir] = calloc(CHUNK_LEN, c->elem_size);
	if (!c->dir[c->n_dir])
		return -1;
	c->n_dir++;
	return 0;
}

void *chunks_add(struct chunks *c)
{
	void *elem;

	if (c->n == UINT32_MAX)
		return NULL;
	if (c->n == (uint64_t)c->n_dir * CHUNK_LEN && add_chunk(c) < 0)
		return NULL;
	elem = chunks_at(c, c->n++);
	memset(elem, 0, c->elem_size); /* a dropped element may have been here */
	return elem;
}

void chunks_drop(struct chunks *c)
{
	c->n--;
}

void chunks_free(struct chunks *c)
{
	for (uint32_t i = 0; i < c->n_dir; i++)
		free(c->dir[i]);
	free(c->dir);
	*c = (struct chunks){ .elem_size = c->elem_size };
}
