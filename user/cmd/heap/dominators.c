/* memscope heap dominators: which objects retain most. */
#include "heap/graph/dominators.h"
#include "cmd/heap/view.h"

#include <errno.h>

static const struct answer_column columns[] = {
	{ "retained", "retained", ANSWER_BYTES, 0 },
	{ "bytes", "itself", ANSWER_BYTES, 0 },
	{ "address", "address", ANSWER_ADDRESS, 0 },
	{ "type", "type", ANSWER_NAME, 0 },
	{ 0 },
};

/* An object that no other one dominates, and what would be freed with it. */
struct keeper {
	uint32_t node;
	uint64_t retained;
};

static int by_retained(const void *a, const void *b)
{
	const struct keeper *x = a, *y = b;

	if (x->retained != y->retained)
		return x->retained < y->retained ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static void put_keepers(const struct heap_view *v, const struct keeper *keepers, uint32_t n)
{
	answer_table(v->out, "objects", columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++) {
		answer_cell(v->out, keepers[i].retained);
		answer_cell(v->out, snapshot_bytes(v->s, keepers[i].node));
		answer_cell(v->out, v->s->blocks.rows[keepers[i].node].addr);
		answer_text(v->out, heap_type_name(v, keepers[i].node));
	}
}

int heap_dominators(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	_cleanup_(freep) uint64_t *sizes = calloc(s->blocks.n + 1, sizeof(*sizes));
	_cleanup_(freep) struct keeper *keepers = calloc(s->blocks.n + 1, sizeof(*keepers));
	_cleanup_(freep) uint64_t *retained = NULL;
	uint32_t n = 0;

	(void)what;
	for (uint32_t i = 0; sizes && i < s->blocks.n; i++)
		sizes[i] = snapshot_bytes(s, i);
	if (sizes && keepers &&
	    graph_dominators_find(s->graph, s->reverse, s->graph_roots, s->n_roots, &d) == 0)
		retained = graph_retained(&d, sizes);
	if (!retained)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->blocks.n; i++)
		if (d.of[i] == d.n)
			keepers[n++] = (struct keeper){ i, retained[i] };
	qsort(keepers, n, sizeof(*keepers), by_retained);
	put_keepers(v, keepers, n);
	return 0;
}
