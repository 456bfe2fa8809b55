#include "screen/call_tree.h"

#include <errno.h>
#include <string.h>

/* --- nodes --- */

static uint32_t slot_of(const struct call_tree *t, uint32_t parent, uint32_t name, unsigned kind)
{
	uint64_t h = ((uint64_t)parent << 32 | name) * 0x9e3779b97f4a7c15u + kind;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32) & t->mask;
}

static unsigned kind_of(const struct call_node *n)
{
	return (unsigned)n->kind << 8 | n->frame;
}

static void slot_put(struct call_tree *t, uint32_t node)
{
	const struct call_node *n = &t->nodes[node];
	uint32_t i = slot_of(t, n->parent, n->name_ix, kind_of(n));

	while (t->slots[i])
		i = (i + 1) & t->mask;
	t->slots[i] = node;
}

/* Room for one more; the table is at most half full. */
static int grow(struct call_tree *t)
{
	uint32_t cap = t->cap ? 2 * t->cap : 1024;
	struct call_node *nodes;
	uint32_t *slots;

	if (t->n < t->cap)
		return 0;
	if (cap > UINT32_MAX / 4)
		return -ENOMEM;
	nodes = reallocarray(t->nodes, cap, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	t->nodes = nodes;
	slots = calloc(2 * (size_t)cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->cap = cap;
	t->mask = 2 * cap - 1;
	for (uint32_t i = 1; i < t->n; i++)
		slot_put(t, i);
	return 0;
}

int call_tree_init(struct call_tree *t)
{
	*t = (struct call_tree){ 0 };
	if (grow(t) < 0) {
		call_tree_fini(t);
		return -ENOMEM;
	}
	t->nodes[0] =
		(struct call_node){ .name = "all", .module = "", .kind = CALL_ROOT, .open = true };
	t->n = 1;
	return 0;
}

void call_tree_fini(struct call_tree *t)
{
	free(t->nodes);
	free(t->slots);
	frame_path_fini(&t->path);
	*t = (struct call_tree){ 0 };
}

/* The child of this name and kind, made if there is none; 0: no memory. */
static uint32_t child(struct call_tree *t, const struct dict *d, uint32_t parent, string_id name,
		      const char *module, enum call_kind kind, enum frame_kind frame)
{
	uint32_t i = slot_of(t, parent, name.ix, (unsigned)kind << 8 | frame), node;

	for (; t->slots[i]; i = (i + 1) & t->mask) {
		const struct call_node *n = &t->nodes[t->slots[i]];

		if (n->parent == parent && n->name_ix == name.ix && n->kind == kind &&
		    n->frame == frame)
			return t->slots[i];
	}
	if (grow(t) < 0)
		return 0;
	node = t->n++;
	t->nodes[node] = (struct call_node){
		.name = dict_str(d, name),
		.module = module,
		.name_ix = name.ix,
		.parent = parent,
		.next_sibling = t->nodes[parent].first_child,
		.depth = (uint16_t)(t->nodes[parent].depth + (t->nodes[parent].depth < UINT16_MAX)),
		.kind = (uint8_t)kind,
		.frame = (uint8_t)frame,
	};
	t->nodes[parent].first_child = node;
	slot_put(t, node);
	return node;
}

/* --- samples --- */

/* What a value type of a profile is, and its sign; N_CALL_VALUES: it is not shown. */
struct meaning {
	enum call_value value;
	int sign;
};

static struct meaning meaning_of(const struct value_type *type)
{
	static const struct {
		const char *type, *unit;
		struct meaning is;
	} known[] = {
		{ "cpu", "nanoseconds", { CALL_CPU, 1 } },
		{ "blocked", "nanoseconds", { CALL_BLOCKED, 1 } },
		{ "runnable", "nanoseconds", { CALL_RUNNABLE, 1 } },
		{ "alloc_space", "bytes", { CALL_ALLOC, 1 } },
		{ "inuse_space", "bytes", { CALL_LIVE, 1 } },
		{ "resident", "bytes", { CALL_RSS, 1 } },
		{ "returned", "bytes", { CALL_RSS, -1 } },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(type->name, known[i].type) == 0 &&
		    strcmp(type->unit, known[i].unit) == 0)
			return known[i].is;
	return (struct meaning){ N_CALL_VALUES, 0 };
}

static bool is_ours(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_n_types(p); i++)
		if (meaning_of(profile_type(p, i)).value != N_CALL_VALUES)
			return true;
	return false;
}

/* "redis-server (pid 5099)"; what has no such label: 0. */
static string_id named(struct dict *d, const char *name, const char *what,
		       const struct label *number)
{
	char buf[160];

	if (!number)
		return name ? dict_string(d, name) : (string_id){ 0 };
	snprintf(buf, sizeof(buf), "%.100s (%s %lld)", name ? name : "?", what,
		 (long long)number->num);
	return dict_string(d, buf);
}

static const char *text_of(const struct dict *d, labels_id labels, const char *key)
{
	const struct label *l = dict_label_find(d, labels, key);

	return l && l->str.ix ? dict_str(d, l->str) : NULL;
}

/* Where a sample's frames begin. UINT32_MAX: no memory. */
static uint32_t place_of(struct call_tree *t, struct dict *d, labels_id labels)
{
	const struct label *pid = dict_label_find(d, labels, "pid"),
			   *tid = dict_label_find(d, labels, "tid");
	const char *container = text_of(d, labels, "container"), *comm = text_of(d, labels, "comm");
	const char *thread = text_of(d, labels, "thread");
	const struct {
		enum call_kind kind;
		string_id name;
	} above[] = {
		{ CALL_CONTAINER, container ? dict_string(d, container) : (string_id){ 0 } },
		{ CALL_PROCESS, named(d, comm, "pid", pid) },
		/* What lives was allocated by a thread that may be gone: it is of the process. */
		{ CALL_THREAD, tid   ? named(d, thread ? thread : comm, "tid", tid)
			       : pid ? dict_string(d, "of any thread")
				     : (string_id){ 0 } },
	};
	uint32_t at = 0;

	for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++) {
		if (!above[i].name.ix)
			continue;
		at = child(t, d, at, above[i].name, "", above[i].kind, FRAME_PROCESS);
		if (!at)
			return UINT32_MAX;
	}
	return at;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int add_sample(struct call_tree *t, struct dict *d, const struct profile_sample *s,
		      const struct meaning *is, uint32_t n_types)
{
	uint32_t at;

	if (frame_path_set(&t->path, d, s->stack) < 0)
		return -ENOMEM;
	at = place_of(t, d, s->labels);
	for (uint32_t i = 0; at != UINT32_MAX && i < t->path.n; i++) {
		const struct frame *f = &t->path.frames[i];

		at = child(t, d, at, f->name, f->module, CALL_FRAME, f->kind);
		if (!at)
			return -ENOMEM;
	}
	if (at == UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_types; i++) {
		enum call_value v = is[i].value;
		int64_t value = is[i].sign * s->values[i];

		if (v == N_CALL_VALUES || !value)
			continue;
		t->nodes[at].self[v] = add_saturating(t->nodes[at].self[v], value);
		for (uint32_t up = at;; up = t->nodes[up].parent) {
			t->nodes[up].total[v] = add_saturating(t->nodes[up].total[v], value);
			if (!up)
				break;
		}
	}
	return 0;
}

int call_tree_add(struct call_tree *t, const struct profile *p, unsigned without)
{
	struct meaning is[PROFILE_MAX_TYPES];
	uint32_t n = profile_n_types(p);
	struct dict *d = profile_dict(p);
	int r = 0;

	for (uint32_t i = 0; i < n; i++) {
		is[i] = meaning_of(profile_type(p, i));
		if (is[i].value != N_CALL_VALUES && (without & CALL_BIT(is[i].value)))
			is[i].value = N_CALL_VALUES;
		if (is[i].value != N_CALL_VALUES)
			t->has[is[i].value] = true;
	}
	if (!is_ours(p)) {
		uint32_t shown = profile_get_meta(p)->default_type;

		is[shown] = (struct meaning){ CALL_OTHER, 1 };
		t->has[CALL_OTHER] = true;
		snprintf(t->other_name, sizeof(t->other_name), "%s", profile_type(p, shown)->name);
		snprintf(t->other_unit, sizeof(t->other_unit), "%s", profile_type(p, shown)->unit);
	}
	for (uint32_t i = 0; r == 0 && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		r = add_sample(t, d, &s, is, n);
	}
	return r == 0 && dict_oom(d) ? -ENOMEM : r;
}

void call_tree_zero(struct call_tree *t, enum call_value value)
{
	for (uint32_t i = 0; i < t->n; i++)
		t->nodes[i].self[value] = t->nodes[i].total[value] = 0;
}

/* --- folding --- */

bool call_node_empty(const struct call_node *n)
{
	for (int i = 0; i < N_CALL_VALUES; i++)
		if (n->total[i])
			return false;
	return true;
}

void call_tree_open(struct call_tree *t, uint32_t node)
{
	while (node) {
		uint32_t only = 0, n = 0;

		t->nodes[node].open = true;
		for (uint32_t c = t->nodes[node].first_child; c; c = t->nodes[c].next_sibling)
			if (!call_node_empty(&t->nodes[c])) {
				only = c;
				n++;
			}
		node = n == 1 ? only : 0;
	}
}

void call_tree_open_largest(struct call_tree *t, uint32_t node, enum call_value by)
{
	for (;;) {
		uint32_t largest = 0;

		t->nodes[node].open = true;
		for (uint32_t c = t->nodes[node].first_child; c; c = t->nodes[c].next_sibling)
			if (t->nodes[c].total[by] > (largest ? t->nodes[largest].total[by] : 0))
				largest = c;
		if (!largest)
			return;
		node = largest;
	}
}
