/* memscope heap refcounts: objects of CPython that C code holds. */
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/python/python_heap.h"

#include <errno.h>

static const struct answer_column columns[] = {
	{ "references", "references", ANSWER_COUNT, 0 },
	{ "held", "held", ANSWER_COUNT, 0 },
	{ "objects", "of objects", ANSWER_COUNT, 0 },
	{ "type", "type", ANSWER_NAME, 0 },
	{ 0 },
};

int heap_refcounts(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(python_refcounts_fini) struct python_refcounts found = { 0 };
	int r = python_refcounts_find(v->s, &found);

	(void)what;
	if (r < 0)
		return err_set(
			e, r,
			r == -ENOMEM
				? "out of memory"
				: "there is no CPython 3.8 to 3.14 with a global lock whose objects can be read; ask the process itself, not a file");
	answer_say(
		v->out,
		"%s objects of CPython have as many references as were found in the heap, in variables and in running functions; %s have more, held by C code, %s fewer; %s are immortal",
		unit_count((int64_t)found.equal).s, unit_count((int64_t)found.more).s,
		unit_count((int64_t)found.less).s, unit_count((int64_t)found.immortal).s);
	answer_figure(v->out, "equal", found.equal);
	answer_figure(v->out, "more", found.more);
	answer_figure(v->out, "fewer", found.less);
	answer_figure(v->out, "immortal", found.immortal);
	if (found.n)
		answer_table(v->out, "held", columns);
	for (uint32_t i = 0; i < found.n && i < v->args->top; i++) {
		answer_cell(v->out, found.rows[i].references);
		answer_cell(v->out, found.rows[i].held);
		answer_cell(v->out, found.rows[i].all);
		answer_text(v->out, v->s->types.type[found.rows[i].type].name);
	}
	return 0;
}
