#include "heap/snapshot/owners.h"

#include "base/large.h"

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

/* A pointer into a container that is none of its own: of a variable, a stack, a register. */
static bool is_strange_root(const struct snapshot *s, uint64_t i)
{
	return s->roots[i].kind != SNAPSHOT_ROOT_MODULE &&
	       s->roots[i].kind != SNAPSHOT_ROOT_ANCHOR &&
	       is_strange(s, s->roots[i].node, BLOCK_NONE, s->roots[i].at);
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
		if (kinds & 1u << roots[i].kind && is_strange_root(s, i))
			roots[i].kind = ROOT_LAST;
	}
	return graph_tree_grow(s->graph, roots, s->n_roots, kinds | 1u << ROOT_LAST, is_last,
			       (void *)s, ret_tree);
}

/* Those that count: all but strange ones whose nodes others reach. */
static struct graph_root *roots_that_count(const struct snapshot *s, uint64_t *ret_n)
{
	_cleanup_(large_freep) struct graph_root *roots =
		large_alloc(s->n_roots + 1, sizeof(*roots));
	_cleanup_(freep) uint8_t *reached = NULL;
	uint64_t n = 0;

	for (uint64_t i = 0; roots && i < s->n_roots; i++)
		if (!is_strange_root(s, i))
			roots[n++] = s->graph_roots[i];
	reached = roots ? graph_reached(s->graph, roots, n) : NULL;
	if (!reached)
		return NULL;
	for (uint64_t i = 0; i < s->n_roots; i++)
		if (is_strange_root(s, i) && !reached[s->roots[i].node])
			roots[n++] = s->graph_roots[i];
	*ret_n = n;
	return TAKE_PTR(roots);
}

int owners_retained(const struct snapshot *s, struct graph_dominators *ret_dominators,
		    uint64_t **ret_retained)
{
	_cleanup_(large_freep) uint64_t *sizes = large_alloc(s->blocks.n + 1, sizeof(*sizes));
	_cleanup_(large_freep) struct graph_root *roots = NULL;
	uint64_t n = 0;

	*ret_dominators = (struct graph_dominators){ 0 };
	*ret_retained = NULL;
	roots = sizes ? roots_that_count(s, &n) : NULL;
	if (!roots)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->blocks.n; i++)
		sizes[i] = snapshot_bytes(s, i);
	if (graph_dominators_find(s->graph, s->reverse, roots, n, ret_dominators) < 0)
		return -ENOMEM;
	*ret_retained = graph_retained(ret_dominators, sizes);
	return *ret_retained ? 0 : -ENOMEM;
}
