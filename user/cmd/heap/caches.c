/* memscope heap caches: containers by how many elements they have, and what keeps each; those of one type that are held in
 * the same way are one row. */
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/owners.h"

#include <errno.h>
#include <string.h>

static const struct answer_column columns[] = {
	{ "elements", "largest", ANSWER_COUNT, 0 },
	{ "unit", "of", ANSWER_NAME, 8 },
	{ "containers", "containers", ANSWER_COUNT, 0 },
	{ "all_elements", "in all", ANSWER_COUNT, 0 },
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
	/* How it is held. */
	const char *name;
	uint32_t in, in_type; /* the object that has the container; GRAPH_NONE: none */
	uint64_t offset;      /* in that                                              */
	uint32_t root;        /* of s->roots; GRAPH_NONE: nothing keeps it            */
};

/* Containers that are held alike: rows of the same sort, next to each other; the first is the largest. */
struct alike {
	const struct cache *first;
	uint32_t n;
	uint64_t elements, bytes;
	bool many_places; /* in objects of one type, at many offsets: elements of an array */
};

enum { PLACES_MAX = 4 };

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

/* The root that each object hangs on: each chain is gone up once. The caller's; NULL: out of memory. */
static uint32_t *find_roots(const struct snapshot *s, const struct graph_tree *tree)
{
	uint32_t *roots = malloc((s->blocks.n + 1) * sizeof(*roots));

	if (!roots)
		return NULL;
	memset(roots, 0xff, (s->blocks.n + 1) * sizeof(*roots)); /* GRAPH_NONE */
	for (uint32_t i = 0; i < s->blocks.n; i++) {
		uint32_t up = i, root;

		if (!tree->reached[i])
			continue;
		while (roots[up] == GRAPH_NONE && tree->from[up] != GRAPH_NONE)
			up = tree->from[up];
		root = roots[up] != GRAPH_NONE ? roots[up] : tree->at[up];
		for (up = i; up != GRAPH_NONE && roots[up] == GRAPH_NONE; up = tree->from[up])
			roots[up] = root;
	}
	return roots;
}

static void find_holder(const struct heap_view *v, const struct graph_tree *tree,
			const uint32_t *roots, struct cache *cache)
{
	const struct collection *c = cache->of;
	bool kept = tree->reached[cache->node];

	cache->name = name_of(v, cache);
	cache->in = c ? c->in : kept ? tree->from[cache->node] : GRAPH_NONE;
	cache->in = c && c->in == BLOCK_NONE ? GRAPH_NONE : cache->in;
	cache->in_type = cache->in == GRAPH_NONE ? GRAPH_NONE : v->s->types.of[cache->in];
	cache->offset =
		c && cache->in != GRAPH_NONE ? c->at - v->s->blocks.rows[cache->in].addr : 0;
	cache->root = kept ? roots[cache->node] : GRAPH_NONE;
}

static int by_kind(const struct cache *x, const struct cache *y)
{
	int by = strcmp(unit_of(x->of), unit_of(y->of));

	by = by ? by : strcmp(x->name, y->name);
	by = by ? by : (x->in_type > y->in_type) - (x->in_type < y->in_type);
	return by ? by : (x->root > y->root) - (x->root < y->root);
}

static int by_kind_and_place(const void *a, const void *b)
{
	const struct cache *x = a, *y = b;
	int by = by_kind(x, y);

	by = by ? by : (x->offset > y->offset) - (x->offset < y->offset);
	return by ? by : by_elements(x, y);
}

/* How many of the `n` sorted ones at `c` are held alike. */
static uint32_t count_alike(const struct cache *c, uint32_t n, struct alike *ret)
{
	uint32_t same = 0, places = 1;

	while (++same < n && by_kind(c, &c[same]) == 0)
		places += c[same].offset != c[same - 1].offset;
	ret->many_places = places > PLACES_MAX;
	if (places > 1 && places <= PLACES_MAX)
		for (same = 1; same < n && c[same].offset == c->offset; same++)
			;
	return same;
}

static int by_largest(const void *a, const void *b)
{
	return by_elements(((const struct alike *)a)->first, ((const struct alike *)b)->first);
}

/* Rows of `caches`, which are sorted for it. The caller's; NULL: out of memory. */
static struct alike *merge(struct cache *caches, uint32_t n, uint32_t *ret_n)
{
	struct alike *rows = calloc(n + 1ul, sizeof(*rows));
	uint32_t n_rows = 0;

