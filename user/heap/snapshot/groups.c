#include "heap/snapshot/groups.h"

#include "base/hash.h"
#include "base/strbuf.h"
#include "heap/snapshot/owners.h"

#include <errno.h>
#include <string.h>

enum { FIELDS_LOOKED_AT = 256 }; /* references of one object whose types are collected */

/* What distinguishes a group from others: numbers of types, in order; unused ones are 0. */
struct key {
	uint32_t part[GROUPS_FIELDS_MAX + 2];
};

struct group {
	struct key key;
	uint64_t objects, bytes, length;
	bool has_length;
	UT_hash_handle hh;
};

/* The name of a module, once; types of it have its number. */
struct module {
	char name[128];
	uint32_t number;
	UT_hash_handle hh;
};

struct grouping {
	const struct snapshot *s;
	enum groups_by by;
	struct graph_tree tree; /* of GROUPS_REFERRER                        */
	uint32_t *module_of;    /* of GROUPS_MODULE: of each type, its number */
	struct module *modules;
	struct group *groups;
};

enum { MORE_FIELDS = UINT32_MAX };

/* --- modules --- */

/* Where the last part of the name begins, outside of what stands between brackets; 0: it has one part only. */
static size_t last_part(const char *name)
{
	size_t at = 0;

	for (size_t i = 0; name[i] && !strchr("<({[", name[i]); i++) {
		if (name[i] == '.' && i)
			at = i;
		else if (name[i] == ':' && name[i + 1] == ':')
			at = i++;
	}
	return at;
}

static void module_name(const struct type *type, char name[128])
{
	size_t n = last_part(type->name);

	if (!n) {
		strcpy(name, type->by == TYPE_UNKNOWN ? "(unknown)"
			     : type->by == TYPE_CPYTHON || type->by == TYPE_CPYTHON_TABLE
				     ? "builtins"
				     : "(no module)");
		return;
	}
	n = n < 127 ? n : 127;
	memcpy(name, type->name, n);
	name[n] = '\0';
}

static int find_modules(struct grouping *g)
{
	const struct types *t = &g->s->types;

	g->module_of = calloc(t->n + 1ul, sizeof(*g->module_of));
	if (!g->module_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++) {
		char name[128] = "";
		struct module *m;

		module_name(&t->type[i], name);
		HASH_FIND_STR(g->modules, name, m);
		if (!m) {
			m = calloc(1, sizeof(*m));
			if (!m)
				return -ENOMEM;
			strcpy(m->name, name);
			m->number = HASH_COUNT(g->modules);
			HASH_ADD_STR(g->modules, name, m);
			if (!hash_added(m)) {
				free(m);
				return -ENOMEM;
			}
		}
		g->module_of[i] = m->number;
	}
	return 0;
}

static const char *module_numbered(const struct grouping *g, uint32_t number)
{
	for (const struct module *m = g->modules; m; m = m->hh.next)
		if (m->number == number)
			return m->name;
	return "";
}

/* --- keys --- */

/* Different types that it refers to, in the order of their first reference. */
static void add_fields(const struct grouping *g, uint32_t node, struct key *key)
{
	const struct graph *graph = g->s->graph;
	uint64_t end = graph->first[node + 1];
	uint32_t n = 1;

	if (end > graph->first[node] + FIELDS_LOOKED_AT)
		end = graph->first[node] + FIELDS_LOOKED_AT;
	for (uint64_t e = graph->first[node]; e < end; e++) {
		uint32_t type = g->s->types.of[graph->edges[e].to] + 1, i = 1;

		while (i < n && key->part[i] != type)
			i++;
		if (i < n)
			continue;
		if (n > GROUPS_FIELDS_MAX) {
			key->part[n] = MORE_FIELDS;
			return;
		}
		key->part[n++] = type;
	}
}

/* 1 + its type; of a root: 2^31 + its kind; 0: nothing refers to it. */
static uint32_t referrer_of(const struct grouping *g, uint32_t node)
{
	if (!g->tree.reached[node])
		return 0;
	if (g->tree.from[node] == GRAPH_NONE)
		return 1u << 31 | g->s->roots[g->tree.at[node]].kind;
	return 1 + g->s->types.of[g->tree.from[node]];
}

static struct key key_of(const struct grouping *g, uint32_t node)
{
	struct key key = { .part = { g->s->types.of[node] } };

	if (g->by == GROUPS_MODULE)
		key.part[0] = g->module_of[key.part[0]];
	else if (g->by == GROUPS_ARENA)
		key.part[0] = g->s->blocks.rows[node].owner;
	else if (g->by == GROUPS_SITE)
		key.part[0] = sites_of(g->s->sites, node);
	else if (g->by == GROUPS_TWO_LEVEL)
		add_fields(g, node, &key);
	else if (g->by == GROUPS_REFERRER)
		key.part[1] = referrer_of(g, node);
	return key;
}

