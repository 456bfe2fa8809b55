/*
 * The entry points of Google's tcmalloc, by its names and with its calling conventions, in front of an
 * allocator of a few lines: the real one is in no distribution. As there, operator new and delete are
 * aliases, and a new that says how much it gave returns two registers. Not for several threads.
 */
#include <stddef.h>
#include <stdint.h>

#define CLASS_BYTES 64
#define CLASSES     64
#define ARENA_BYTES (16 << 20)

struct sized_ptr {
	void *p;
	size_t n;
};

static _Alignas(CLASS_BYTES) unsigned char arena[ARENA_BYTES];
static size_t used;
static void *spare[CLASSES];

/* Blocks are of whole classes; the first class's worth of each says which. */
static void *take(size_t size)
{
	size_t class = (size + CLASS_BYTES - 1) / CLASS_BYTES, bytes = (class + 1) * CLASS_BYTES;
	uint64_t *head;

	if (class >= CLASSES)
		return NULL;
	if (spare[class]) {
		void **p = spare[class];

		spare[class] = *p;
		return p;
	}
	if (bytes > ARENA_BYTES - used)
		return NULL;
	head = (uint64_t *)(void *)&arena[used];
	used += bytes;
	*head = class;
	return (unsigned char *)head + CLASS_BYTES;
}

static void give_back(void *p)
{
	uint64_t class;

	if (!p)
		return;
	class = *(uint64_t *)(void *)((unsigned char *)p - CLASS_BYTES);
	*(void **)p = spare[class];
	spare[class] = p;
}

static void *take_or_die(size_t size)
{
	void *p = take(size);

	if (!p)
		__builtin_trap(); /* it would throw */
	return p;
}

#define ALIAS(of) __attribute__((alias(of)))

void *TCMallocInternalMalloc(size_t size)
{
	return take(size);
}

void *TCMallocInternalCalloc(size_t n, size_t size)
{
	unsigned char *p = take(n * size);

	for (size_t i = 0; p && i < n * size; i++)
		p[i] = 0;
	return p;
}

void *TCMallocInternalAlignedAlloc(size_t align, size_t size)
{
	return align > CLASS_BYTES ? NULL : take(size);
}

void *TCMallocInternalRealloc(void *p, size_t size)
{
	unsigned char *to = take(size), *from = p;

	for (size_t i = 0; to && from && i < size && from + i < arena + used; i++)
		to[i] = from[i];
	if (to)
		give_back(p);
	return to;
}

void TCMallocInternalFree(void *p)
{
	give_back(p);
}

void TCMallocInternalSdallocx(void *p, size_t size, int flags)
{
	(void)size;
	(void)flags;
	give_back(p);
}

void *TCMallocInternalNew(size_t size)
{
	return take_or_die(size);
}

void *TCMallocInternalNewNothrow(size_t size, const void *tag)
{
	(void)tag;
	return take(size);
}

void TCMallocInternalDelete(void *p)
{
	give_back(p);
}

void TCMallocInternalDeleteSized(void *p, size_t size)
{
	(void)size;
	give_back(p);
}

void *_Znwm(size_t size) ALIAS("TCMallocInternalNew");
void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag) ALIAS("TCMallocInternalNewNothrow");
void _ZdlPv(void *p) ALIAS("TCMallocInternalDelete");
void _ZdlPvm(void *p, size_t size) ALIAS("TCMallocInternalDeleteSized");

void *_Znwm12__hot_cold_t(size_t size, uint8_t hot)
{
	(void)hot;
	return take_or_die(size);
}

struct sized_ptr __size_returning_new(size_t size)
{
	return (struct sized_ptr){ take_or_die(size),
				   (size + CLASS_BYTES - 1) & ~(CLASS_BYTES - 1) };
}

struct sized_ptr tcmalloc_size_returning_operator_new_nothrow(size_t size)
{
	return (struct sized_ptr){ take(size), (size + CLASS_BYTES - 1) & ~(CLASS_BYTES - 1) };
}
