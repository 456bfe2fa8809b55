/*
 * An allocator that may be called from a signal's handler, whatever it has interrupted (alloc_signals):
 * a free list for each size, exchanged in one word with a count that makes it another one each time.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UNIT    16
#define CLASSES 65 /* of UNIT bytes; what is larger is never used again */
#define ARENA   (256u << 20)

static uint8_t arena[ARENA] __attribute__((aligned(64)));
static uint64_t used = UNIT;
static uint64_t heads[CLASSES]; /* count << 32 | place in units */

/* Before each block: its class. In a free one: the next. */
static uint32_t *word_at(uint32_t place)
{
	return (uint32_t *)(arena + (uint64_t)place * UNIT);
}

void *malloc(size_t size)
{
	uint64_t units = (size + 2 * UNIT - 1) / UNIT, at;
	uint64_t *head = &heads[units < CLASSES ? units : 0];
	uint64_t top = __atomic_load_n(head, __ATOMIC_ACQUIRE);

	while (units < CLASSES && (uint32_t)top) {
		uint32_t place = (uint32_t)top, *block = word_at(place);

		at = (top >> 32) + 1;
		if (__atomic_compare_exchange_n(
			    head, &top, at << 32 | __atomic_load_n(&block[1], __ATOMIC_RELAXED), 0,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return (uint8_t *)block + UNIT;
	}
	at = size > ARENA ? ARENA : __atomic_fetch_add(&used, units * UNIT, __ATOMIC_RELAXED);
	if (at + units * UNIT > ARENA) {
		errno = ENOMEM;
		return NULL;
	}
	*word_at((uint32_t)(at / UNIT)) = (uint32_t)units;
	return arena + at + UNIT;
}

void free(void *p)
{
	uint32_t *block = (uint32_t *)((uint8_t *)p - UNIT);
	uint32_t place = (uint32_t)(((uint8_t *)block - arena) / UNIT);
	uint64_t *head, top;

	if (!p || *block >= CLASSES)
		return;
	head = &heads[*block];
	top = __atomic_load_n(head, __ATOMIC_ACQUIRE);
	do
		__atomic_store_n(&block[1], (uint32_t)top, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(head, &top, ((top >> 32) + 1) << 32 | place, 0,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

void *calloc(size_t n, size_t size)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = malloc(n * size);
	return p ? memset(p, 0, n * size) : NULL;
}

void *realloc(void *p, size_t size)
{
	void *to = malloc(size);

	if (p && to) {
		size_t had = (size_t)(((uint32_t *)p)[-4] - 1) * UNIT;

		memcpy(to, p, had < size ? had : size);
		free(p);
	}
	return to;
}
