/*
 * What blocks are, each with how that is known. A way to know is a file of its own and a row in types.c's table; the first
 * that knows a block names it:
 *
 *   class       the block begins with an object of CPython (python_types.c)
 *   RTTI        the first word points behind a type_info of C++ (types_cxx.c)
 *
 * Others have no type here. Types are interned: a type is a number, and 0 is none.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_TYPES_H
#define MEMSCOPE_HEAP_SNAPSHOT_TYPES_H

#include "heap/blocks.h"
#include "heap/snapshot/copy.h"

enum type_by { TYPE_UNKNOWN, TYPE_CPYTHON, TYPE_RTTI };

struct type {
	enum type_by by;
	const char *name;        /* "dict", "web.Session", "std::thread::_State_impl<…>" */
	uint64_t at;             /* of its description in the process                    */
	uint64_t blocks, bytes;
};

struct types {
	struct type *type;       /* type[0]: all that have none */
	uint32_t n, room;
	uint32_t *of;            /* of each node                */
	uint8_t *object;         /* of each: how far into its block its object begins, in bytes; references to CPython's
	                          * objects have exactly that address, what links them for the collector has another */
};

/* Looks at each block; what images have in read-only memory is read from the process. -ENOMEM. */
int types_find(struct copy *copy, const struct heap_blocks *blocks, pid_t pid, struct types *ret_types);
void types_fini(struct types *t);

#endif
