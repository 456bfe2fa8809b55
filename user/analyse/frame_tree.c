#include "analyse/frame_tree.h"

#include "analyse/frame_tree_parts.h"
#include "base/grow.h"
#include "base/saturate.h"

#include <errno.h>
#include <string.h>

static uint32_t slot_hash(uint32_t parent, uint32_t name, enum frame_kind kind)
{
	uint64_t h = ((uint64_t)parent << 32 | name) * 0x9e3779b97f4a7c15u + (unsigned)kind;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32);
}

static void slot_put(struct builder *b, uint32_t node)
{
	const struct frame_node *n = &b->nodes[node];
	uint32_t i = slot_hash(n->parent, b->names[node], n->kind) & b->mask;

	while (b->slots[i])
		i = (i + 1) & b->mask;
	b->slots[i] = node;
}

/* Room for one more node; the table is kept at most half full. */
static int grow(struct builder *b)
{
	uint32_t cap = b->cap ? b->cap * 2 : 1024;
	struct frame_node *nodes;
	uint32_t *names, *slots;

	if (b->tree.n_nodes < b->cap)
		return 0;
	if (cap > UINT32_MAX / 4)
		return -ENOMEM;
	nodes = realloc(b->nodes, cap * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	b->nodes = nodes;
	if (b->two) {
		struct frame_sides *sides = realloc(b->sides, cap * sizeof(*sides));

		if (!sides)
			return -ENOMEM;
		memset(sides + b->cap, 0, (cap - b->cap) * sizeof(*sides));
		b->sides = sides;
	}
	names = realloc(b->names, cap * sizeof(*names));
	if (!names)
		return -ENOMEM;
	b->names = names;
	slots = calloc(cap * 2ul, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(b->slots);
	b->slots = slots;
	b->mask = cap * 2 - 1;
	b->cap = cap;
	for (uint32_t i = 1; i < b->tree.n_nodes; i++)
		slot_put(b, i);
	return 0;
}

int builder_add_node(struct builder *b, uint32_t parent, const struct frame *f, bool findable,
		     uint32_t *ret_node)
{
	uint32_t node;
	int r = grow(b);

	if (r < 0)
		return r;
	node = b->tree.n_nodes++;
	b->names[node] = f->name.ix;
	b->nodes[node] = (struct frame_node){
		.name = dict_str(b->table.d, f->name),
		.module = f->module,
		.kind = f->kind,
		.parent = parent,
		.depth = b->nodes[parent].depth + 1,
	};
	if (b->nodes[node].depth > b->tree.max_depth)
		b->tree.max_depth = b->nodes[node].depth;
	if (findable)
		slot_put(b, node);
	*ret_node = node;
	return 0;
}

/* The child of `parent` for frame `f`, made when there is none yet. */
static int child_get(struct builder *b, uint32_t parent, const struct frame *f, uint32_t *ret_node)
{
	uint32_t i, node;

	for (i = slot_hash(parent, f->name.ix, f->kind) & b->mask; (node = b->slots[i]);
	     i = (i + 1) & b->mask) {
		if (b->nodes[node].parent == parent && b->names[node] == f->name.ix &&
		    b->nodes[node].kind == f->kind) {
			*ret_node = node;
			return 0;
		}
	}
	return builder_add_node(b, parent, f, true, ret_node);
}

static int add_comm(struct builder *b, struct dict *d, labels_id labels, uint32_t *node)
{
	const struct label *comm = dict_label_find(d, labels, "comm");
	struct frame f = { .module = "", .kind = FRAME_PROCESS };

	if (!comm || !comm->str.ix)
		return 0;
	f.name = comm->str;
	return child_get(b, *node, &f, node);
}

/* Threads are distinguished by number: names repeat in pools, and are often the process's. */
static bool is_thread_key(const char *key)
{
	return strcmp(key, "thread") == 0 || strcmp(key, "tid") == 0;
}

/* "worker (tid 5101)" */
static string_id numbered(struct dict *d, labels_id labels, const char *name_key, const char *key,
			  const struct label *number)
{
	const struct label *name = dict_label_find(d, labels, name_key);
	char text[256];

	if (!name)
		name = dict_label_find(d, labels, "comm");
	snprintf(text, sizeof(text), "%.200s%s%s %lld%s", name ? dict_str(d, name->str) : "",
		 name ? " (" : "", key, (long long)number->num, name ? ")" : "");
	return dict_string(d, text);
}

static string_id label_text(struct dict *d, const char *key, labels_id labels)
{
	const struct label *label = is_thread_key(key) ? dict_label_find(d, labels, "tid") : NULL;
	char number[24];

	if (label && !label->str.ix)
		return numbered(d, labels, "thread", "tid", label);
	label = dict_label_find(d, labels, key);
	if (!label)
		return dict_string(d, strncmp(key, "container", 9) == 0 ? "[host]" : "[other]");
	if (label->str.ix)
		return label->str;
	if (strcmp(key, "pid") == 0)
		return numbered(d, labels, "comm", "pid", label);
	snprintf(number, sizeof(number), "%lld", (long long)label->num);
	return dict_string(d, number);
}

bool frame_tree_has_label(const struct profile *p, const char *key)
{
	const struct dict *d = profile_dict(p);

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		labels_id labels = profile_sample(p, i).labels;

		if (dict_label_find(d, labels, key) ||
		    (is_thread_key(key) && dict_label_find(d, labels, "tid")))
			return true;
	}
	return false;
}

static int add_label(struct builder *b, struct dict *d, const char *key, labels_id labels,
		     uint32_t *node)
{
	struct frame f = { .module = "", .kind = FRAME_PROCESS };

	f.name = label_text(d, key, labels);
	return child_get(b, *node, &f, node);
}

static int add_root(struct builder *b, const struct frame_tree_opts *opts, labels_id labels,
		    uint32_t *node)
{
	struct dict *d = b->table.d;
	bool threads = opts->by && is_thread_key(opts->by);
	/* "redis-server (pid 5099)" has the process's name in it. */
	bool comm = opts->root_comm && !(opts->by && strcmp(opts->by, "pid") == 0);
	int r = 0;

	if (opts->by && !threads)
		r = add_label(b, d, opts->by, labels, node);
	if (r == 0 && comm)
		r = add_comm(b, d, labels, node);
	if (r == 0 && threads)
		r = add_label(b, d, opts->by, labels, node);
	return r;
}

int builder_root(struct builder *b, const struct frame_tree_opts *opts, labels_id labels,
		 uint32_t *ret_node)
{
	uint32_t node = 0;
	int r;

	if (labels.ix >= b->n_label_roots) {
		uint32_t n = labels.ix + 64;
		uint32_t *roots = reallocarray(b->label_roots, n, sizeof(*roots));

		if (!roots)
			return -ENOMEM;
		memset(roots + b->n_label_roots, 0, (n - b->n_label_roots) * sizeof(*roots));
		b->label_roots = roots;
		b->n_label_roots = n;
	}
	if (!b->label_roots[labels.ix]) {
		r = add_root(b, opts, labels, &node);
		if (r < 0)
			return r;
		b->label_roots[labels.ix] = node + 1;
	}
	*ret_node = b->label_roots[labels.ix] - 1;
	return 0;
}

/* Leaves of a stack what `name` calls, or with `leaf_first` what calls it. false: it is not in it. */
static bool cut_at(struct frame_path *path, const struct dict *d, const char *name, bool leaf_first,
		   uint32_t *first)
{
	uint32_t i = 0;

	while (i < path->n && strcmp(dict_str(d, path->frames[i].name), name) != 0)
		i++;
	if (i == path->n)
		return false;
	if (leaf_first)
		path->n = i + 1;
	else
		*first = i;
	return true;
}

/* Where in the tree each stack is below each root, as far as known: samples share most of their frames. */
struct known {
	uint32_t root, node; /* node 0: not known */
};

struct walk {
	const struct frame_tree_opts *opts;
	struct frame_path path;
	struct known *known; /* NULL: not from the root, or all of the stack matters */
	stack_id *new;       /* stacks on the way down that are not known */
	uint32_t cap_new;
};

static void walk_fini(struct walk *w)
{
	frame_path_fini(&w->path);
	free(w->known);
	free(w->new);
}

static int walk_init(struct walk *w, const struct frame_tree_opts *opts, const struct dict *d)
{
	w->opts = opts;
	if (opts->leaf_first || opts->from)
		return 0;
	w->known = calloc(dict_stack_count(d), sizeof(*w->known));
	return w->known ? 0 : -ENOMEM;
}

static int note_new(struct walk *w, uint32_t n, stack_id s)
{
	if (!GROW(w->new, n, w->cap_new))
		return -ENOMEM;
	w->new[n] = s;
	return 0;
}

/* From the root: up to what is known, and down again. */
static int add_from_root(struct builder *b, struct walk *w, const struct profile_sample *s,
			 uint32_t *ret_node)
{
	uint32_t node = 0, root, n = 0;
	stack_id at;
	int r = builder_root(b, w->opts, s->labels, &root);

	if (r < 0)
		return r;
	for (at = s->stack; at.ix; at = dict_stack_parent(b->table.d, at)) {
		if (w->known[at.ix].node && w->known[at.ix].root == root) {
			node = w->known[at.ix].node;
			break;
		}
		if (note_new(w, n++, at) < 0)
			return -ENOMEM;
	}
	if (!at.ix)
		node = root;
	while (n--) {
		uint32_t n_frames;
		location_id leaf = dict_stack_leaf(b->table.d, w->new[n]);
		const struct frame *frames = frame_table_get(&b->table, leaf, &n_frames);

		if (!frames)
			return -ENOMEM;
		for (uint32_t i = 0; i < n_frames; i++) {
			r = child_get(b, node, &frames[i], &node);
			if (r < 0)
				return r;
		}
		w->known[w->new[n].ix] = (struct known){ root, node };
	}
	*ret_node = node;
	return 0;
}

/* 1: the sample is not of what is looked for. */
static int add_sample(struct builder *b, struct walk *w, const struct profile_sample *s,
		      uint32_t *ret_node)
{
	const struct frame_tree_opts *opts = w->opts;
	struct frame_path *path = &w->path;
	struct dict *d = b->table.d;
	uint32_t node = 0, first = 0;
	int r;

	if (w->known)
		return add_from_root(b, w, s, ret_node);
	r = frame_path_set(path, d, s->stack);
	if (r < 0)
		return r;
	if (opts->from && !cut_at(path, d, opts->from, opts->leaf_first, &first))
		return 1;
	if (!opts->leaf_first && (r = builder_root(b, opts, s->labels, &node)) < 0)
		return r;
	for (uint32_t i = first; i < path->n; i++) {
		uint32_t at = opts->leaf_first ? path->n - 1 - i : i;

		r = child_get(b, node, &path->frames[at], &node);
		if (r < 0)
			return r;
	}
	if (opts->leaf_first && (r = add_root(b, opts, s->labels, &node)) < 0)
		return r;
	*ret_node = node;
	return 0;
}

/* `side`: 0 before, 1 after; a tree of one profile has the second. */
static int add_profile(struct builder *b, const struct profile *p, uint32_t type, int side,
		       struct walk *w)
{
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		int64_t value = s.values[type];
		uint32_t node;
		int r;

		if (value < 0)
			b->tree.n_negative++;
		if (value <= 0)
			continue;
		r = add_sample(b, w, &s, &node);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (b->sample_nodes)
			b->sample_nodes[i] = node;
		b->tree.n_samples++;
		if (!b->two) {
			b->nodes[node].self = add_saturating(b->nodes[node].self, value);
			continue;
		}
		b->sides[node].self[side] = add_saturating(b->sides[node].self[side], value);
	}
	return 0;
}

