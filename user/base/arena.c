#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)

struct arena_block {
	struct arena_block *next;
	size_t cap;
	_Alignas(max_align_t) char data[];
};

static int add_block(struct arena *a, size_t size)
{
	size_t cap = size > BLOCK_BYTES ? size : BLOCK_BYTES;
	struct arena_block *b;

	if (size > SIZE_MAX - sizeof(*b))
		return -1;
	b = malloc(sizeof(*b) + cap);
	if (!b)
		return -1;
	b->next = a->blocks;
	b->cap = cap;
	a->blocks = b;
	a->used = 0;
	a->cap = cap;
	return 0;
}

static void *alloc(struct arena *a, size_t size, size_t align)
{
	size_t at = (a->used + align - 1) & ~(align - 1);

	if (!a->blocks || at > a->cap || size > a->cap - at) {
		if (add_block(a, size) < 0)
			return NULL;
		at = 0;
	}
	a->used = at + size;
	return a->blocks->data + at;
}

void *arena_alloc(struct arena *a, size_t size)
{
	return alloc(a, size, _Alignof(max_align_t));
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = len == SIZE_MAX ? NULL : alloc(a, len + 1, 1);

	if (!copy)
		return NULL;
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void arena_reset(struct arena *a)
{
	struct arena_block *keep = a->blocks;

	if (!keep)
		return;
	while (keep->next) {
		struct arena_block *next = keep->next->next;

		free(keep->next);
		keep->next = next;
	}
	a->used = 0;
}

void arena_free(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
	*a = (struct arena){ 0 };
}
