/* memscope heap caches: containers by how many elements they have, and what keeps each. */
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/owners.h"

#include <errno.h>
#include <string.h>

static const struct answer_column columns[] = {
	{ "elements", "elements", ANSWER_COUNT, 0 },
	{ "unit", "of", ANSWER_NAME, 8 },
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "container", "container", ANSWER_NAME, 20 },
	{ "in", "in", ANSWER_NAME, 28 },
	{ "through", "kept through", ANSWER_NAME, 0 },
	{ 0 },
};

static int by_elements(const void *a, const void *b)
{
	const struct collection *x = *(const struct collection *const *)a;
	const struct collection *y = *(const struct collection *const *)b;

	if (x->elements != y->elements)
		return x->elements < y->elements ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Words where the size of an element is not known. */
static const char *unit_of(const struct collection *c)
{
	return c->kind == COLLECTION_VECTOR || c->kind == COLLECTION_DEQUE ? "words" : "elements";
}

/* What has the words of a vector in a program that is not of C++ is called so. */
static const char *name_of(const struct heap_view *v, const struct collection *c)
{
	const char *type = heap_type_name(v, c->table);

	return c->kind == COLLECTION_VECTOR && strncmp(type, "std::", 5) != 0 ? type
									      : collection_name(c);
}

/* The object that has the container itself, with the place in it; "" of a variable and a stack. */
static void put_in(const struct heap_view *v, const struct collection *c)
{
	char text[256] = "";

	if (c->in != BLOCK_NONE)
		snprintf(text, sizeof(text), "%.200s+%llu", heap_type_name(v, c->in),
			 (unsigned long long)(c->at - v->s->blocks.rows[c->in].addr));
	answer_text(v->out, text);
}

/* The root that the object hangs on. */
static void put_through(const struct heap_view *v, const struct graph_tree *tree, uint32_t node)
{
	if (!tree->reached[node]) {
		answer_text(v->out, "nothing");
		return;
	}
	while (tree->from[node] != GRAPH_NONE)
		node = tree->from[node];
	heap_put_root(v, &v->s->roots[tree->at[node]]);
}

static void put_row(const struct heap_view *v, const struct graph_tree *tree,
		    const struct collection *c)
{
	answer_cell(v->out, c->elements);
	answer_text(v->out, unit_of(c));
	answer_cell(v->out, c->bytes);
	answer_text(v->out, name_of(v, c));
	put_in(v, c);
	put_through(v, tree, c->in == BLOCK_NONE ? c->table : c->in);
}

int heap_caches(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(freep) const struct collection **rows =
		calloc(s->collections.n + 1ul, sizeof(*rows));
	_cleanup_(graph_tree_fini) struct graph_tree tree = { 0 };
	uint64_t bytes = 0;
	uint32_t n = 0;

	(void)what;
	if (!rows || owners_tree_grow(s, ~0u, &tree) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->collections.n; i++) {
		rows[n++] = &s->collections.rows[i];
		bytes += s->collections.rows[i].bytes;
	}
	qsort(rows, n, sizeof(*rows), by_elements);
	answer_say(v->out, "%s containers have %s of memory for their elements", unit_count(n).s,
		   unit_bytes((int64_t)bytes).s);
	answer_figure(v->out, "containers", n);
	answer_figure(v->out, "bytes", bytes);
	answer_table(v->out, "caches", columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++)
		put_row(v, &tree, rows[i]);
	if (n > v->args->top)
		answer_say(v->out, "%s more", unit_count(n - v->args->top).s);
	return 0;
}
