/*
 * CPython's own allocators of objects, which take small ones out of arenas that malloc never sees: calls of them
 * come to us through the hooks that CPython has for that (PEP 445, PyMem_SetAllocator), in the domains of objects
 * and of memory. The third, raw one goes to malloc.
 *
 * A hook may be exchanged only by a thread that holds the interpreter's lock. So nobody of ours does it: the
 * interpreter is asked to call us (Py_AddPendingCall), and a thread that comes to us for malloc and holds the lock
 * does it at once. Neither waits for anything. As soon as we are not wanted, the hooks hand on and do nothing else;
 * they are taken out in the same way, or stay, where another's have been put before them. What they hand on to is
 * written once, and never again: who has kept them as theirs (tracemalloc) finds the same for ever.
 */
#ifndef MEMSCOPE_PRELOAD_PYTHON_H
#define MEMSCOPE_PRELOAD_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CPython's PyMemAllocatorEx. */
struct python_allocator {
	void *ctx;
	void *(*malloc)(void *ctx, size_t size);
	void *(*calloc)(void *ctx, size_t n, size_t size);
	void *(*realloc)(void *ctx, void *p, size_t size);
	void (*free)(void *ctx, void *p);
};

/* What hooks get as their ctx. */
struct python_domain {
	struct python_allocator next;           /* what they hand on to … */
	bool known;                             /* … once it is */
	const void *malloc, *calloc, *realloc;  /* CPython's functions, by which a block was asked for */
	int number;                             /* CPython's PyMemAllocatorDomain */
	const char *names[3];
};
#define PYTHON_DOMAINS 2
extern struct python_domain python_domains[PYTHON_DOMAINS];
extern const struct python_allocator python_hooks; /* alloc.c's, without a ctx */

enum python_state {
	PYTHON_NONE,    /* no CPython is here, or one that takes all from malloc                  */
	PYTHON_WANTED,  /* no thread has been seen yet that could exchange its hooks                */
	PYTHON_HOOKED,
	PYTHON_REFUSED, /* debug hooks, other hooks since the last time, or several interpreters     */
};

/* Is one here? Before anything is recorded. */
void python_look(void);
/* From now on, or no more. For agent.c; also again, for an interpreter that was loaded since. */
enum python_state python_want(bool wanted);
/* Does it look as if this thread should do it? Then it is to call python_try(). */
extern uint32_t python_pending;
void python_try(void);

/* Are calls of the hooks to be seen? */
extern uint32_t python_on;

#endif