	if (!rows)
		return NULL;
	qsort(caches, n, sizeof(*caches), by_kind_and_place);
	for (uint32_t i = 0; i < n;) {
		struct alike *row = &rows[n_rows++];

		row->n = count_alike(&caches[i], n - i, row);
		row->first = &caches[i];
		for (uint32_t k = 0; k < row->n; k++) {
			row->elements += caches[i + k].elements;
			row->bytes += caches[i + k].bytes;
			if (by_elements(&caches[i + k], row->first) < 0)
				row->first = &caches[i + k];
		}
		i += row->n;
	}
	qsort(rows, n_rows, sizeof(*rows), by_largest);
	*ret_n = n_rows;
	return rows;
}

/* The object that has the container itself, with the place in it; "" of a variable and a stack. */
static void put_in(const struct heap_view *v, const struct alike *row)
{
	const struct cache *c = row->first;
	char text[256] = "";

	if (c->in != GRAPH_NONE && c->of && !row->many_places)
		snprintf(text, sizeof(text), "%.200s+%llu", heap_type_name(v, c->in),
			 (unsigned long long)c->offset);
	else if (c->in != GRAPH_NONE)
		snprintf(text, sizeof(text), "%.200s", heap_type_name(v, c->in));
	answer_text(v->out, text);
}

static void put_row(const struct heap_view *v, const struct alike *row)
{
	answer_cell(v->out, row->first->elements);
	answer_text(v->out, unit_of(row->first->of));
	answer_cell(v->out, row->n);
	answer_cell(v->out, row->elements);
	answer_cell(v->out, row->bytes);
	answer_text(v->out, row->first->name);
	put_in(v, row);
	if (row->first->root == GRAPH_NONE)
		answer_text(v->out, "nothing");
	else
		heap_put_root(v, &v->s->roots[row->first->root]);
}

struct named_root {
	struct strbuf text;
	uint32_t root;
};

static int by_text(const void *a, const void *b)
{
	const struct named_root *x = a, *y = b;
	int by = strcmp(x->text.s ? x->text.s : "", y->text.s ? y->text.s : "");

	return by ? by : (x->root > y->root) - (x->root < y->root);
}

/* Roots that are called the same (a module is in several dicts) become one. -ENOMEM. */
static int merge_roots(const struct heap_view *v, struct cache *caches, uint32_t n)
{
	_cleanup_(freep) uint32_t *same = calloc(v->s->n_roots + 1ul, sizeof(*same));
	_cleanup_(freep) struct named_root *named = NULL;
	uint32_t used = 0;

	if (!same)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (caches[i].root != GRAPH_NONE)
			used += !same[caches[i].root]++;
	named = calloc(used + 1ul, sizeof(*named));
	if (!named)
		return -ENOMEM;
	used = 0;
	for (uint32_t i = 0; i < v->s->n_roots; i++)
		if (same[i]) {
			heap_root_text(v, &v->s->roots[i], &named[used].text);
			named[used++].root = i;
		}
	qsort(named, used, sizeof(*named), by_text);
	for (uint32_t i = 0, first = 0; i < used; i++) {
		if (strcmp(named[i].text.s ? named[i].text.s : "",
			   named[first].text.s ? named[first].text.s : "") != 0)
			first = i;
		same[named[i].root] = named[first].root;
	}
	for (uint32_t i = 0; i < n; i++)
		if (caches[i].root != GRAPH_NONE)
			caches[i].root = same[caches[i].root];
	for (uint32_t i = 0; i < used; i++)
		strbuf_free(&named[i].text);
	return 0;
}

int heap_caches(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(graph_tree_fini) struct graph_tree tree = { 0 };
	_cleanup_(freep) struct cache *caches = NULL;
	_cleanup_(freep) struct alike *rows = NULL;
	_cleanup_(freep) uint32_t *roots = NULL;
	uint64_t bytes = 0;
	uint32_t n = 0, n_rows = 0;

	(void)what;
	caches = list_caches(s, &n);
	if (!caches || owners_tree_grow(s, ~0u, &tree) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	roots = find_roots(s, &tree);
	for (uint32_t i = 0; roots && i < n; i++) {
		find_holder(v, &tree, roots, &caches[i]);
		bytes += caches[i].bytes;
	}
	if (roots && merge_roots(v, caches, n) == 0)
		rows = merge(caches, n, &n_rows);
	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	answer_say(v->out, "%s %s, %s", unit_count(n).s, n == 1 ? "container" : "containers",
		   unit_bytes((int64_t)bytes).s);
	answer_figure(v->out, "containers", n);
	answer_figure(v->out, "bytes", bytes);
	if (n)
		answer_table(v->out, "caches", columns);
	for (uint32_t i = 0; i < n_rows && i < v->args->top; i++)
		put_row(v, &rows[i]);
	if (n_rows > v->args->top)
		answer_say(v->out, "%s more kinds", unit_count(n_rows - v->args->top).s);
	return 0;
}
