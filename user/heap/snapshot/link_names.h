/*
 * Inside snapshot/: names of fields, for a file without contents. The keys of a module's dict are the names of its variables, those of an
 * object's or a class's dict its attributes: they are in the program's text. Those of other dicts are its data.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_LINK_NAMES_H
#define MEMSCOPE_HEAP_SNAPSHOT_LINK_NAMES_H

#include "heap/snapshot/snapshot.h"

enum { LINK_NAMES_MAX = 1 << 24 };

struct link_name {
	uint32_t node, at; /* an entry of its table begins there */
	uint64_t key;      /* the key, a str                     */
};

struct link_names {
	struct link_name *rows; /* by node and place; large_free() */
	uint64_t n, room;
	uint64_t left_out;      /* beyond LINK_NAMES_MAX           */
};

/* `all`: of every dict. -ENOMEM. */
int link_names_find(const struct snapshot *s, bool all, struct link_names *ret_names);

#endif
