#include "model/tables.h"

static struct stack_node *node_at(const struct dict *d, uint32_t ix)
{
	return chunks_at(&d->nodes, ix);
}

static uint32_t add_node(struct dict *d, uint32_t parent, uint32_t frame)
{
	struct stack_node *node = dict_got(d, chunks_add(&d->nodes));

	if (!node)
		return 0;
	node->parent = parent;
	node->frame = frame;
	node->depth = node_at(d, parent)->depth + 1;
	return d->nodes.n - 1;
}

/* A child of `key->parent` that is not its first. */
static uint32_t push_sibling(struct dict *d, const struct sibling_key *key)
{
	struct stack_sibling *sibling;
	unsigned hash;

	HASH_VALUE(key, sizeof(*key), hash);
	HASH_FIND_BYHASHVALUE(hh, d->by_frame, key, sizeof(*key), hash, sibling);
	if (sibling)
		return sibling->ix;
	sibling = dict_got(d, chunks_add(&d->siblings));
	if (!sibling)
		return 0;
	sibling->key = *key;
	sibling->ix = add_node(d, key->parent, key->frame);
	if (!sibling->ix) {
		chunks_drop(&d->siblings);
		return 0;
	}
	HASH_ADD_BYHASHVALUE(hh, d->by_frame, key, sizeof(*key), hash, sibling);
	if (!hash_added(sibling)) {
		chunks_drop(&d->nodes);
		chunks_drop(&d->siblings);
		d->oom = true;
		return 0;
	}
	return sibling->ix;
}

stack_id dict_stack_push(struct dict *d, stack_id parent, location_id frame)
{
	struct stack_node *node = node_at(d, parent.ix);
	struct sibling_key key = { .parent = parent.ix, .frame = frame.ix };

	if (!node->first_child) {
		node->first_child = add_node(d, parent.ix, frame.ix);
		return (stack_id){ node->first_child };
	}
	if (node_at(d, node->first_child)->frame == frame.ix)
		return (stack_id){ node->first_child };
	return (stack_id){ push_sibling(d, &key) };
}

stack_id dict_stack(struct dict *d, const location_id *frames, uint32_t n)
{
	stack_id s = { 0 };

	while (n) {
		s = dict_stack_push(d, s, frames[--n]);
		if (!s.ix)
			break; /* out of memory: half a stack would be a lie */
	}
	return s;
}

location_id dict_stack_leaf(const struct dict *d, stack_id s)
{
	return (location_id){ node_at(d, s.ix)->frame };
}

stack_id dict_stack_parent(const struct dict *d, stack_id s)
{
	return (stack_id){ node_at(d, s.ix)->parent };
}

uint32_t dict_stack_depth(const struct dict *d, stack_id s)
{
	return node_at(d, s.ix)->depth;
}
