/*
 * The places of a file where allocation probes go: the functions of allocators.c that it has, and
 * where in each (placement.h).
 */
#ifndef MEMSCOPE_COLLECT_ALLOC_SITES_H
#define MEMSCOPE_COLLECT_ALLOC_SITES_H

#include "collect/allocators.h"
#include "elf/debug_link.h"

#include <stdbool.h>
#include <stdint.h>

#define ALLOC_SITES_MAX 192 /* of one file */

struct alloc_site {
	uint64_t off;    /* of the probe in the file                      */
	uint64_t place;  /* what its program is told: MS_PLACE_… (abi.h)   */
	enum ms_shape shape;
	bool main;       /* malloc and free: what a program lives in       */
	bool emulated;   /* a hit costs a trap, not a single step as well  */
};

struct alloc_sites {
	bool own_new; /* operator new calls no malloc, and where it returns is not known: what it
		       * allocates is not seen */
	bool nameless; /* a program without symbols of functions: whatever it has is not seen */
	const char *hidden; /* of such a program: the allocator that is in it, by its messages; or NULL */
	bool objects;        /* asked for, and CPython's are among the sites */
	bool objects_hidden; /* asked for: it is CPython, and not all of its calls would be seen */
	uint32_t n;   /* ALLOC_SITES_MAX at most */
	struct alloc_site *site;
};

/* The file that is looked into, and how its separate debug info is opened. */
struct alloc_image {
	int fd;           /* borrowed */
	const char *path; /* debug info may lie beside it */
	debug_open_fn open_debug;
	void *ctx;
};

/*
 * Looks into the file. One that cannot be read has no sites. By its own symbols; a program that was
 * stripped of them by those of its debug file, or of its .gnu_debugdata. `moved`: programs can be told
 * where arguments are, so a probe may be where they have been moved. `objects`: CPython's as well.
 */
void alloc_sites_find(const struct alloc_image *im, bool moved, bool objects,
		      struct alloc_sites *ret_sites);
void alloc_sites_fini(struct alloc_sites *sites);

#endif
