#include "heap/snapshot/retainers.h"

#include "base/hash.h"
#include "base/large.h"
#include "base/strbuf.h"
#include "heap/snapshot/owners.h"

#include <errno.h>
#include <string.h>

enum {
	DEPTH_MAX = 1024,
	OBJECTS_MAX = 20000
}; /* steps of a chain that are looked at; objects whose chains are */

/* The part of what its source keeps from which on a link is said exactly: of a key or an index, of a mere place in bytes. */
#define NAMED_SHARE 0.1
#define PLACE_SHARE 0.95

/* Chains that are alike. */
struct group {
	uint64_t key;
	struct retainer row;
	UT_hash_handle hh;
};

struct finder {
	const struct snapshot *s;
	struct graph_tree tree;
	uint64_t n_objects;       /* asked about */
	uint32_t *kept;           /* of each node: objects asked about that hang on it */
	uint32_t *root;           /* … and the root that it hangs on                   */
	uint32_t *by_root;        /* of each root: objects asked about that hang on it */
	struct chain_step *steps; /* of one chain, from the root on                    */
	struct retainer links;    /* … the sites of its links; nothing else            */
	uint64_t indirections;    /* of chains, that are left out                      */
	struct group *groups;
};

static void finder_fini(struct finder *f)
{
	graph_tree_fini(&f->tree);
	large_free(f->kept);
	large_free(f->root);
	large_free(f->by_root);
	free(f->steps);
	hash_free(f->groups);
}

static uint32_t before(const struct finder *f, uint32_t node)
{
	return f->tree.from[node];
}

/* Fills f->steps with those next to the object; returns how many. */
static uint32_t chain_of(struct finder *f, uint32_t node, bool *ret_cut)
{
	uint32_t n = 1, at = 0, up = node;

	for (; before(f, up) != GRAPH_NONE && n < DEPTH_MAX; up = before(f, up))
		n++;
	*ret_cut = before(f, up) != GRAPH_NONE;
	for (uint32_t i = n; i-- > 0; node = before(f, node)) {
		f->steps[i] = (struct chain_step){ node, at };
		at = f->tree.at[node];
	}
	return n;
}

/* Does a good part of what hangs on this node hang on that one? */
static bool is_exact(const struct finder *f, uint32_t from, uint32_t to)
{
	const struct type *type = &f->s->types.type[f->s->types.of[from]];
	bool named = type->by == TYPE_CPYTHON;
	/* A module has few variables; of what else has many, one alone says nothing about the others. */
	bool few = f->n_objects == 1 || (named && strcmp(type->name, "module") == 0);

	/* Which way a tree of nodes leads is how it was filled; to one object there is that way alone. */
	if (f->n_objects > 1 && !named && type == &f->s->types.type[f->s->types.of[to]])
		return false;
	return (few || f->kept[to] > 1) &&
	       f->kept[to] >= (named ? NAMED_SHARE : PLACE_SHARE) * f->kept[from];
}

/* Roots from the roots on; what is kept the other way round: each node after those that hang on it. */
static void count_kept(struct finder *f, const uint32_t *objects, uint64_t n)
{
	for (uint32_t i = 0; i < f->tree.n_reached; i++) {
		uint32_t node = f->tree.order[i], from = before(f, node);

		f->root[node] = from == GRAPH_NONE ? f->tree.at[node] : f->root[from];
	}
	for (uint64_t i = 0; i < n; i++) {
		f->kept[objects[i]]++;
		if (f->tree.reached[objects[i]])
			f->by_root[f->root[objects[i]]]++;
	}
	for (uint32_t i = f->tree.n_reached; i-- > 0;) {
		uint32_t node = f->tree.order[i];

		if (before(f, node) != GRAPH_NONE)
			f->kept[before(f, node)] += f->kept[node];
	}
}

static uint64_t mix(uint64_t h, const char *text)
{
	return (h ^ hash_bytes(text, strlen(text))) * 0x9e3779b97f4a7c15ULL;
}

/* Behind the others. The last one makes room for those behind it: the object itself is always there. */
static int put_link(struct retainer *row, const char *text)
{
	if (row->n_links == RETAINERS_LINKS_MAX) {
		free(row->links[--row->n_links]);
		row->left_out++;
	}
	row->links[row->n_links] = strdup(text);
	return row->links[row->n_links++] ? 0 : -ENOMEM;
}

/* One more object of the link `i`. */
static void add_site(struct retainer *row, uint32_t i, uint32_t site, bool differ, bool first)
{
	row->differ[i] = !first && (row->differ[i] || differ || row->sites[i] != site);
	if (first || !row->sites[i])
		row->sites[i] = site;
}

/*
 * Objects of GHC's that stand for another, until the next collection or until they are evaluated: which of them have one before is
 * an accident, so it does not distinguish one chain from another.
 */
static bool is_indirection(const struct finder *f, uint32_t node)
{
	static const char *const names[] = { "IND", "IND_STATIC", "BLACKHOLE",     "BLOCKING_QUEUE",
					     "AP",  "PAP",        "THUNK_SELECTOR" };
	const struct type *type = &f->s->types.type[f->s->types.of[node]];

	for (size_t i = 0; type->by == TYPE_GHC && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(type->name, names[i]) == 0)
			return true;
	return false;
}

