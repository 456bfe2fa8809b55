/* Reference counts of CPython's objects beside the references that were found: what is more, C code holds. */
#include "heap/python/python_heap.h"

#include "base/large.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { IMMORTAL_SINCE = 12 }; /* the count has its highest bit of 32 set then, and is not kept */

struct counting {
	const struct snapshot *s;
	uint32_t *found; /* of each node: references to it */
};

static void on_edge(void *ctx, uint64_t to, uint32_t at)
{
	struct counting *c = ctx;
	uint32_t offset, node = block_index_find(c->s->index, to, &offset);

	(void)at;
	if (node != BLOCK_NONE && offset == c->s->types.object[node])
		c->found[node]++;
}

/* Variables and locals. How far the stack of a function is filled that runs is not known: what is there has no name. */
static bool is_counted(const struct snapshot_root *r)
{
	return r->kind == SNAPSHOT_ROOT_GLOBAL ||
	       (r->kind == SNAPSHOT_ROOT_FRAME && r->name && strstr(r->name, ": "));
}

/* Somebody refers to it. A block of C that nothing refers to has what was there before. */
static bool is_used(const struct snapshot *s, uint32_t node)
{
	uint64_t low = 0, high = s->n_roots;

	if (s->reverse->first[node] < s->reverse->first[node + 1])
		return true;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (s->roots[mid].node < node)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n_roots && s->roots[low].node == node;
}

/* The graph leaves references to oneself out; counts have them. */
static void count(struct counting *c, const struct python_heap *h)
{
	const struct graph *g = c->s->graph;

	for (uint32_t i = 0; i < c->s->blocks.n; i++)
		if (!python_edges((void *)h, c->s, i, on_edge, c) && is_used(c->s, i))
			for (uint64_t e = g->first[i]; e < g->first[i + 1]; e++)
				c->found[g->edges[e].to]++;
	for (uint64_t i = 0; i < c->s->n_roots; i++)
		if (is_counted(&c->s->roots[i]))
			c->found[c->s->roots[i].node]++;
}

/* References that the table of interned strings has to its key and value are in no count. */
static uint64_t interned(const struct python_heap *h, const struct snapshot *s, uint32_t node)
{
	const struct python_class *c = python_class_of(h, s, node);

	return c && c->shape == PYTHON_STR &&
			       (python_half(h, python_object(s, node) + PYTHON_STR_STATE) & 3) == 1
		       ? 2
		       : 0;
}

static void compare(const struct counting *c, const struct python_heap *h,
		    struct python_refcounts *to)
{
	for (uint32_t i = 0; i < c->s->blocks.n; i++) {
		uint32_t type = c->s->types.of[i];
		uint64_t n;

		if (c->s->types.type[type].by != TYPE_CPYTHON)
			continue;
		to->rows[type].all++;
		n = python_word(h, python_object(c->s, i));
		if (h->version->minor >= IMMORTAL_SINCE && n >> 31 & 1) {
			to->immortal++;
			continue;
		}
		n = h->version->minor >= IMMORTAL_SINCE ? n & UINT32_MAX : n;
		if (c->found[i] > n && c->found[i] <= n + interned(h, c->s, i))
			n = c->found[i];
		to->equal += n == c->found[i];
		to->less += n < c->found[i];
		to->more += n > c->found[i];
		if (n > c->found[i]) {
			to->rows[type].held++;
			to->rows[type].references += n - c->found[i];
		}
	}
}

static int by_references(const void *a, const void *b)
{
	const struct python_held *x = a, *y = b;

	if (x->references != y->references)
		return x->references < y->references ? 1 : -1;
	return (x->type > y->type) - (x->type < y->type);
}

int python_refcounts_find(const struct snapshot *s, struct python_refcounts *ret_refcounts)
{
	const struct python_heap *h = python_heap_of(s);
	struct counting c = { .s = s };

	*ret_refcounts = (struct python_refcounts){ 0 };
	if (!h)
		return -ENOENT;
	c.found = large_alloc(s->blocks.n + 1, sizeof(*c.found));
	ret_refcounts->rows = calloc(s->types.n, sizeof(*ret_refcounts->rows));
	if (!c.found || !ret_refcounts->rows) {
		large_free(c.found);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->types.n; i++)
		ret_refcounts->rows[i].type = i;
	count(&c, h);
	compare(&c, h, ret_refcounts);
	large_free(c.found);
	qsort(ret_refcounts->rows, s->types.n, sizeof(*ret_refcounts->rows), by_references);
	while (ret_refcounts->n < s->types.n && ret_refcounts->rows[ret_refcounts->n].references)
		ret_refcounts->n++;
	return 0;
}

void python_refcounts_fini(struct python_refcounts *r)
{
	free(r->rows);
	*r = (struct python_refcounts){ 0 };
}
