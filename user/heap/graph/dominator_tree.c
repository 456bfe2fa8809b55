#include "heap/graph/dominator_tree.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>

#define HANDED_ON 0.9 /* the part of what a node retains that makes the next one its continuation */

/* A row before it has its place: which row it hangs on, and the next one there. */
struct row {
	struct dominator_row row;
	uint64_t retained;
	uint32_t up; /* GRAPH_NONE: none */
};

struct tree {
	const struct graph_dominators *d;
	const uint64_t *retained;
	uint64_t least;
	uint32_t *first,
		*children; /* of node i: children[first[i]] … children[first[i + 1] - 1]; node n: the roots together */
	struct row *
		rows; /* chosen ones, and behind them those that may be: a heap by what they retain */
	uint32_t n_rows, n_heap, room;
	struct row *heap;
	bool oom;
};

/* --- children --- */

static bool list_children(struct tree *t)
{
	uint32_t n = t->d->n;
	uint32_t *at;

	t->first = calloc(n + 2ul, sizeof(*t->first));
	t->children = calloc(t->d->n_reached + 1ul, sizeof(*t->children));
	at = calloc(n + 2ul, sizeof(*at));
	if (!t->first || !t->children || !at) {
		free(at);
		return false;
	}
	for (uint32_t i = 0; i < t->d->n_reached; i++)
		at[t->d->of[t->d->order[i]]]++;
	for (uint32_t i = 0, sum = 0; i <= n; i++) {
		t->first[i] = sum;
		sum += at[i];
		at[i] = t->first[i];
		t->first[i + 1] = sum;
	}
	for (uint32_t i = 0; i < t->d->n_reached; i++)
		t->children[at[t->d->of[t->d->order[i]]]++] = t->d->order[i];
	free(at);
	return true;
}

static uint32_t heaviest(const struct tree *t, uint32_t node)
{
	uint32_t best = GRAPH_NONE;

	for (uint32_t i = t->first[node]; i < t->first[node + 1]; i++)
		if (best == GRAPH_NONE || t->retained[t->children[i]] > t->retained[best])
			best = t->children[i];
	return best;
}

/* --- those that may be rows, the largest on top --- */

static bool is_larger(const struct row *a, const struct row *b)
{
	return a->retained != b->retained ? a->retained > b->retained : a->row.node < b->row.node;
}

static void swap(struct row *a, struct row *b)
{
	struct row c = *a;

	*a = *b;
	*b = c;
}

static void push(struct tree *t, uint32_t node, uint32_t up, uint32_t depth, uint32_t skipped)
{
	uint32_t i = t->n_heap;

	if (t->retained[node] < t->least || t->oom)
		return;
	if (!GROW(t->heap, t->n_heap, t->room)) {
		t->oom = true;
		return;
	}
	t->heap[t->n_heap++] = (struct row){ { node, depth, skipped }, t->retained[node], up };
	for (; i && is_larger(&t->heap[i], &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&t->heap[i], &t->heap[(i - 1) / 2]);
}

static struct row pop(struct tree *t)
{
	struct row top = t->heap[0];

	t->heap[0] = t->heap[--t->n_heap];
	for (uint32_t i = 0, k; (k = 2 * i + 1) < t->n_heap; i = k) {
		if (k + 1 < t->n_heap && is_larger(&t->heap[k + 1], &t->heap[k]))
			k++;
		if (!is_larger(&t->heap[k], &t->heap[i]))
			break;
		swap(&t->heap[k], &t->heap[i]);
	}
	return top;
}

static void push_children(struct tree *t, uint32_t of, uint32_t up, uint32_t depth)
{
	for (uint32_t i = t->first[of]; i < t->first[of + 1]; i++)
		push(t, t->children[i], up, depth, 0);
}

/* What hangs on a row: the end of the chain that it begins, if it does, else its children. */
static void push_below(struct tree *t, const struct row *of, uint32_t up)
{
	uint32_t node = of->row.node, next, steps = 0;

	for (; (next = heaviest(t, node)) != GRAPH_NONE; node = next, steps++)
		if ((double)t->retained[next] < HANDED_ON * (double)t->retained[node] ||
		    t->first[next] == t->first[next + 1])
			break;
	if (steps && !of->row.skipped)
		push(t, node, up, of->row.depth + 1, steps - 1);
	else
		push_children(t, of->row.node, up, of->row.depth + 1);
}

/* --- their order --- */

/* Rows come largest first, so a row's own come behind it: the last ones first make linked lists in the right order. */
static int put_in_order(const struct tree *t, struct dominator_row *out)
{
	uint32_t *below = malloc((t->n_rows + 1ul) * sizeof(*below));
	uint32_t *next = malloc((t->n_rows + 1ul) * sizeof(*next));
	uint32_t top = GRAPH_NONE, n = 0, at;

	if (!below || !next) {
		free(below);
		free(next);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->n_rows; i++)
		below[i] = GRAPH_NONE;
	for (uint32_t i = t->n_rows; i-- > 0;) {
		uint32_t *list = t->rows[i].up == GRAPH_NONE ? &top : &below[t->rows[i].up];

		next[i] = *list;
		*list = i;
	}
	for (at = top; at != GRAPH_NONE;) {
		out[n++] = t->rows[at].row;
		if (below[at] != GRAPH_NONE) {
			at = below[at];
			continue;
		}
		while (at != GRAPH_NONE && next[at] == GRAPH_NONE)
			at = t->rows[at].up;
		if (at != GRAPH_NONE)
			at = next[at];
	}
	free(below);
	free(next);
	return 0;
}

int dominator_tree_rows(const struct graph_dominators *d, const uint64_t *retained, uint64_t least,
			uint32_t max, struct dominator_row **ret_rows, uint32_t *ret_n)
{
	struct tree t = { .d = d, .retained = retained, .least = least };
	struct dominator_row *out = calloc(max + 1ul, sizeof(*out));
	int r = -ENOMEM;

	t.rows = calloc(max + 1ul, sizeof(*t.rows));
	if (out && t.rows && list_children(&t)) {
		push_children(&t, d->n, GRAPH_NONE, 0);
		while (t.n_heap && t.n_rows < max && !t.oom) {
			t.rows[t.n_rows] = pop(&t);
			push_below(&t, &t.rows[t.n_rows], t.n_rows);
			t.n_rows++;
		}
		r = t.oom ? -ENOMEM : put_in_order(&t, out);
	}
	*ret_n = t.n_rows;
	*ret_rows = r == 0 ? TAKE_PTR(out) : NULL;
	free(out);
	free(t.first);
	free(t.children);
	free(t.rows);
	free(t.heap);
	return r;
}