static int64_t scaled(int64_t value, double scale)
{
	double v = (double)value * scale;

	return scale <= 0 || scale == 1 ? value : v >= 0x1p63 ? INT64_MAX : (int64_t)(v + 0.5);
}

/* The larger of both is the node's own; what they have below is added up. */
static void add_up_sides(struct builder *b, const double scale[2])
{
	for (uint32_t i = b->tree.n_nodes; i-- > 0;) {
		struct frame_sides *s = &b->sides[i], *parent = &b->sides[b->nodes[i].parent];
		int64_t before = scaled(s->self[0], scale[0]), after = scaled(s->self[1], scale[1]);

		b->nodes[i].self = before > after ? before : after;
		for (int k = 0; k < 2; k++) {
			s->total[k] = add_saturating(s->total[k], s->self[k]);
			if (i)
				parent->total[k] = add_saturating(parent->total[k], s->total[k]);
		}
	}
}

static void add_up(struct builder *b)
{
	for (uint32_t i = b->tree.n_nodes; i-- > 0;) {
		struct frame_node *n = &b->nodes[i];

		n->total = add_saturating(n->total, n->self);
		if (b->left_out)
			n->total = add_saturating(n->total, b->left_out[i]);
		if (i)
			b->nodes[n->parent].total =
				add_saturating(b->nodes[n->parent].total, n->total);
	}
}

