/* Blocks that collections own: by shape, once it is known who refers to whom. */
#include "heap/snapshot/type_way.h"

#include "base/large.h"
#include "heap/snapshot/snapshot.h"

#include <stdio.h>
#include <string.h>

/* What blocks are called: nodes, tables, buffers. */
static const struct names {
	const char *collection, *parts[3];
} names[COLLECTION_KINDS] = {
	[COLLECTION_MAP] = { "std::map", { "std::map node" } },
	[COLLECTION_LIST] = { "std::list", { "std::list node" } },
	[COLLECTION_DEQUE] = { "std::deque", { NULL, "std::deque map", "std::deque chunk" } },
	[COLLECTION_UNORDERED] = { "std::unordered_map",
				   { "std::unordered_map node", "std::unordered_map buckets" } },
	[COLLECTION_DICT] = { "redis dict", { "redis dict entry", "redis dict table" } },
	[COLLECTION_LIBCXX_MAP] = { "std::map (libc++)", { "std::map node" } },
	[COLLECTION_LIBCXX_DEQUE] = { "std::deque (libc++)",
				      { NULL, "std::deque map", "std::deque chunk" } },
	[COLLECTION_HASHBROWN] = { "HashMap", { NULL, "HashMap table" } },
	[COLLECTION_STRING] = { "std::string", { NULL, NULL, "std::string buffer" } },
	[COLLECTION_VECTOR] = { "std::vector", { NULL, NULL, "std::vector buffer" } },
};

/* The same words in programs that are not of C++. */
static const char *const plain_buffers[COLLECTION_KINDS] = {
	[COLLECTION_STRING] = "buffer with length and capacity",
	[COLLECTION_VECTOR] = "buffer with begin, end and limit",
};

/* Of each word of the heap: a table's is looked at twice, a node has two at least and is gone to three times. */
enum { STEPS_A_WORD = 8 };

struct finder {
	struct type_finder *f;
	struct snapshot *s;
	struct collection_memory mem;
	bool cxx;
	uint32_t type[COLLECTION_KINDS][3];
	uint32_t *vector_of; /* of each type of C++: that of vectors of it; 0: none yet */
	uint32_t n_types;    /* so many                                                  */
	struct collection c; /* whose blocks are being named                             */
};

static const uint8_t *bytes_at(void *ctx, uint64_t addr, uint64_t *ret_len)
{
	return copy_bytes(ctx, addr, ret_len);
}

const char *collection_name(const struct collection *c)
{
	return names[c->kind].collection;
}

void collections_fini(struct collections *c)
{
	large_free(c->rows);
	large_free(c->of);
	*c = (struct collections){ 0 };
}

/* --- names --- */

static uint32_t type_of_part(struct finder *k, enum collection_part part)
{
	uint32_t *type = &k->type[k->c.kind][part];

	if (*type)
		return *type;
	*type = type_add(k->f, k->c.kind < COLLECTION_STRING ? TYPE_COUNTED : TYPE_SHAPE,
			 plain_buffers[k->c.kind] && !k->cxx ? plain_buffers[k->c.kind]
							     : names[k->c.kind].parts[part],
			 0);
	return *type;
}

/* Objects of a class behind each other. */
static uint32_t type_of_vector(struct finder *k, uint32_t element)
{
	char name[TYPE_TEXT_MAX + 32];

	if (element >= k->n_types)
		return type_of_part(k, COLLECTION_BUFFER);
	if (!k->vector_of[element]) {
		snprintf(name, sizeof(name), "std::vector buffer of %.255s",
			 k->f->t->type[element].name);
		k->vector_of[element] = type_add(k->f, TYPE_RTTI, name, 0);
	}
	return k->vector_of[element];
}

/* Nobody else's: neither a collection's nor of a type that is known for certain. */
static bool is_open(const struct finder *k, uint32_t node)
{
	const struct types *t = &k->s->types;
	enum type_by by = t->type[t->of[node]].by;

	return !k->s->collections.of[node] && (by == TYPE_UNKNOWN || by == TYPE_RTTI);
}

