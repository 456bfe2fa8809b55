#include "model/stack_children.h"

#include "model/tables.h"

/* Runs by their parent: those of the k-th stack that has some are others[first[k] … first[k + 1]). */
struct stack_children {
	const struct stack_tree *tree;
	struct rank_bits is_parent;
	uint32_t *first;
	stack_id *others;
};

struct child {
	uint32_t parent, node;
};

/* Stable, 11 bits at a time: runs of one parent stay in the order of their numbers. */
static void sort(struct child *a, struct child *room, uint32_t n, uint32_t most)
{
	enum { BITS = 11, KEYS = 1 << BITS };
	struct child *to = room;

	for (unsigned shift = 0; shift < 32 && most >> shift; shift += BITS) {
		uint32_t at[KEYS + 1] = { 0 };
		struct child *swap = a;

		for (uint32_t i = 0; i < n; i++)
			at[(a[i].parent >> shift & (KEYS - 1)) + 1]++;
		for (uint32_t i = 1; i < KEYS; i++)
			at[i] += at[i - 1];
		for (uint32_t i = 0; i < n; i++)
			to[at[a[i].parent >> shift & (KEYS - 1)]++] = a[i];
		a = to;
		to = swap;
	}
	if (a == room)
		memcpy(to, a, n * sizeof(*a));
}

static int fill(struct stack_children *c, const struct child *sorted, uint32_t n)
{
	uint32_t n_parents = 0, k = 0;

	for (uint32_t i = 0; i < n; i++) {
		n_parents += !i || sorted[i].parent != sorted[i - 1].parent;
		c->others[i].ix = sorted[i].node;
	}
	c->first = calloc(n_parents + 1ul, sizeof(*c->first));
	if (!c->first)
		return -1;
	for (uint32_t node = 0, i = 0; node < c->tree->begins.n; node++) {
		bool has = i < n && sorted[i].parent == node;

		if (rank_bits_add(&c->is_parent, has) < 0)
			return -1;
		if (has)
			c->first[k++] = i;
		while (i < n && sorted[i].parent == node)
			i++;
	}
	c->first[k] = n;
	return 0;
}

struct stack_children *stack_children_new(const struct dict *d)
{
	_cleanup_(stack_children_freep) struct stack_children *c = calloc(1, sizeof(*c));
	_cleanup_(freep) struct child *children = NULL;
	const struct stack_tree *t = &d->stacks;
	uint32_t n = t->n_runs - 1; /* the first is the root's own */

	if (!c)
		return NULL;
	c->tree = t;
	c->others = calloc(n + 1ul, sizeof(*c->others));
	children = calloc(n + 1ul, 2 * sizeof(*children));
	if (!c->others || !children)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		children[i] = (struct child){ t->runs[i + 1].parent, t->runs[i + 1].first };
	sort(children, children + n, n, t->begins.n);
	return fill(c, children, n) < 0 ? NULL : TAKE_PTR(c);
}

void stack_children_free(struct stack_children *c)
{
	if (!c)
		return;
	rank_bits_free(&c->is_parent);
	free(c->first);
	free(c->others);
	free(c);
}

uint32_t stack_children_of(const struct stack_children *c, stack_id s, stack_id *ret_next,
			   const stack_id **ret_others)
{
	uint32_t next = s.ix + 1, k;

	ret_next->ix = next < c->is_parent.n && !rank_bits_get(&c->tree->begins, next) ? next : 0;
	if (!rank_bits_get(&c->is_parent, s.ix)) {
		*ret_others = NULL;
		return 0;
	}
	k = rank_bits_before(&c->is_parent, s.ix);
	*ret_others = c->others + c->first[k];
	return c->first[k + 1] - c->first[k];
}
