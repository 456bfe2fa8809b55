/*
 * Table: allocator functions, by symbol and argument shape.
 *
 * Every file that a target maps is searched for these symbols; those at one file offset (aliases:
 * glibc's memalign and aligned_alloc, tcmalloc's malloc and tc_malloc) are one probe.
 *
 * C++'s operator new and delete are listed with the function they call: they are counted where they
 * get their memory. jemalloc (from 5.3), tcmalloc and mimalloc have their own, which call no malloc;
 * there they are probed themselves. Not the return of those that may throw: a return probe on a
 * function that throws kills a program that catches the exception (MS_SHAPE_NEW).
 *
 * Rust's __rust_alloc and its kin have no rows: they end in the malloc of the allocator that the
 * program was built with, or in jemalloc's mallocx. Nor has mimalloc's mi_heap_…: mi_malloc and
 * the others jump there.
 */
#ifndef MEMSCOPE_COLLECT_ALLOCATORS_H
#define MEMSCOPE_COLLECT_ALLOCATORS_H

#include "abi.h"

#include <stdbool.h>
#include <stddef.h>

struct allocator {
	const char *symbol;
	enum ms_shape shape;
	const char *via;    /* not probed: counted by the call of this function it makes … */
	bool own;           /* … save in files whose operator new is their own            */
	bool je;            /* also with the prefixes of jemalloc                         */
};

extern const struct allocator allocators[]; /* ends with a row without a symbol */

/* What jemalloc's public functions may begin with: "" first, NULL last. */
extern const char *const allocator_prefixes[];
/* One of these in a file: it has its own operator new and delete. */
extern const char *const allocator_own_new_marks[];

/* The name of a row with a prefix, in `buf`; NULL when there is none such. */
const char *allocator_name(const struct allocator *a, const char *prefix, char *buf, size_t cap);
/* Is `symbol` (it ends with NUL or '@') one of all these names? */
bool allocator_is_name(const char *symbol);

#endif