struct by_name {
	const char *name;
	uint32_t ix;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct by_name *)a)->name, ((const struct by_name *)b)->name);
}

/*
 * Links children in the order of their names. Names are compared once each, not once per node:
 * every distinct name gets its rank, nodes are sorted by rank in two linear passes, and pushing
 * them to the front of their parent's list from the last to the first leaves it sorted.
 */
static int link_children(struct builder *b)
{
	_cleanup_(freep) struct by_name *sorted = NULL;
	_cleanup_(freep) uint32_t *rank = NULL, *start = NULL, *order = NULL;
	uint32_t n = b->tree.n_nodes, max_ix = 0, n_names = 0;

	for (uint32_t i = 0; i < n; i++)
		if (b->names[i] > max_ix)
			max_ix = b->names[i];
	rank = calloc(max_ix + 1ul, sizeof(*rank));
	sorted = calloc(n, sizeof(*sorted));
	order = calloc(n, sizeof(*order));
	if (!rank || !sorted || !order)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++) {
		if (rank[b->names[i]])
			continue;
		rank[b->names[i]] = 1;
		sorted[n_names++] = (struct by_name){ b->nodes[i].name, b->names[i] };
	}
	qsort(sorted, n_names, sizeof(*sorted), compare_names);
	for (uint32_t i = 0; i < n_names; i++)
		rank[sorted[i].ix] = i;

	start = calloc((size_t)n_names * N_FRAME_KINDS + 1, sizeof(*start));
	if (!start)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++)
		start[rank[b->names[i]] * N_FRAME_KINDS + b->nodes[i].kind + 1]++;
	for (uint32_t i = 1; i <= n_names * N_FRAME_KINDS; i++)
		start[i] += start[i - 1];
	for (uint32_t i = 1; i < n; i++)
		order[start[rank[b->names[i]] * N_FRAME_KINDS + b->nodes[i].kind]++] = i;
	for (uint32_t i = n - 1; i-- > 0;) {
		struct frame_node *node = &b->nodes[order[i]], *parent = &b->nodes[node->parent];

		node->next_sibling = parent->first_child;
		parent->first_child = order[i];
	}
	return 0;
}

