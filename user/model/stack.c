#include "base/grow.h"
#include "model/tables.h"

/* --- the tree --- */

/* A node that goes on from the last one, or begins a run. */
static int add_node(struct stack_tree *t, uint32_t frame, bool begins)
{
	if (!GROW(t->frames, t->begins.n, t->cap) || rank_bits_add(&t->begins, begins) < 0)
		return -1;
	t->frames[t->begins.n - 1] = frame;
	return 0;
}

/* The run that node `ix` belongs to. */
static const struct stack_run *run_of(const struct stack_tree *t, uint32_t ix)
{
	return &t->runs[rank_bits_before(&t->begins, ix) + rank_bits_get(&t->begins, ix) - 1];
}

static uint32_t depth_of(const struct stack_tree *t, uint32_t ix)
{
	const struct stack_run *run = run_of(t, ix);

	return run->depth + (ix - run->first);
}

static int add_run(struct stack_tree *t, uint32_t parent, uint32_t frame)
{
	uint32_t depth = t->n_runs ? depth_of(t, parent) + 1 : 0;

	if (!GROW(t->runs, t->n_runs, t->cap_runs) || add_node(t, frame, true) < 0)
		return -1;
	t->runs[t->n_runs++] = (struct stack_run){ t->begins.n - 1, parent, depth };
	return 0;
}

int stack_tree_init(struct stack_tree *t)
{
	return add_run(t, 0, 0);
}

void stack_tree_fini(struct stack_tree *t)
{
	free(t->frames);
	rank_bits_free(&t->begins);
	free(t->runs);
	id_index_free(&t->by_frame);
}

/* --- stacks --- */

/* A child of `parent` that does not follow it. */
static uint32_t push_elsewhere(struct dict *d, uint32_t parent, uint32_t frame)
{
	struct stack_tree *t = &d->stacks;
	const uint32_t key[2] = { parent, frame };
	uint32_t hash = hash_bytes(key, sizeof(key)), run;
	struct id_at at = id_index_begin(&t->by_frame, hash);

	while (id_index_next(&at, &run))
		if (t->runs[run].parent == parent && t->frames[t->runs[run].first] == frame)
			return t->runs[run].first;
	if (add_run(t, parent, frame) < 0) {
		d->oom = true;
		return 0;
	}
	if (id_index_add(&t->by_frame, hash, t->n_runs - 1) < 0) {
		t->n_runs--;
		rank_bits_drop(&t->begins);
		d->oom = true;
		return 0;
	}
	return t->begins.n - 1;
}

stack_id dict_stack_push(struct dict *d, stack_id parent, location_id frame)
{
	struct stack_tree *t = &d->stacks;
	uint32_t next = parent.ix + 1;

	if (next < t->begins.n) {
		if (!rank_bits_get(&t->begins, next) && t->frames[next] == frame.ix)
			return (stack_id){ next };
	} else {
		if (add_node(t, frame.ix, false) == 0)
			return (stack_id){ next };
		d->oom = true;
		return (stack_id){ 0 };
	}
	return (stack_id){ push_elsewhere(d, parent.ix, frame.ix) };
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
	return (location_id){ d->stacks.frames[s.ix] };
}

stack_id dict_stack_parent(const struct dict *d, stack_id s)
{
	const struct stack_tree *t = &d->stacks;

	if (!rank_bits_get(&t->begins, s.ix))
		return (stack_id){ s.ix - 1 };
	return (stack_id){ run_of(t, s.ix)->parent };
}

uint32_t dict_stack_depth(const struct dict *d, stack_id s)
{
	return depth_of(&d->stacks, s.ix);
}

uint32_t dict_stack_count(const struct dict *d)
{
	return d->stacks.begins.n;
}
