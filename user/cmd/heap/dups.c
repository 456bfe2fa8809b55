/* memscope heap dups: blocks of equal contents, and what sharing them would save. */
#include "heap/snapshot/dups.h"
#include "base/units.h"
#include "cmd/heap/view.h"

#include <errno.h>

static const struct answer_column columns[] = {
	{ "saved", "saved", ANSWER_BYTES, 0 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "address", "one of them", ANSWER_ADDRESS, 0 },
	{ "what", "what", ANSWER_NAME, 14 },
	{ "type", "type", ANSWER_NAME, 0 },
	{ 0 },
}, with_values[] = {
	{ "saved", "saved", ANSWER_BYTES, 0 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "address", "one of them", ANSWER_ADDRESS, 0 },
	{ "what", "what", ANSWER_NAME, 14 },
	{ "type", "type", ANSWER_NAME, 24 },
	{ "value", "value", ANSWER_NAME, 0 },
	{ 0 },
};

static void put_rows(const struct heap_view *v, const struct dups *d)
{
	answer_table(v->out, "dups", v->args->contents ? with_values : columns);
	for (uint64_t i = 0; i < d->n && i < v->args->top; i++) {
		const struct dup_group *g = &d->rows[i];

		answer_cell(v->out, g->saved);
		answer_cell(v->out, g->blocks);
		answer_cell(v->out, g->bytes);
		answer_cell(v->out, v->s->blocks.rows[g->node].addr);
		answer_text(v->out, g->text    ? "equal text"
				    : g->zeros ? "all zeros"
					       : "equal bytes");
		answer_text(v->out, heap_type_name(v, g->node));
		if (v->args->contents)
			heap_put_value(v, g->node);
	}
	if (d->n > v->args->top)
		answer_say(v->out, "%s more", unit_count((int64_t)(d->n - v->args->top)).s);
}

int heap_dups(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(dups_fini) struct dups d = { 0 };

	(void)what;
	if (dups_find(v->s, &d) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	/* What --contents words leaves out would be equal zeros. */
	if (!d.looked_at || (v->s->stored && v->s->facts.contents != FILE_CONTENTS_ALL))
		return err_set(
			e, -ENODATA,
			"the snapshot has no contents to compare: one that is written with --contents all has");
	answer_say(v->out, "%s objects have the same contents as another: %s could be saved",
		   unit_count((int64_t)d.blocks).s, unit_bytes((int64_t)d.saved).s);
	answer_figure(v->out, "objects", d.blocks);
	answer_figure(v->out, "saved", d.saved);
	put_rows(v, &d);
	return 0;
}
