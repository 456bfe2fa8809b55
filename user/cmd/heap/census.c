/* memscope heap census: what the heap consists of. */
#include "cmd/heap/view.h"

#include <errno.h>

static const struct answer_column columns[] = {
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "type", "type", ANSWER_NAME, 0 },
	{ 0 },
};

static int by_bytes(const void *a, const void *b)
{
	const struct type *x = *(const struct type *const *)a, *y = *(const struct type *const *)b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : (x > y) - (x < y);
}

int heap_census(const struct heap_view *v, const char *what, struct err *e)
{
	const struct types *t = &v->s->types;
	_cleanup_(freep) const struct type **rows = calloc(t->n + 1ul, sizeof(*rows));

	(void)what;
	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < t->n; i++)
		rows[i] = &t->type[i];
	qsort(rows, t->n, sizeof(*rows), by_bytes);
	answer_table(v->out, "types", columns);
	for (uint32_t i = 0; i < t->n && i < v->args->top; i++) {
		answer_cell(v->out, rows[i]->bytes);
		answer_cell(v->out, rows[i]->blocks);
		answer_text(v->out, rows[i]->name);
	}
	return 0;
}