static void own(void *ctx, uint32_t block, enum collection_part part)
{
	struct finder *k = ctx;
	uint32_t type = k->s->types.of[block];

	if (!is_open(k, block))
		return;
	k->s->collections.of[block] = k->s->collections.n;
	type_set(k->f, block,
		 k->c.kind == COLLECTION_VECTOR && type ? type_of_vector(k, type)
							: type_of_part(k, part),
		 0);
}

static void add(struct finder *k)
{
	struct collections *all = &k->s->collections;

	if (all->n == COLLECTION_TEXT - 2)
		return;
	if (!GROW_LARGE(all->rows, all->n, all->room)) {
		k->f->oom = true;
		return;
	}
	all->rows[all->n++] = k->c;
	collection_each(&k->mem, &k->c, own, k);
}

/* --- words --- */

/* An object of a runtime, whose fields are none of C++. */
static bool is_runtimes(const struct types *t, uint32_t node)
{
	enum type_by by = t->type[t->of[node]].by;

	return by == TYPE_CPYTHON || by == TYPE_CPYTHON_TABLE || by == TYPE_GHC;
}

/* A word at `at` refers to `to`; `from`: what it is in, or BLOCK_NONE. */
static void look(struct finder *k, uint32_t from, uint64_t at, uint32_t to, bool counted)
{
	const struct types *t = &k->s->types;

	if (k->f->oom || !is_open(k, to) || (from != BLOCK_NONE && is_runtimes(t, from)) ||
	    !collection_at(&k->mem, at, to, counted, &k->c))
		return;
	if (k->c.kind != COLLECTION_STRING) {
		add(k);
	} else if (!t->of[to]) { /* else it begins with an object of a class */
		type_set(k->f, to, type_of_part(k, COLLECTION_BUFFER), 0);
		k->s->collections.of[to] = COLLECTION_TEXT | (k->c.elements <= COLLECTION_TEXT_MAX
								      ? (uint32_t)k->c.elements
								      : COLLECTION_TEXT - 1);
	}
}

static void pass(struct finder *k, bool counted)
{
	const struct snapshot *s = k->s;

	for (uint64_t i = 0; i < s->n_roots; i++)
		if (s->roots[i].kind != SNAPSHOT_ROOT_MODULE &&
		    s->roots[i].kind != SNAPSHOT_ROOT_REGISTER)
			look(k, BLOCK_NONE, s->roots[i].at, s->roots[i].node, counted);
	for (uint32_t from = 0; from < s->graph->n; from++)
		for (uint64_t i = s->graph->first[from]; i < s->graph->first[from + 1]; i++)
			look(k, from, s->blocks.rows[from].addr + s->graph->edges[i].at,
			     s->graph->edges[i].to, counted);
}

/* Its objects have shown it, else its library does. */
static bool is_cxx(const struct type_finder *f)
{
	_cleanup_(fclosep) FILE *maps = NULL;
	char path[32], line[512];

	for (uint32_t i = 0; i < f->t->n; i++)
		if (f->t->type[i].by == TYPE_RTTI)
			return true;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)f->pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libstdc++.so") || strstr(line, "/libc++.so"))
			return true;
	return false;
}

void types_of_collections(struct type_finder *f)
{
	struct finder k = { .f = f, .s = f->s, .n_types = f->t->n, .cxx = is_cxx(f) };
	_cleanup_(large_freep) uint8_t *visited = large_alloc(f->blocks->n + 1, 1);
	uint64_t steps = 1;

	for (uint64_t i = 0; i < f->blocks->n; i++)
		steps += STEPS_A_WORD * (uint64_t)f->blocks->rows[i].words;
	k.vector_of = calloc(k.n_types, sizeof(*k.vector_of));
	f->oom = !visited || !k.vector_of;
	k.mem = (struct collection_memory){ bytes_at,    f->copy, f->blocks->rows, f->blocks->n,
					    f->s->index, visited, &steps };
	if (!f->oom) {
		pass(&k, true);
		pass(&k, false);
	}
	f->s->collections.cut = !steps;
	free(k.vector_of);
}