/* --- names --- */

static void put_referrer(const struct grouping *g, uint32_t part, struct strbuf *out)
{
	strbuf_puts(out, " ← ");
	if (!part)
		strbuf_puts(out, "(nothing)");
	else if (part & 1u << 31)
		strbuf_printf(out, "(%s)", snapshot_root_words(part & 0xff));
	else
		strbuf_puts(out, g->s->types.type[part - 1].name);
}

static void put_fields(const struct grouping *g, const struct key *key, struct strbuf *out)
{
	for (uint32_t i = 1; i < GROUPS_FIELDS_MAX + 2 && key->part[i]; i++) {
		strbuf_puts(out, i == 1 ? " → " : ", ");
		strbuf_puts(out, key->part[i] == MORE_FIELDS
					 ? "…"
					 : g->s->types.type[key->part[i] - 1].name);
	}
}

static void put_site(const struct grouping *g, uint32_t site, struct strbuf *out)
{
	char name[SITE_NAME_MAX] = "";

	if (g->s->sites)
		sites_name(g->s->sites, site, name);
	strbuf_puts(out, *name ? name : "(not known)");
}

/* Do the types of objects make no difference? */
static bool is_typeless(enum groups_by by)
{
	return by == GROUPS_MODULE || by == GROUPS_ARENA || by == GROUPS_SITE;
}

static char *name_of(const struct grouping *g, const struct key *key)
{
	struct strbuf out = { 0 };
	char arena[HEAP_OWNER_NAME_MAX];

	heap_owner_name(heap_blocks_owner(&g->s->blocks, g->by == GROUPS_ARENA ? key->part[0] : 0),
			arena);
	if (g->by == GROUPS_MODULE)
		strbuf_puts(&out, module_numbered(g, key->part[0]));
	else if (g->by == GROUPS_ARENA)
		strbuf_puts(&out, arena);
	else if (g->by == GROUPS_SITE)
		put_site(g, key->part[0], &out);
	else
		strbuf_puts(&out, g->s->types.type[key->part[0]].name);
	if (g->by == GROUPS_TWO_LEVEL)
		put_fields(g, key, &out);
	else if (g->by == GROUPS_REFERRER)
		put_referrer(g, key->part[1], &out);
	return strbuf_take(&out);
}

/* --- */

static int prepare(struct grouping *g)
{
	const struct snapshot *s = g->s;

	if (g->by == GROUPS_MODULE)
		return find_modules(g);
	if (g->by == GROUPS_REFERRER)
		return owners_tree_grow(s, ~0u, &g->tree);
	return 0;
}

static int collect(struct grouping *g)
{
	for (uint32_t i = 0; i < g->s->blocks.n; i++) {
		struct key key = key_of(g, i);
		struct group *of = hash_get(g->groups, key, &key);

		if (!of)
			return -ENOMEM;
		of->objects++;
		if (g->s->lengths && g->s->lengths[i] != SNAPSHOT_NO_LENGTH) {
			of->length += g->s->lengths[i];
			of->has_length = true;
		}
		of->bytes += snapshot_bytes(g->s, i);
	}
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct group_row *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

static int list(const struct grouping *g, struct groups *ret)
{
	ret->rows = calloc(HASH_COUNT(g->groups) + 1ul, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	for (const struct group *of = g->groups; of; of = of->hh.next) {
		struct group_row *row = &ret->rows[ret->n];

		*row = (struct group_row){
			.name = name_of(g, &of->key),
			.objects = of->objects,
			.bytes = of->bytes,
			.length = of->length,
			.has_length = of->has_length && !is_typeless(g->by),
			.by = is_typeless(g->by) ? TYPE_UNKNOWN
						 : g->s->types.type[of->key.part[0]].by,
		};
		if (!row->name)
			return -ENOMEM;
		ret->n++;
	}
	qsort(ret->rows, ret->n, sizeof(*ret->rows), by_bytes);
	return 0;
}

int groups_find(const struct snapshot *s, enum groups_by by, struct groups *ret_groups)
{
	struct grouping g = { .s = s, .by = by };
	int r = prepare(&g);

	*ret_groups = (struct groups){ 0 };
	if (r == 0)
		r = collect(&g);
	if (r == 0)
		r = list(&g, ret_groups);
	if (r < 0)
		groups_fini(ret_groups);
	graph_tree_fini(&g.tree);
	free(g.module_of);
	hash_free(g.modules);
	hash_free(g.groups);
	return r;
}

void groups_fini(struct groups *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		free(g->rows[i].name);
	free(g->rows);
	*g = (struct groups){ 0 };
}
