#include "render/tables/call_tree.h"

#include "render/formats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { NAME_COLUMNS = 90, MODULE_COLUMNS = 40 };

/* The nodes that are large enough, linked anew: the largest child first. */
struct order {
	const struct frame_node *nodes;
	uint32_t *child, *sibling; /* 0: none */
	bool left_out;
};

static void order_fini(struct order *o)
{
	free(o->child);
	free(o->sibling);
}

/* By parent, and of one parent the largest first; ties by name. */
static int compare_nodes(const void *a, const void *b, void *nodes)
{
	const struct frame_node *all = nodes, *x = &all[*(const uint32_t *)a],
				*y = &all[*(const uint32_t *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->name, y->name) ?: (int)x->kind - (int)y->kind;
}

static int order_init(struct order *o, const struct frame_tree *t,
		      const struct call_tree_opts *opts)
{
	_cleanup_(freep) uint32_t *list = calloc(t->n_nodes, sizeof(*list));
	double least = (double)opts->whole * opts->min_percent / 100;
	uint32_t n = 0;

	o->nodes = t->nodes;
	o->child = calloc(t->n_nodes, sizeof(*o->child));
	o->sibling = calloc(t->n_nodes, sizeof(*o->sibling));
	if (!list || !o->child || !o->sibling)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->n_nodes; i++) {
		if (t->nodes[i].total <= 0) /* all of it is charged to a caller */
			continue;
		if ((double)t->nodes[i].total >= least)
			list[n++] = i;
		else
			o->left_out = true;
	}
	if (n)
		qsort_r(list, n, sizeof(*list), compare_nodes, (void *)t->nodes);
	while (n--) {
		uint32_t parent = t->nodes[list[n]].parent;

		o->sibling[list[n]] = o->child[parent];
		o->child[parent] = list[n];
	}
	return 0;
}

/* The next node, children first; 0 at the end. */
static uint32_t next_node(const struct order *o, uint32_t node)
{
	if (o->child[node])
		return o->child[node];
	while (node && !o->sibling[node])
		node = o->nodes[node].parent;
	return node ? o->sibling[node] : 0;
}

static void add_function(struct strbuf *out, const struct order *o, uint32_t node)
{
	const struct frame_node *n = &o->nodes[node];
	bool has_brackets = n->module[0] == '[';

	text_add(out, TEXT_FOLDED, *n->name ? n->name : "[unknown]", NAME_COLUMNS);
	if (!*n->module || strcmp(n->module, o->nodes[n->parent].module) == 0)
		return;
	strbuf_puts(out, has_brackets ? "  " : "  [");
	text_add(out, TEXT_FOLDED, n->module, MODULE_COLUMNS);
	strbuf_puts(out, has_brackets ? "" : "]");
}

/*
 * The branches to the left of the node being visited; `ends[d]` is how much of them its children at depth
 * d + 1 have, so that going up is cutting it.
 */
struct branches {
	struct strbuf text;
	size_t *ends;
};

static void branches_fini(struct branches *b)
{
	strbuf_free(&b->text);
	free(b->ends);
}

static void add_branches(struct strbuf *out, struct branches *b, const struct order *o,
			 uint32_t node)
{
	const struct frame_node *n = &o->nodes[node];
	bool first = o->child[n->parent] == node, last = !o->sibling[node];

	b->text.len = b->ends[n->depth - 1];
	strbuf_add(out, b->text.s ? b->text.s : "", b->text.len);
	if (!first || !last) {
		strbuf_puts(out, last ? "└─ " : "├─ ");
		strbuf_puts(&b->text, last ? "   " : "│  ");
	}
	b->ends[n->depth] = b->text.len;
}

/* Nothing is not written: most nodes have nothing of their own. */
static void add_value(struct strbuf *out, const struct call_tree_opts *o, int64_t value)
{
	struct unit_text text = shown_text(o->shown, NULL, value);
	uint32_t columns = text_columns(text.s);

	if (value)
		strbuf_printf(out, "%*s%s %7s ", columns < 14 ? (int)(14 - columns) : 0, "", text.s,
			      unit_percent(value, o->whole).s);
	else
		strbuf_printf(out, "%22s ", "");
}

int call_tree_text(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out,
		   bool *ret_left_out)
{
	_cleanup_(order_fini) struct order order = { 0 };
	_cleanup_(branches_fini) struct branches b = { 0 };
	int r = order_init(&order, t, o);

	b.ends = calloc(t->max_depth + 1ul, sizeof(*b.ends));
	if (r < 0 || !b.ends)
		return -ENOMEM;
	strbuf_printf(out, o->no_self ? "%14s %7s  function\n" : "%14s %7s %14s %7s  function\n",
		      "total", "", "self", "");
	for (uint32_t i = order.child[0]; i; i = next_node(&order, i)) {
		add_value(out, o, t->nodes[i].total);
		if (!o->no_self)
			add_value(out, o, t->nodes[i].self);
		strbuf_putc(out, ' ');
		add_branches(out, &b, &order, i);
		add_function(out, &order, i);
		strbuf_putc(out, '\n');
	}
	*ret_left_out = order.left_out;
	return strbuf_oom(&b.text) || strbuf_oom(out) ? -ENOMEM : 0;
}

int call_tree_json(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out)
{
	_cleanup_(order_fini) struct order order = { 0 };
	bool first = true;

	if (order_init(&order, t, o) < 0)
		return -ENOMEM;
	strbuf_puts(out, "[");
	for (uint32_t i = order.child[0]; i; i = next_node(&order, i)) {
		const struct frame_node *n = &t->nodes[i];

		strbuf_printf(out, "%s\n{\"depth\":%u,\"function\":\"", first ? "" : ",",
			      n->depth - 1);
		text_add(out, TEXT_JSON, n->name, UINT32_MAX);
		strbuf_puts(out, "\",\"module\":\"");
		text_add(out, TEXT_JSON, n->module, UINT32_MAX);
		strbuf_puts(out, "\",");
		if (!o->no_self)
			strbuf_printf(out, "\"self\":%" PRId64 ",", n->self);
		strbuf_printf(out, "\"total\":%" PRId64 "}", n->total);
		first = false;
	}
	strbuf_puts(out, "]");
	return strbuf_oom(out) ? -ENOMEM : 0;
}
