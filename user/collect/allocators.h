/*
 * Table: allocator functions, by symbol and argument shape.
 *
 * Every file that a target maps is searched for these symbols; those at one file offset (aliases:
 * glibc's memalign and aligned_alloc) are one probe. C++'s operator new and delete are listed with
 * the function they call: a return probe on a function that can throw kills a program that
 * catches the exception, so they are counted where they get their memory.
 */
#ifndef MEMSCOPE_COLLECT_ALLOCATORS_H
#define MEMSCOPE_COLLECT_ALLOCATORS_H

#include "abi.h"

struct allocator {
	const char *symbol;
	enum ms_shape shape;
	const char *via;    /* not probed: counted by the call of this function it makes */
};

extern const struct allocator allocators[]; /* ends with a row without a symbol */

#endif