/* Returns how many steps of `n` stay; the object itself always does. */
static uint32_t leave_out_indirections(struct finder *f, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (i == n - 1 || !is_indirection(f, f->steps[i].node))
			f->steps[kept++] = f->steps[i];
	f->indirections += n - kept;
	return kept;
}

/* Of a chain of `n` steps: its links' texts, as a key, and in a row unless that is NULL. */
static int put_links(struct finder *f, uint32_t n, struct retainer *row, uint64_t *ret_key)
{
	char text[CHAIN_TEXT_MAX], last[CHAIN_TEXT_MAX] = "";
	uint32_t n_links = 0;
	uint64_t key = 1;
	int r = 0;

	for (uint32_t i = 0, took; i < n && r == 0; i += took) {
		uint32_t ahead;

		uint32_t site = sites_of(f->s->sites, f->steps[i].node);

		took = chain_link(f->s, &f->steps[i], n - i, true, text);
		ahead = i + took < n ? i + took : n - 1;
		if (!is_exact(f, f->steps[i].node, f->steps[ahead].node))
			chain_link(f->s, &f->steps[i], n - i, false, text);
		if (i + took < n && strcmp(text, last) == 0) {
			if (row)
				row->repeats[row->n_links - 1] = true;
			add_site(&f->links, n_links - 1, site, false, false);
			continue;
		}
		/* As put_link() has it: what is behind the last takes its place. */
		n_links = n_links < RETAINERS_LINKS_MAX ? n_links + 1 : n_links;
		add_site(&f->links, n_links - 1, site, false, true);
		strcpy(last, text);
		key = mix(key, text);
		if (row)
			r = put_link(row, text);
	}
	*ret_key = key;
	return r;
}

/* For itself and those that it stands for. */
static int add(struct finder *f, uint32_t object, uint64_t stands_for)
{
	struct group *g;
	uint64_t key;
	bool cut;
	uint32_t n = chain_of(f, object, &cut), root = f->root[object];

	n = leave_out_indirections(f, n);
	put_links(f, n, NULL, &key);
	key = (key * 31 + f->s->roots[root].kind) * 2 + cut;
	/* A root that keeps a good part of all has rows of its own. */
	if (f->by_root[root] >= NAMED_SHARE * (double)f->n_objects)
		key = (key + root + 1) * 0x9e3779b97f4a7c15ULL;
	g = hash_get(f->groups, key, &key);
	if (!g)
		return -ENOMEM;
	g->row.objects += stands_for;
	g->row.bytes += stands_for * snapshot_bytes(f->s, object);
	if (g->row.n_links) {
		for (uint32_t i = 0; i < g->row.n_links; i++)
			add_site(&g->row, i, f->links.sites[i], f->links.differ[i], false);
		return 0;
	}
	memcpy(g->row.sites, f->links.sites, sizeof(g->row.sites));
	memcpy(g->row.differ, f->links.differ, sizeof(g->row.differ));
	g->row.root = root;
	g->row.node = object;
	g->row.cut = cut;
	return put_links(f, n, &g->row, &key);
}

static int by_objects(const void *a, const void *b)
{
	const struct retainer *x = a, *y = b;

	if (x->objects != y->objects)
		return x->objects < y->objects ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static int gather(struct finder *f, struct retainers *to)
{
	struct group *g, *next;

	to->rows = calloc(HASH_COUNT(f->groups) + 1, sizeof(*to->rows));
	if (!to->rows)
		return -ENOMEM;
	HASH_ITER (hh, f->groups, g, next)
		to->rows[to->n++] = g->row;
	qsort(to->rows, to->n, sizeof(*to->rows), by_objects);
	return 0;
}

int retainers_find(const struct snapshot *s, const uint32_t *objects, uint64_t n, uint32_t kinds,
		   struct retainers *ret_retainers)
{
	_cleanup_(finder_fini) struct finder f = { .n_objects = n, .s = s };
	uint64_t reached = 0;
	int r;

	*ret_retainers = (struct retainers){ 0 };
	f.kept = large_alloc(s->blocks.n + 1, sizeof(*f.kept));
	f.root = large_alloc(s->blocks.n + 1, sizeof(*f.root));
	f.by_root = large_alloc(s->n_roots + 1, sizeof(*f.by_root));
	f.steps = calloc(DEPTH_MAX, sizeof(*f.steps));
	if (!f.kept || !f.root || !f.by_root || !f.steps)
		return -ENOMEM;
	r = owners_tree_grow(s, kinds, &f.tree);
	if (r == 0)
		count_kept(&f, objects, n);
	ret_retainers->one_in = 1 + n / OBJECTS_MAX;
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		ret_retainers->objects++;
		ret_retainers->bytes += snapshot_bytes(s, objects[i]);
		if (!f.tree.reached[objects[i]]) {
			ret_retainers->unreached++;
			ret_retainers->unreached_bytes += snapshot_bytes(s, objects[i]);
		} else if (reached++ % ret_retainers->one_in == 0) {
			r = add(&f, objects[i], ret_retainers->one_in);
		}
	}
	ret_retainers->indirections = f.indirections;
	return r < 0 ? r : gather(&f, ret_retainers);
}

void retainers_fini(struct retainers *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t k = 0; k < r->rows[i].n_links; k++)
			free(r->rows[i].links[k]);
	free(r->rows);
	*r = (struct retainers){ 0 };
}
