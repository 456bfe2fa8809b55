/*
 * The part of a tree that is wide enough to be looked at, of profiles with more stacks than memory has room for as nodes:
 * from the root, all stacks that have a path of names in common are one set, which is split by what they call. Only sets
 * that are large enough become nodes; what is below the others is counted.
 */
#include "analyse/frame_tree_parts.h"
#include "base/grow.h"
#include "base/saturate.h"
#include "model/stack_children.h"

#include <errno.h>
#include <string.h>

/* A stack of the dict, up to one of the frames of its last location. */
struct place {
	uint64_t name; /* and kind */
	uint32_t stack, line;
};

struct places {
	struct place *at;
	size_t n, cap;
};

/* Places of the same path of names: their node, or none where they are only counted. */
struct set {
	uint32_t node, n;
};

struct wide {
	struct builder *b;
	struct dict *d;
	int64_t least;
	struct stack_children *children;
	int64_t *totals;    /* of each stack, below the root at hand */
	struct places open; /* of the sets, one behind the other */
	struct set *sets;   /* still to be split, the last first */
	size_t n_sets, cap_sets;
	struct places called; /* by those of the set at hand */
	uint32_t cap_left_out;
};

static void wide_fini(struct wide *w)
{
	stack_children_free(w->children);
	free(w->totals);
	free(w->open.at);
	free(w->sets);
	free(w->called.at);
}

static int places_add(struct places *p, const struct place *place)
{
	if (!GROW(p->at, p->n, p->cap))
		return -ENOMEM;
	p->at[p->n++] = *place;
	return 0;
}

static int sets_add(struct wide *w, uint32_t node, const struct place *places, uint32_t n)
{
	if (!GROW(w->sets, w->n_sets, w->cap_sets))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (places_add(&w->open, &places[i]) < 0)
			return -ENOMEM;
	w->sets[w->n_sets++] = (struct set){ node, n };
	return 0;
}

/* --- what a place calls --- */

static int add_called(struct wide *w, uint32_t stack, uint32_t line)
{
	uint32_t n;
	location_id leaf = dict_stack_leaf(w->d, (stack_id){ stack });
	const struct frame *frames = frame_table_get(&w->b->table, leaf, &n);
	struct place place = { .stack = stack, .line = line };

	if (!frames)
		return -ENOMEM;
	place.name = (uint64_t)frames[line].name.ix << 8 | frames[line].kind;
	return places_add(&w->called, &place);
}

