/*
 * Owning locals: declared with _cleanup_(fn), released when they go out of scope, handed over
 * with TAKE_PTR or TAKE_FD.
 */
#ifndef MEMSCOPE_BASE_CLEANUP_H
#define MEMSCOPE_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

#define TAKE_PTR(p)                        \
	({                                 \
		__typeof__(p) _taken = (p); \
		(p) = NULL;                \
		_taken;                    \
	})

#define TAKE_FD(fd)             \
	({                      \
		int _taken = (fd); \
		(fd) = -1;      \
		_taken;         \
	})

/* Defines NAMEp(), the cleanup handler of a pointer whose release function is `fn`. */
#define DEFINE_CLEANUP(type, name, fn)           \
	static inline void name(type *ptr)       \
	{                                        \
		if (*ptr)                        \
			fn(*ptr);                \
	}

static inline void freep(void *ptr)
{
	free(*(void **)ptr);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

DEFINE_CLEANUP(FILE *, fclosep, fclose)

#endif
