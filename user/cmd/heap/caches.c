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

/* One of a library of C++ or redis (collection.h), or an object of CPython that has a length. */
struct cache {
	uint64_t elements, bytes, at;
	const struct collection *of; /* NULL: of CPython     */
	uint32_t node;               /* what is kept by whom */
};

static const char *const python_containers[] = {
	"dict",
	"list",
	"set",
	"frozenset",
	"collections.deque",
	"collections.defaultdict",
	"collections.OrderedDict",
};

static int by_elements(const void *a, const void *b)
{
	const struct cache *x = a, *y = b;

	if (x->elements != y->elements)
		return x->elements < y->elements ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

static bool is_python_container(const struct type *type)
{
	for (size_t i = 0; i < sizeof(python_containers) / sizeof(*python_containers); i++)
		if (type->by == TYPE_CPYTHON && strcmp(type->name, python_containers[i]) == 0)
			return true;
	return false;
}

static uint32_t python_caches(const struct snapshot *s, const bool *types, struct cache *caches)
{
	uint32_t n = 0;

	for (uint32_t i = 0; s->lengths && i < s->blocks.n; i++) {
		if (!types[s->types.of[i]] || s->lengths[i] == SNAPSHOT_NO_LENGTH || !s->lengths[i])
			continue;
		if (caches)
			caches[n] = (struct cache){ s->lengths[i], snapshot_bytes(s, i),
						    s->blocks.rows[i].addr, NULL, i };
		n++;
	}
	return n;
}

/* The caller's; NULL: out of memory. */
static struct cache *list_caches(const struct snapshot *s, uint32_t *ret_n)
{
	_cleanup_(freep) bool *types = calloc(s->types.n + 1ul, sizeof(*types));
	struct cache *caches;
	uint32_t n = 0;

	if (!types)
		return NULL;
	for (uint32_t i = 0; i < s->types.n; i++)
		types[i] = is_python_container(&s->types.type[i]);
	caches = calloc(s->collections.n + python_caches(s, types, NULL) + 1ul, sizeof(*caches));
	if (!caches)
		return NULL;
	for (uint32_t i = 0; i < s->collections.n; i++) {
		const struct collection *c = &s->collections.rows[i];

		caches[n++] = (struct cache){ c->elements, c->bytes, c->at, c,
					      c->in == BLOCK_NONE ? c->table : c->in };
	}
	*ret_n = n + python_caches(s, types, caches + n);
	return caches;
}

/* Words where the size of an element is not known. */
static const char *unit_of(const struct collection *c)
{
	return c && (c->kind == COLLECTION_VECTOR || c->kind == COLLECTION_DEQUE) ? "words"
										  : "elements";
}

/* What has the words of a vector in a program that is not of C++ is called so. */
static const char *name_of(const struct heap_view *v, const struct cache *cache)
{
	const struct collection *c = cache->of;
	const char *type = heap_type_name(v, c ? c->table : cache->node);

	return !c || (c->kind == COLLECTION_VECTOR && strncmp(type, "std::", 5) != 0)
		       ? type
		       : collection_name(c);
}

/* The object that has the container itself, with the place in it; "" of a variable and a stack. */
static void put_in(const struct heap_view *v, const struct graph_tree *tree,
		   const struct cache *cache)
{
	const struct collection *c = cache->of;
	uint32_t in = c ? c->in : tree->from[cache->node];
	char text[256] = "";

	if (c && in != BLOCK_NONE)
		snprintf(text, sizeof(text), "%.200s+%llu", heap_type_name(v, in),
			 (unsigned long long)(c->at - v->s->blocks.rows[in].addr));
	else if (!c && tree->reached[cache->node] && in != GRAPH_NONE)
		snprintf(text, sizeof(text), "%.200s", heap_type_name(v, in));
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
		    const struct cache *cache)
{
	answer_cell(v->out, cache->elements);
	answer_text(v->out, unit_of(cache->of));
	answer_cell(v->out, cache->bytes);
	answer_text(v->out, name_of(v, cache));
	put_in(v, tree, cache);
	put_through(v, tree, cache->node);
}

int heap_caches(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(freep) struct cache *rows = NULL;
	_cleanup_(graph_tree_fini) struct graph_tree tree = { 0 };
	uint64_t bytes = 0;
	uint32_t n = 0;

	(void)what;
	rows = list_caches(s, &n);
	if (!rows || owners_tree_grow(s, ~0u, &tree) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		bytes += rows[i].bytes;
	qsort(rows, n, sizeof(*rows), by_elements);
	answer_say(v->out, "%s %s, %s", unit_count(n).s, n == 1 ? "container" : "containers",
		   unit_bytes((int64_t)bytes).s);
	answer_figure(v->out, "containers", n);
	answer_figure(v->out, "bytes", bytes);
	if (n)
		answer_table(v->out, "caches", columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++)
		put_row(v, &tree, &rows[i]);
	if (n > v->args->top)
		answer_say(v->out, "%s more", unit_count(n - v->args->top).s);
	return 0;
}
