#include "heap/snapshot/owners.h"

#include <errno.h>
#include <string.h>

/* Behind all kinds that a snapshot has. */
enum { ROOT_LAST = GRAPH_ROOT_KINDS_MAX - 1 };

_Static_assert((int)SNAPSHOT_ROOT_KINDS <= (int)ROOT_LAST, "there is room for one more kind");

/* Is the word at `addr` one of the container's own? */
static bool is_header(const struct collection *c, uint64_t addr)
{
	return addr >= c->at - 8 && addr < c->at + 8 * (COLLECTION_WORDS - 1);
}

/* Does a reference to a node come from elsewhere than its container? */
static bool is_strange(const struct snapshot *s, uint32_t to, uint32_t from, uint64_t addr)
{
	const struct collection *c = collection_of_node(&s->collections, to);

	if (!c || is_header(c, addr))
		return false;
	return from == BLOCK_NONE || collection_of_node(&s->collections, from) != c;
}

static bool is_last(void *ctx, uint32_t from, const struct graph_edge *edge)
{
	const struct snapshot *s = ctx;

	return collection_is_stale(&s->collections, from, edge->at) ||
	       is_strange(s, edge->to, from, s->blocks.rows[from].addr + edge->at);
}

int owners_tree_grow(const struct snapshot *s, uint32_t kinds, struct graph_tree *ret_tree)
{
	_cleanup_(freep) struct graph_root *roots = NULL;

	if (!s->collections.n)
		return graph_tree_grow(s->graph, s->graph_roots, s->n_roots, kinds, NULL, NULL,
				       ret_tree);
	*ret_tree = (struct graph_tree){ 0 };
	roots = calloc(s->n_roots + 1, sizeof(*roots));
	if (!roots)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->n_roots; i++) {
		roots[i] = s->graph_roots[i];
		if (kinds & 1u << roots[i].kind && s->roots[i].kind != SNAPSHOT_ROOT_MODULE &&
		    is_strange(s, roots[i].node, BLOCK_NONE, s->roots[i].at))
			roots[i].kind = ROOT_LAST;
	}
	return graph_tree_grow(s->graph, roots, s->n_roots, kinds | 1u << ROOT_LAST, is_last,
			       (void *)s, ret_tree);
}
