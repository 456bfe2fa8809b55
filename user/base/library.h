/*
 * Libraries that are loaded when they are first needed, and done without where they are not there.
 *
 * The static variant (make static) loads none: a library would bring its host's C library along, beside the one that is linked in.
 */
#ifndef MEMSCOPE_BASE_LIBRARY_H
#define MEMSCOPE_BASE_LIBRARY_H

#include <stddef.h>

#ifdef MEMSCOPE_STATIC

/* Why it is not there, behind its name; `package` of Debian's has it. */
#define LIBRARY_MISSING(package) "which a static memscope cannot load: it takes the one that `make` builds"

static inline void *library_open(const char *name)
{
	return NULL;
}

static inline void *library_function(void *library, const char *name)
{
	return NULL;
}

#else

#include <dlfcn.h>

#define LIBRARY_MISSING(package) "which is not installed (" package ")"

/* NULL: it is not there. It stays loaded. */
static inline void *library_open(const char *name)
{
	return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* NULL: it has none of that name. */
static inline void *library_function(void *library, const char *name)
{
	return dlsym(library, name);
}

#endif

#endif
