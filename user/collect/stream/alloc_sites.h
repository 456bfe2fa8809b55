/*
 * Where allocation probes go in a file: the functions of allocators.c that it contains, and the
 * spot in each (placement.h). They are searched in cells (alloc_sites_cell.h).
 */
#ifndef MEMSCOPE_COLLECT_STREAM_ALLOC_SITES_H
#define MEMSCOPE_COLLECT_STREAM_ALLOC_SITES_H

#include "collect/probes/alloc_image.h"
#include "collect/probes/allocators.h"

#include <stdbool.h>
#include <stdint.h>

#define ALLOC_SITES_MAX 192 /* of one file */

struct alloc_site {
	uint64_t off;    /* of the probe in the file                      */
	uint64_t place;  /* the probe's cookie: MS_COOKIE_… (abi.h) */
	enum ms_shape shape;
	bool main;       /* malloc and free: the most called*/
	bool emulated;   /* a hit costs a trap, not a single step as well  */
};

struct alloc_sites {
	bool own_new; /* operator new calls no malloc, and its return instructions are unknown: its
		       * allocations are not seen */
	bool nameless; /* a program without function symbols: its allocators are not seen */
	const char *hidden; /* the allocator in such a program, recognized by its messages; or NULL */
	bool objects;        /* asked for, and CPython's are among the sites */
	bool objects_hidden; /* asked for: it is CPython, but some of its calls would be missed */
	uint32_t n;   /* ALLOC_SITES_MAX at most */
	struct alloc_site *site;
};

/*
 * Searches the file; an unreadable one has no sites. Uses its own symbols; for a stripped program
 * those of its debug file, or of its .gnu_debugdata. `moved`: probes have cookies, so a probe may
 * be where arguments have been moved. `objects`: CPython's object functions as well.
 */
void alloc_sites_find(const struct alloc_image *im, bool moved, bool objects,
		      struct alloc_sites *ret_sites);
/*
 * The same of functions that are known otherwise than by a symbol. `shape` is one of those that return the block,
 * or MS_SHAPE_NEW, whose return is not probed. *ret_probed is set to the vaddr of each function's probe, 0: it
 * has none. 0 or -errno.
 */
struct alloc_function {
	uint64_t vaddr, size;
	enum ms_shape shape;
};
int alloc_sites_of(const struct alloc_image *im, const struct alloc_function *functions, uint32_t n,
		   bool moved, struct alloc_sites *ret_sites, uint64_t *ret_probed);
void alloc_sites_fini(struct alloc_sites *sites);

#endif