static int build(struct builder *b, const struct profile *p, const struct frame_tree_opts *opts)
{
	_cleanup_(walk_fini) struct walk w = { 0 };
	struct dict *d = profile_dict(p);
	bool wide = opts->least > 1;
	int r;

	b->table.d = d;
	r = grow(b);
	if (r == 0 && !wide)
		r = walk_init(&w, opts, d);
	if (r == 0 && opts->keep_samples && !b->two) {
		size_t n = profile_n_samples(p);

		b->sample_nodes = malloc((n + 1) * sizeof(*b->sample_nodes));
		r = b->sample_nodes ? 0 : -ENOMEM;
		if (r == 0)
			memset(b->sample_nodes, 0xff, (n + 1) * sizeof(*b->sample_nodes));
	}
	if (r < 0)
		return r;
	b->nodes[0] = (struct frame_node){ .name = "all", .module = "", .kind = FRAME_PROCESS };
	b->names[0] = 0;
	b->tree.n_nodes = 1;
	if (wide)
		r = builder_add_wide(b, p, opts);
	if (r == 0 && opts->before)
		r = add_profile(b, opts->before, opts->before_type, 0, &w);
	if (r == 0 && !wide)
		r = add_profile(b, p, opts->type, 1, &w);
	if (r < 0)
		return r;
	if (dict_oom(d))
		return -ENOMEM;
	if (b->two)
		add_up_sides(b, opts->scale);
	add_up(b);
	return link_children(b);
}

int frame_tree_build(const struct profile *p, const struct frame_tree_opts *opts,
		     struct frame_tree **ret_tree)
{
	struct builder *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->two = opts->before != NULL;
	r = build(b, p, opts);
	frame_table_fini(&b->table);
	free(b->label_roots);
	free(b->names);
	free(b->slots);
	b->label_roots = b->names = b->slots = NULL;
	if (r < 0) {
		frame_tree_free(&b->tree);
		return r;
	}
	b->tree.nodes = b->nodes;
	b->tree.sides = b->sides;
	b->tree.sample_nodes = b->sample_nodes;
	b->tree.left_out = b->left_out;
	b->tree.type = profile_type(p, opts->type)->name;
	b->tree.unit = profile_type(p, opts->type)->unit;
	*ret_tree = &b->tree;
	return 0;
}

