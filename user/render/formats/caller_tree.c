#include "render/formats/caller_tree.h"

#include "analyse/alloc_frames.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct branch_key {
	struct code_function function;
	uint32_t line, parent;
};

struct branch {
	struct branch_key key;
	uint32_t node;
	UT_hash_handle hh;
};

struct building {
	struct caller_node *nodes;
	uint32_t n, cap;
	struct branch *branches;
};

static void building_fini(struct building *b)
{
	free(b->nodes);
	hash_free(b->branches);
}

/* The node of `place` below `parent`; 0: out of memory. */
static uint32_t node_below(struct building *b, uint32_t parent, const struct code_place *place)
{
	struct branch_key key = { .function = place->function,
				  .line = place->line,
				  .parent = parent };
	struct branch *known = hash_get(b->branches, key, &key);

	if (!known || known->node)
		return known ? known->node : 0;
	if (b->n == b->cap) {
		struct caller_node *grown =
			reallocarray(b->nodes, b->cap * 2ul + 64, sizeof(*grown));

		if (!grown)
			return 0;
		b->nodes = grown;
		b->cap = b->cap * 2 + 64;
	}
	b->nodes[b->n] = (struct caller_node){ .place = *place, .parent = parent };
	return known->node = b->n++;
}

static int add_stack(struct building *b, const struct code_path *path, int64_t value)
{
	uint32_t at = 0;

	for (uint32_t k = path->n;; k--) {
		if (__builtin_add_overflow(b->nodes[at].value, value, &b->nodes[at].value))
			b->nodes[at].value = INT64_MAX;
		if (!k)
			return 0;
		at = node_below(b, at, &path->places[k - 1]);
		if (!at)
			return -ENOMEM;
	}
}

static int smaller_first(const void *a, const void *b, void *ctx)
{
	const struct caller_node *nodes = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (nodes[i].value != nodes[k].value)
		return nodes[i].value < nodes[k].value ? -1 : 1;
	return (i < k) - (i > k);
}

/* Children are put in front of those that are there, so the largest comes last. */
static int link_children(struct building *b)
{
	_cleanup_(freep) uint32_t *order = calloc(b->n + 1ul, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 1; i < b->n; i++)
		order[i - 1] = i;
	qsort_r(order, b->n - 1, sizeof(*order), smaller_first, b->nodes);
	for (uint32_t k = 0; k + 1 < b->n; k++) {
		struct caller_node *node = &b->nodes[order[k]], *parent = &b->nodes[node->parent];

		node->next_sibling = parent->first_child;
		parent->first_child = order[k];
	}
	return 0;
}

int caller_tree_build(const struct profile *p, uint32_t type, struct caller_tree *ret)
{
	_cleanup_(building_fini) struct building b = { .n = 1, .cap = 64 };
	_cleanup_(profile_freep) struct profile *asked = NULL;
	_cleanup_(code_path_fini) struct code_path path = { 0 };
	int r = alloc_frames_left_off(p, &asked);

	b.nodes = calloc(b.cap, sizeof(*b.nodes));
	if (!b.nodes)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < profile_n_samples(asked); i++) {
		struct profile_sample s = profile_sample(asked, i);

		if (s.values[type] <= 0)
			continue;
		r = code_path_set(&path, profile_dict(p), s.stack);
		if (r == 0)
			r = add_stack(&b, &path, s.values[type]);
	}
	if (r == 0)
		r = link_children(&b);
	if (r < 0 || dict_oom(profile_dict(p)))
		return -ENOMEM;
	*ret = (struct caller_tree){ TAKE_PTR(b.nodes), b.n };
	return 0;
}

void caller_tree_free(struct caller_tree *t)
{
	free(t->nodes);
	*t = (struct caller_tree){ 0 };
}
