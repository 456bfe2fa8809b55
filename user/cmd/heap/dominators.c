/* memscope heap dominators: which objects retain most, as a tree. */
#include "base/large.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/graph/dominator_tree.h"
#include "heap/snapshot/chain.h"
#include "heap/snapshot/owners.h"

#include <errno.h>

/* Rows that retain less than one part in so many of the heap are left out. */
enum { LEAST_PART = 1000, CHAIN_STEPS = 8 };

static const struct answer_column columns[] = {
	{ "retained", "retained", ANSWER_BYTES, 0 },
	{ "share", "share", ANSWER_PERCENT, 8 },
	{ "bytes", "itself", ANSWER_BYTES, 0 },
	{ "address", "address", ANSWER_ADDRESS, 16 },
	{ "referrer", "referred to by", ANSWER_NAME, 28 },
	{ "type", "type", ANSWER_TREE, 0 },
	{ 0 },
}, with_sites[] = {
	{ "retained", "retained", ANSWER_BYTES, 0 },
	{ "share", "share", ANSWER_PERCENT, 8 },
	{ "bytes", "itself", ANSWER_BYTES, 0 },
	{ "address", "address", ANSWER_ADDRESS, 16 },
	{ "referrer", "referred to by", ANSWER_NAME, 28 },
	{ "site", "allocated at", ANSWER_NAME, 36 },
	{ "type", "type", ANSWER_TREE, 0 },
	{ 0 },
};

/* A module of CPython: the dict of its variables has no other name. */
static bool is_module(const struct heap_view *v, const struct graph_tree *tree, uint32_t node)
{
	return tree->from[node] == GRAPH_NONE &&
	       v->s->roots[tree->at[node]].kind == SNAPSHOT_ROOT_MODULE;
}

/*
 * What refers to an object that no other one dominates, on its best chain: a field, a key, a variable. A chain's words depend on
 * what is before and behind a reference, so some of it are read.
 */
static void put_referrer(const struct heap_view *v, const struct graph_tree *tree, uint32_t node)
{
	struct chain_step steps[CHAIN_STEPS];
	char text[CHAIN_TEXT_MAX] = "";
	uint32_t n = 0, up = node, at = 0;

	if (!tree->reached[node])
		return answer_text(v->out, NULL);
	if (tree->from[node] == GRAPH_NONE)
		return heap_put_root(v, &v->s->roots[tree->at[node]]);
	if (is_module(v, tree, tree->from[node]))
		return heap_put_root(v, &v->s->roots[tree->at[tree->from[node]]]);
	for (; up != GRAPH_NONE && n < CHAIN_STEPS; up = tree->from[up]) {
		steps[CHAIN_STEPS - ++n] = (struct chain_step){ up, at };
		at = tree->at[up];
	}
	for (uint32_t i = 0, took; i + 1 < n; i += took ? took : 1)
		took = chain_link(v->s, &steps[CHAIN_STEPS - n + i], n - i, true, text);
	answer_text(v->out, text);
}

static void put_row(const struct heap_view *v, const struct graph_tree *tree,
		    const struct dominator_row *row, uint64_t retained, uint64_t all)
{
	_cleanup_(strbuf_free) struct strbuf name = { 0 };

	if (row->skipped)
		strbuf_printf(&name, "… %s more … ", unit_count(row->skipped).s);
	strbuf_puts(&name, heap_type_name(v, row->node));
	answer_cell(v->out, retained);
	answer_real(v->out, all ? 100 * (double)retained / (double)all : 0);
	answer_cell(v->out, snapshot_bytes(v->s, row->node));
	answer_cell(v->out, v->s->blocks.rows[row->node].addr);
	if (row->depth)
		answer_text(v->out, "");
	else
		put_referrer(v, tree, row->node);
	if (v->s->sites)
		heap_put_site(v, row->node);
	answer_tree(v->out, row->depth, name.s ? name.s : "");
}

int heap_dominators(const struct heap_view *v, const char *what, struct err *e)
{
	const struct snapshot *s = v->s;
	_cleanup_(graph_tree_fini) struct graph_tree tree = { 0 };
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	_cleanup_(freep) struct dominator_row *rows = NULL;
	_cleanup_(large_freep) uint64_t *retained = NULL;
	uint64_t all = 0;
	uint32_t n = 0;

	(void)what;
	for (uint32_t i = 0; i < s->blocks.n; i++)
		all += snapshot_bytes(s, i);
	if (owners_retained(s, &d, &retained) < 0 || owners_tree_grow(s, ~0u, &tree) < 0 ||
	    dominator_tree_rows(&d, retained, all / LEAST_PART, v->args->top, &rows, &n) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	answer_table(v->out, "objects", s->sites ? with_sites : columns);
	for (uint32_t i = 0; i < n; i++)
		put_row(v, &tree, &rows[i], retained[rows[i].node], all);
	return 0;
}
