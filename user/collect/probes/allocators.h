/*
 * Table: allocator functions, by symbol and argument shape.
 *
 * Every file that a target maps is searched for these symbols; those at one file offset (aliases:
 * glibc's memalign and aligned_alloc, tcmalloc's malloc and tc_malloc) are one probe.
 *
 * C++'s operator new and delete are listed with the function they call: they are counted where they
 * get their memory. jemalloc (from 5.3), tcmalloc and mimalloc have their own, which call no
 * malloc; there they are probed themselves. Not the return of those that may throw: a return probe
 * on a function that throws kills a program that catches the exception (MS_SHAPE_NEW).
 *
 * Rust's __rust_alloc and its kin have no rows: they end in the malloc of the allocator that the
 * program was built with, or in jemalloc's mallocx. mimalloc's mi_strdup and its kin have none
 * either, as their arguments do not give the size, nor has mi_new_n, whose size is a product and
 * which throws: their allocations are not seen, and the frees are of unknown blocks.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_ALLOCATORS_H
#define MEMSCOPE_COLLECT_PROBES_ALLOCATORS_H

#include "abi.h"

#include <stdbool.h>
#include <stddef.h>

struct allocator {
	const char *symbol;
	enum ms_shape shape;
	const char *via;    /* not probed: counted by the call of this function it makes … */
	bool own;           /* … save in files whose operator new is their own            */
	bool je;            /* also with the prefixes of jemalloc                         */
	bool heap;          /* a heap precedes the shape's arguments: only where probes have
			     * cookies */
	bool objects;       /* CPython's, for its objects: only on request                */
};

extern const struct allocator allocators[]; /* ends with a row without a symbol */

/* Prefixes of jemalloc's public functions: "" first, NULL last. */
extern const char *const allocator_prefixes[];
/* One of these in a file: it has its own operator new and delete. */
extern const char *const allocator_own_new_marks[];

/*
 * CPython's functions that all others call. They call the table's functions through a pointer, so
 * that every call is seen there; unless the compiler guessed the pointer's target and inlined it
 * into them, and them into their callers. Then they are longer than a jump. Ends with NULL.
 */
extern const char *const allocator_object_entries[];

/* What an allocator linked into a program leaves in its constants, stripped or not. */
struct allocator_trace {
	const char *allocator, *text;
};
extern const struct allocator_trace allocator_traces[]; /* ends with one without a name */

/* The name of a row with a prefix, in `buf`; NULL when there is no such name. */
const char *allocator_name(const struct allocator *a, const char *prefix, char *buf, size_t cap);
/* Is `symbol` (it ends with NUL or '@') one of all these names? */
bool allocator_is_name(const char *symbol);

#endif
