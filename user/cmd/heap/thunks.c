/* memscope heap thunks: work that a Haskell program has put off, by the code that would do it, and what that keeps alive. */
#include "base/large.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/graph/group_retained.h"
#include "heap/snapshot/owners.h"

#include <errno.h>
#include <string.h>

static const struct answer_column columns[] = {
	{ "retained", "retained", ANSWER_BYTES, 0 }, { "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "objects", "objects", ANSWER_COUNT, 0 },   { "kind", "kind", ANSWER_NAME, 15 },
	{ "code", "code", ANSWER_NAME, 0 },          { 0 },
};

struct thunk_row {
	const struct type *type;
	uint64_t retained;
};

static int by_retained(const void *a, const void *b)
{
	const struct thunk_row *x = a, *y = b;

	if (x->retained != y->retained)
		return x->retained < y->retained ? 1 : -1;
	return (x->type > y->type) - (x->type < y->type);
}

/* An application that is not known to be cheap is put off like any other, an interpreter's among them. */
static bool is_thunk(const struct type *t)
{
	static const char *const kinds[] = { "THUNK", "AP", "AP_STACK" };

	for (size_t i = 0; t->by == TYPE_GHC && i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t len = strlen(kinds[i]);

		if (strncmp(t->name, kinds[i], len) == 0 &&
		    (t->name[len] == '\0' || t->name[len] == ' ' || (!i && t->name[len] == '_')))
			return true;
	}
	return false;
}

/* What each type retains. */
static uint64_t *retained_by_type(const struct snapshot *s)
{
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	_cleanup_(large_freep) uint64_t *retained = NULL;

	if (owners_retained(s, &d, &retained) < 0)
		return NULL;
	return graph_group_retained(&d, retained, s->types.of, s->types.n);
}

static void put_row(const struct heap_view *v, const struct thunk_row *row)
{
	const char *space = strchr(row->type->name, ' ');
	char kind[32];

	snprintf(kind, sizeof(kind), "%.*s",
		 (int)(space ? space - row->type->name : (int)sizeof(kind) - 1), row->type->name);
	answer_cell(v->out, row->retained);
	answer_cell(v->out, row->type->bytes);
	answer_cell(v->out, row->type->blocks);
	answer_text(v->out, kind);
	answer_text(v->out, space ? space + 1 : "");
}

int heap_thunks(const struct heap_view *v, const char *what, struct err *e)
{
	const struct types *t = &v->s->types;
	_cleanup_(freep) struct thunk_row *rows = calloc(t->n + 1ul, sizeof(*rows));
	_cleanup_(freep) uint64_t *retained = rows ? retained_by_type(v->s) : NULL;
	uint64_t objects = 0, bytes = 0;
	uint32_t n = 0;

	(void)what;
	if (!retained)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < t->n; i++)
		if (is_thunk(&t->type[i])) {
			rows[n++] = (struct thunk_row){ &t->type[i], retained[i] };
			objects += t->type[i].blocks;
			bytes += t->type[i].bytes;
		}
	if (!n)
		return err_set(
			e, -ENOENT,
			"the heap has no thunks: it is no program of GHC's, or all is evaluated");
	qsort(rows, n, sizeof(*rows), by_retained);
	answer_say(v->out, "%s thunks, %s, by what would be freed with them",
		   unit_count((int64_t)objects).s, unit_bytes((int64_t)bytes).s);
	answer_figure(v->out, "thunks", objects);
	answer_figure(v->out, "thunk_bytes", bytes);
	answer_table(v->out, "code", columns);
	for (uint32_t i = 0; i < n && i < v->args->top; i++)
		put_row(v, &rows[i]);
	return 0;
}
