/*
 * The collections of a snapshot (collection.h), by the words of its blocks and roots that have the address of a block. Each is
 * named, and its blocks are its own: what it has in use of them, and how many elements it has.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_COLLECTIONS_H
#define MEMSCOPE_HEAP_SNAPSHOT_COLLECTIONS_H

#include "heap/snapshot/collection.h"

/*
 * Strings have no row, since there may be more of them than of all else: `of` has the length of their text and this bit, or all bits for
 * a longer one.
 */
#define COLLECTION_TEXT     (1U << 31)
#define COLLECTION_TEXT_MAX (COLLECTION_TEXT - 2)

struct collections {
	struct collection *rows;
	uint32_t n, room;
	uint32_t *of; /* of each node: the row it belongs to + 1; 0: none. NULL: nobody has looked */
	bool cut; /* so many words look like one that not all of them were looked at */
};

void collections_fini(struct collections *c);

/* Whose a node is; NULL: nobody's. */
static inline const struct collection *collection_of_node(const struct collections *c, uint32_t node)
{
	return c->of && c->of[node] && c->of[node] < COLLECTION_TEXT ? &c->rows[c->of[node] - 1]
								     : NULL;
}

/* The length of the text that a string has in a node. false: it has none, or it is not known. */
static inline bool collection_text(const struct collections *c, uint32_t node, uint32_t *ret_len)
{
	*ret_len = c->of && c->of[node] ? c->of[node] & ~COLLECTION_TEXT : 0;
	return c->of && c->of[node] >= COLLECTION_TEXT && *ret_len <= COLLECTION_TEXT_MAX;
}

/* "std::map" */
const char *collection_name(const struct collection *c);
/* Does a place in a node, in bytes, lie outside of what its collection has in use there? It is left over from earlier. */
static inline bool collection_is_stale(const struct collections *c, uint32_t node, uint64_t at)
{
	const struct collection *own = collection_of_node(c, node);

	return own && own->table == node && (at < own->unused || at >= own->live);
}

#endif
