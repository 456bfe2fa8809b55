/* memscope heap dominators: which objects retain most, as a tree. */
#include "base/large.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/graph/dominator_tree.h"
#include "heap/snapshot/owners.h"

#include <errno.h>

/* Rows that retain less than one part in so many of the heap are left out. */
enum { LEAST_PART = 1000 };

static const struct answer_column columns[] = {
	{ "retained", "retained", ANSWER_BYTES, 0 }, { "share", "share", ANSWER_PERCENT, 8 },
	{ "bytes", "itself", ANSWER_BYTES, 0 },      { "address", "address", ANSWER_ADDRESS, 16 },
	{ "type", "type", ANSWER_TREE, 0 },          { 0 },
};

static void put_row(const struct heap_view *v, const struct dominator_row *row, uint64_t retained,
		    uint64_t all)
{
	_cleanup_(strbuf_free) struct strbuf name = { 0 };

	if (row->skipped)
		strbuf_printf(&name, "… %s more … ", unit_count(row->skipped).s);
	strbuf_puts(&name, heap_type_name(v, row->node));
	answer_cell(v->out, retained);
	answer_real(v->out, all ? 100 * (double)retained / (double)all : 0);
	answer_cell(v->out, snapshot_bytes(v->s, row->node));
	answer_cell(v->out, v->s->blocks.rows[row->node].addr);
	answer_tree(v->out, row->depth, name.s ? name.s : "");
}

int heap_dominators(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	_cleanup_(freep) struct dominator_row *rows = NULL;
	_cleanup_(large_freep) uint64_t *retained = NULL;
	uint64_t all = 0;
	uint32_t n = 0;

	(void)what;
	for (uint32_t i = 0; i < s->blocks.n; i++)
		all += snapshot_bytes(s, i);
	if (owners_retained(s, &d, &retained) < 0 ||
	    dominator_tree_rows(&d, retained, all / LEAST_PART, v->args->top, &rows, &n) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	answer_table(v->out, "objects", columns);
	for (uint32_t i = 0; i < n; i++)
		put_row(v, &rows[i], retained[rows[i].node], all);
	return 0;
}