static int reverse(struct builder *b, const struct frame_tree *t, struct dict *d)
{
	int r = grow(b);

	b->table.d = d;
	if (r < 0)
		return r;
	b->nodes[0] = (struct frame_node){ .name = "all", .module = "", .kind = FRAME_PROCESS };
	b->names[0] = 0;
	b->tree.n_nodes = 1;
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		uint32_t node = 0;

		if (!t->nodes[i].self)
			continue;
		for (uint32_t at = i; at; at = t->nodes[at].parent) {
			const struct frame_node *n = &t->nodes[at];
			struct frame f = { .name = dict_string(d, n->name),
					   .module = n->module,
					   .kind = n->kind };

			r = child_get(b, node, &f, &node);
			if (r < 0)
				return r;
		}
		b->nodes[node].self = add_saturating(b->nodes[node].self, t->nodes[i].self);
	}
	if (dict_oom(d))
		return -ENOMEM;
	add_up(b);
	return link_children(b);
}

int frame_tree_reversed(const struct frame_tree *t, struct dict *d, struct frame_tree **ret_tree)
{
	struct builder *b = calloc(1, sizeof(*b));
	int r = b ? reverse(b, t, d) : -ENOMEM;

	if (b)
		frame_table_fini(&b->table);
	if (r < 0) {
		frame_tree_free(b ? &b->tree : NULL);
		return r;
	}
	b->tree.nodes = b->nodes;
	b->tree.n_samples = t->n_samples;
	b->tree.n_negative = t->n_negative;
	b->tree.type = t->type;
	b->tree.unit = t->unit;
	*ret_tree = &b->tree;
	return 0;
}

static void move_sides(struct frame_sides *sides, const struct frame_node *nodes, uint32_t node,
		       uint32_t to)
{
	struct frame_sides own = sides[node];

	for (int i = 0; i < 2; i++) {
		for (uint32_t at = node; at != to; at = nodes[at].parent)
			sides[at].total[i] -= own.self[i];
		sides[node].self[i] = 0;
		sides[to].self[i] = add_saturating(sides[to].self[i], own.self[i]);
	}
}

static int compare_children(const struct frame_node *a, const struct frame_node *b)
{
	return strcmp(a->name, b->name) ?: (int)a->kind - (int)b->kind;
}

/* Both have their children in order; parents have smaller numbers. */
void frame_tree_map(const struct frame_tree *t, const struct frame_tree *in, uint32_t *ret_map)
{
	for (uint32_t i = 0; i < t->n_nodes; i++)
		ret_map[i] = 0;
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		uint32_t at = in->nodes[ret_map[i]].first_child;

		for (uint32_t c = t->nodes[i].first_child; c; c = t->nodes[c].next_sibling) {
			while (at && compare_children(&in->nodes[at], &t->nodes[c]) < 0)
				at = in->nodes[at].next_sibling;
			ret_map[c] = at;
		}
	}
}

int frame_tree_charge(struct frame_tree *t,
		      uint32_t (*to)(const struct frame_tree *t, uint32_t node))
{
	struct builder *b = (struct builder *)t;

	b->charged = calloc(t->n_nodes, sizeof(*b->charged));
	if (!b->charged)
		return -ENOMEM;
	b->tree.charged = b->charged;

	/* Parents have smaller numbers: what is moved up is not met again. */
	for (uint32_t i = 1; i < t->n_nodes; i++) {
		int64_t self = b->nodes[i].self;
		bool any = self || (b->two && (b->sides[i].self[0] || b->sides[i].self[1]));
		uint32_t site = any ? to(t, i) : i;

		b->charged[i] = site;
		if (site == i)
			continue;
		for (uint32_t at = i; at != site; at = b->nodes[at].parent)
			b->nodes[at].total -= self;
		b->nodes[i].self = 0;
		b->nodes[site].self = add_saturating(b->nodes[site].self, self);
		if (b->two)
			move_sides(b->sides, b->nodes, i, site);
	}
	return 0;
}

void frame_tree_free(struct frame_tree *t)
{
	struct builder *b = (struct builder *)t;

	if (!b)
		return;
	free(b->nodes);
	free(b->sides);
	free(b->sample_nodes);
	free(b->charged);
	free(b->left_out);
	free(b->names);
	free(b->slots);
	free(b);
}
