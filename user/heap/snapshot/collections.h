/*
 * The collections of a snapshot (collection.h), by the words of its blocks and roots that have the address of a block. Each is
 * named, and its blocks are its own: what it has in use of them, and how many elements it has.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_COLLECTIONS_H
#define MEMSCOPE_HEAP_SNAPSHOT_COLLECTIONS_H

#include "heap/snapshot/collection.h"

struct collections {
	struct collection *rows;
	uint32_t n, room;
	uint32_t *of; /* of each node: the row it belongs to + 1; 0: none. NULL: nobody has looked */
};

void collections_fini(struct collections *c);

/* Whose a node is; NULL: nobody's. */
static inline const struct collection *collection_of_node(const struct collections *c, uint32_t node)
{
	return c->of && c->of[node] ? &c->rows[c->of[node] - 1] : NULL;
}

/* "std::map" */
const char *collection_name(const struct collection *c);
/*
 * Does a place in a node, in bytes, lie behind what its collection has in use there? What the memory has there
 * is left over from earlier: it keeps nothing alive.
 */
static inline bool collection_is_stale(const struct collections *c, uint32_t node, uint64_t at)
{
	const struct collection *own = collection_of_node(c, node);

	return own && own->table == node && at >= own->live;
}

#endif
