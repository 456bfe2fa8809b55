/*
 * What blocks are, each with how that is known:
 *
 *   CPython   the block begins with an object (behind what its garbage collector keeps there): the word that should be its type
 *             is one, whose own type is a type in turn, and the type's flags say that its objects lie so in a block
 *   C++       the first word points behind a type_info in read-only memory of an image, whose name is demangled (Itanium C++ ABI,
 *             2.5.2 and 2.9.5); without RTTI there is none
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
	struct type_seen *seen;
};

/* Looks at each block; what images have in read-only memory is read from the process. -ENOMEM. */
int types_find(struct copy *copy, const struct heap_blocks *blocks, pid_t pid, struct types *ret_types);
void types_fini(struct types *t);

#endif
