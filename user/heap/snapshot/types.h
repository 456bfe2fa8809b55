/*
 * What blocks are, each with how that is known. A way to know is a file of its own and a row in types.c's table; the first
 * that knows a block names it:
 *
 *   class       the block begins with an object of CPython (python_types.c), or is a table of one (heap/python/)
 *   RTTI        the first word points behind a type_info of C++ (types_cxx.c)
 *   GHC         by its info table: exact (heap/ghc/, through exact.h)
 *   vtable      who refers to it has the address of a vtable of Rust behind its own (types_rust.c)
 *   counted     it is one of the nodes of a collection, which has as many as it says (types_collections.c)
 *   shape       the words that refer to it are those of a std::vector or std::string; other structs may look so, too
 *   member      a variable or a member that points to it has that type in debug info, and its size is right; casts are not seen, so
 *               this is a guess (types_members.c)
 *   content     its bytes are text (types_text.c)
 *   debug info  the variable that the allocation's result became points to it; "debug info, by size": the function that allocated
 *               returns such pointers, and the size is right. Only of blocks whose allocation was traced (types_sites.c)
 *
 * Others have no type here. Types are interned: a type is a number, and 0 is none.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_TYPES_H
#define MEMSCOPE_HEAP_SNAPSHOT_TYPES_H

#include "heap/blocks.h"
#include "heap/snapshot/copy.h"

enum type_by { TYPE_UNKNOWN, TYPE_CPYTHON, TYPE_CPYTHON_TABLE, TYPE_RTTI, TYPE_GHC, TYPE_COUNTED, TYPE_SHAPE, TYPE_TEXT, TYPE_RUST, TYPE_DEBUG, TYPE_DEBUG_SIZE, TYPE_MEMBER, TYPE_WAYS };

struct snapshot;

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

/* The first one: (unknown). -ENOMEM. */
int types_init(struct types *t);
/* The number of a new one; 0: out of memory. Names are copied; that each is added once is the caller's. */
uint32_t types_add(struct types *t, enum type_by by, const char *name, uint64_t at);
/*
 * Looks at each block; what images have in read-only memory is read from the process. `known`: types of nodes that are not
 * looked at, 0 of others; NULL: none is. -ENOMEM.
 */
int types_find(struct types *t, struct copy *copy, const struct heap_blocks *blocks, const uint32_t *known, pid_t pid);
/* The ways that need to know who refers to whom; names s->collections, too. -ENOMEM. */
int types_find_linked(struct snapshot *s, pid_t pid);
void types_fini(struct types *t);

/* What debug info says that a call's result points to. */
struct allocated_type {
	const char *name;
	uint64_t each;           /* bytes of one                                             */
	bool is_guess;           /* only a size speaks for it                                */
	uint32_t one, several;   /* their numbers, once there are some; 0 before             */
};

/*
 * Of a node whose allocation was traced: `bytes` were asked for, for one of that type, or several, or one and what follows it.
 * It stays without where that does not fit, or where something better is known. -ENOMEM. types_count() when all are set.
 */
int types_set_allocated(struct snapshot *s, uint32_t node, struct allocated_type *type, uint64_t bytes);
/* Sums of each type. */
void types_count(struct types *t, const struct heap_blocks *blocks);

/* The words above: "RTTI"; "" of those that have no type. */
const char *type_by_name(enum type_by by);

#endif