/* The frames that come after `place`. */
static int find_called(struct wide *w, const struct place *place)
{
	const stack_id *others;
	uint32_t n, n_frames;
	stack_id next;

	if (place->stack) {
		location_id leaf = dict_stack_leaf(w->d, (stack_id){ place->stack });

		if (!frame_table_get(&w->b->table, leaf, &n_frames))
			return -ENOMEM;
		if (place->line + 1 < n_frames)
			return add_called(w, place->stack, place->line + 1);
	}
	n = stack_children_of(w->children, (stack_id){ place->stack }, &next, &others);
	if (next.ix && w->totals[next.ix] && add_called(w, next.ix, 0) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (w->totals[others[i].ix] && add_called(w, others[i].ix, 0) < 0)
			return -ENOMEM;
	return 0;
}

/* Of one name those first that came first. */
static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/*
 * One place that is only counted, down to where there is more than one way on: most of what is left out is the ends of
 * stacks that nothing shares.
 */
static int count_down(struct wide *w, struct place *place)
{
	for (;;) {
		const stack_id *others;
		uint32_t n, n_frames, n_called = 0;
		stack_id next, only = { 0 };

		if (!frame_table_get(&w->b->table,
				     dict_stack_leaf(w->d, (stack_id){ place->stack }), &n_frames))
			return -ENOMEM;
		w->b->tree.n_left_out += n_frames - 1 - place->line;
		place->line = n_frames - 1;
		n = stack_children_of(w->children, (stack_id){ place->stack }, &next, &others);
		if (next.ix && w->totals[next.ix]) {
			only = next;
			n_called++;
		}
		for (uint32_t i = 0; i < n && n_called < 2; i++) {
			if (w->totals[others[i].ix]) {
				only = others[i];
				n_called++;
			}
		}
		if (n_called > 1)
			return 1;
		if (!n_called)
			return 0;
		w->b->tree.n_left_out++;
		*place = (struct place){ .stack = only.ix };
	}
}

/* --- splitting --- */

static int add_left_out_room(struct wide *w)
{
	uint32_t cap = w->b->cap;
	int64_t *left_out;

	if (cap == w->cap_left_out)
		return 0;
	left_out = reallocarray(w->b->left_out, cap, sizeof(*left_out));
	if (!left_out)
		return -ENOMEM;
	memset(left_out + w->cap_left_out, 0, (cap - w->cap_left_out) * sizeof(*left_out));
	w->b->left_out = left_out;
	w->cap_left_out = cap;
	return 0;
}

/* Places of one name that the set of `node` calls: a node, or left out. */
static int add_group(struct wide *w, uint32_t node, const struct place *places, uint32_t n,
		     int64_t total)
{
	struct builder *b = w->b;
	const struct frame *frames;
	uint32_t child, n_frames;
	int r;

	if (node == NO_NODE || total < w->least) {
		if (node != NO_NODE)
			b->left_out[node] = add_saturating(b->left_out[node], total);
		b->tree.n_left_out++;
		return sets_add(w, NO_NODE, places, n);
	}
	frames = frame_table_get(&b->table, dict_stack_leaf(w->d, (stack_id){ places->stack }),
				 &n_frames);
	if (!frames)
		return -ENOMEM;
	r = builder_add_node(b, node, &frames[places->line], false, &child);
	if (r < 0 || (r = add_left_out_room(w)) < 0)
		return r;
	b->nodes[child].self = total; /* until its children are known */
	return sets_add(w, child, places, n);
}

static int split(struct wide *w, struct set set)
{
	struct place *places = w->open.at + w->open.n - set.n;
	struct builder *b = w->b;
	int r = 0;

	if (set.node == NO_NODE && set.n == 1) {
		r = count_down(w, places);
		if (r <= 0) {
			w->open.n--;
			return r;
		}
	}
	w->called.n = 0;
	for (uint32_t i = 0; i < set.n; i++)
		if (find_called(w, &places[i]) < 0)
			return -ENOMEM;
	w->open.n -= set.n;
	if (w->called.n > 1)
		qsort(w->called.at, w->called.n, sizeof(*w->called.at), compare_places);
	for (size_t i = 0, end; i < w->called.n && r >= 0; i = end) {
		int64_t total = 0;

		for (end = i; end < w->called.n && w->called.at[end].name == w->called.at[i].name;
		     end++)
			total = add_saturating(total, w->totals[w->called.at[end].stack]);
		if (set.node != NO_NODE) /* sums that saturate do not add up */
			b->nodes[set.node].self -=
				total < b->nodes[set.node].self ? total : b->nodes[set.node].self;
		r = add_group(w, set.node, w->called.at + i, (uint32_t)(end - i), total);
	}
	return r;
}

/* --- the samples of each root --- */

struct rooted {
	uint32_t root, sample;
};

/* In the order of their roots; those without a value are not in it. */
static int find_roots(struct builder *b, const struct profile *p,
		      const struct frame_tree_opts *opts, struct rooted *samples, uint32_t *ret_n)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		int r;

		b->tree.n_negative += s.values[opts->type] < 0;
		if (s.values[opts->type] <= 0)
			continue;
		samples[n].sample = i;
		r = builder_root(b, opts, s.labels, &samples[n++].root);
		if (r < 0)
			return r;
	}
	b->tree.n_samples += n;
	*ret_n = n;
	return 0;
}

static int compare_roots(const void *a, const void *b)
{
	const struct rooted *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	return x->sample < y->sample ? -1 : 1;
}

/* All stacks of samples get their totals; or have none again. */
static void add_totals(struct wide *w, const struct profile *p, uint32_t type,
		       const struct rooted *samples, uint32_t n, bool clear)
{
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, samples[i].sample);

		for (stack_id at = s.stack;; at = dict_stack_parent(w->d, at)) {
			int64_t *total = &w->totals[at.ix];

			*total = clear ? 0 : add_saturating(*total, s.values[type]);
			if (!at.ix)
				break;
		}
	}
}

static int add_root(struct wide *w, const struct profile *p, uint32_t type,
		    const struct rooted *samples, uint32_t n)
{
	struct place all = { 0 };
	int r;

	add_totals(w, p, type, samples, n, false);
	w->b->nodes[samples->root].self =
		add_saturating(w->b->nodes[samples->root].self, w->totals[0]);
	r = sets_add(w, samples->root, &all, 1);
	while (r >= 0 && w->n_sets)
		r = split(w, w->sets[--w->n_sets]);
	add_totals(w, p, type, samples, n, true);
	return r < 0 ? r : 0;
}

int builder_add_wide(struct builder *b, const struct profile *p, const struct frame_tree_opts *opts)
{
	_cleanup_(wide_fini) struct wide w = { .b = b, .d = b->table.d, .least = opts->least };
	_cleanup_(freep) struct rooted *samples =
		calloc(profile_n_samples(p) + 1ul, sizeof(*samples));
	uint32_t n = 0;
	int r;

	w.children = stack_children_new(w.d);
	w.totals = calloc(dict_stack_count(w.d), sizeof(*w.totals));
	if (!samples || !w.children || !w.totals)
		return -ENOMEM;
	r = find_roots(b, p, opts, samples, &n);
	if (r == 0)
		r = add_left_out_room(&w);
	for (uint32_t i = 1; i < n; i++) {
		if (samples[i].root < samples[i - 1].root) {
			qsort(samples, n, sizeof(*samples), compare_roots);
			break;
		}
	}
	for (uint32_t i = 0, end; i < n && r == 0; i = end) {
		for (end = i; end < n && samples[end].root == samples[i].root; end++)
			;
		r = add_root(&w, p, opts->type, samples + i, end - i);
	}
	return r;
}
