#include "render/tables/call_tree.h"

#include "base/saturate.h"
#include "render/formats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The nodes that are large enough, linked anew: the largest child first. */
struct order {
	const struct frame_node *nodes;
	uint32_t *child, *sibling; /* 0: none */
	/* What is left out of a node's children. */
	struct small {
		uint32_t branches;
		int64_t total;
	} * small;
	double least;
	struct call_tree_rest rest;
};

static void order_fini(struct order *o)
{
	free(o->child);
	free(o->sibling);
	free(o->small);
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

static bool small_has_row(const struct order *o, uint32_t node)
{
	return o->small[node].branches && (double)o->small[node].total >= o->least;
}

static void leave_out(struct order *o, const struct frame_node *n)
{
	struct small *small = &o->small[n->parent];

	/* Of a branch that is left out itself, it is in there. */
	if (n->parent && (double)o->nodes[n->parent].total < o->least)
		return;
	small->branches++;
	small->total = add_saturating(small->total, n->total);
	o->rest.branches++;
	o->rest.total = add_saturating(o->rest.total, n->total);
}

static int order_init(struct order *o, const struct frame_tree *t,
		      const struct call_tree_opts *opts)
{
	_cleanup_(freep) uint32_t *list = calloc(t->n_nodes, sizeof(*list));
	uint32_t n = 0;

	o->nodes = t->nodes;
	o->least = (double)opts->whole * opts->min_percent / 100;
	o->child = calloc(t->n_nodes, sizeof(*o->child));
	o->sibling = calloc(t->n_nodes, sizeof(*o->sibling));
	o->small = calloc(t->n_nodes, sizeof(*o->small));
	if (!list || !o->child || !o->sibling || !o->small)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->n_nodes; i++) {
		if (t->nodes[i].total <= 0) /* all of it is charged to a caller */
			continue;
		if ((double)t->nodes[i].total >= o->least)
			list[n++] = i;
		else
			leave_out(o, &t->nodes[i]);
	}
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (!small_has_row(o, i))
			o->rest.in_no_row += o->small[i].total;
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

/* The branches before a child of `parent`, which is its first or last row. */
static uint32_t add_branches(struct strbuf *out, struct branches *b, const struct row_style *s,
			     const struct frame_node *parent, uint32_t used, bool first, bool last)
{
	uint32_t depth = parent->depth, columns, most = s->width ? s->width / 3 : UINT32_MAX;
	const char *own = first && last ? "" : last ? "└─ " : "├─ ";
	const char *shown;

	b->text.len = b->ends[depth];
	if (b->text.s)
		b->text.s[b->text.len] = '\0';
	shown = b->text.s ? b->text.s : "";
	columns = text_columns(shown) + text_columns(own);
	if (columns > most) { /* of a deep tree the branches next to the name */
		strbuf_puts(out, "… ");
		while (columns + 2 > most && *shown) {
			do
				shown++;
			while (((unsigned char)*shown & 0xc0) == 0x80);
			columns--;
		}
		columns += 2;
	}
	strbuf_puts(out, shown);
	strbuf_puts(out, own);
	if (*own)
		strbuf_puts(&b->text, last ? "   " : "│  ");
	b->ends[depth + 1] = b->text.len;
	return used + columns;
}

struct tree_text {
	const struct frame_tree *t;
	const struct call_tree_opts *o;
	struct order order;
	struct branches branches;
	struct strbuf *out;
	uint32_t used; /* columns before the branches */
};

/* Nothing is not written: most nodes have nothing of their own. */
static void add_value(struct tree_text *x, int64_t value)
{
	if (value)
		row_value(x->out, x->o->style, value, x->o->whole);
	else
		row_no_value(x->out, x->o->style);
}

static void add_row(struct tree_text *x, uint32_t node)
{
	const struct frame_node *n = &x->t->nodes[node], *parent = &x->t->nodes[n->parent];
	bool first = x->order.child[n->parent] == node;
	bool last = !x->order.sibling[node] && !small_has_row(&x->order, n->parent);
	uint32_t used;

	add_value(x, n->total);
	if (!x->o->no_self)
		add_value(x, n->self);
	strbuf_putc(x->out, ' ');
	used = add_branches(x->out, &x->branches, x->o->style, parent, x->used, first, last);
	row_name(x->out, x->o->style, used, n->name,
		 strcmp(n->module, parent->module) == 0 ? NULL : n->module);
}

/* The row of what is left out of `node`'s children, behind them. */
static void add_small(struct tree_text *x, uint32_t node)
{
	const struct small *small = &x->order.small[node];
	char text[80];

	if (!small_has_row(&x->order, node))
		return;
	add_value(x, small->total);
	if (!x->o->no_self)
		add_value(x, 0);
	strbuf_putc(x->out, ' ');
	add_branches(x->out, &x->branches, x->o->style, &x->t->nodes[node], x->used,
		     !x->order.child[node], true);
	snprintf(text, sizeof(text), "(%s more)", unit_count(small->branches).s);
	row_note(x->out, x->o->style, text);
}

static void add_rows(struct tree_text *x)
{
	const struct order *o = &x->order;
	uint32_t i = o->child[0];

	if (!i)
		add_small(x, 0);
	while (i) {
		add_row(x, i);
		if (o->child[i]) {
			i = o->child[i];
			continue;
		}
		add_small(x, i);
		while (i && !o->sibling[i]) {
			i = o->nodes[i].parent;
			add_small(x, i);
		}
		i = i ? o->sibling[i] : 0;
	}
}

int call_tree_text(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out,
		   struct call_tree_rest *ret_rest)
{
	uint32_t value = o->style->value_columns + 8;
	struct tree_text x = {
		.t = t, .o = o, .out = out, .used = (o->no_self ? 1 : 2) * value + 1
	};
	int r = order_init(&x.order, t, o);

	x.branches.ends = calloc(t->max_depth + 2ul, sizeof(*x.branches.ends));
	if (!x.branches.ends)
		r = -ENOMEM;
	if (r == 0) {
		row_value_heading(out, o->style, "total");
		if (!o->no_self)
			row_value_heading(out, o->style, "self");
		strbuf_puts(out, " function\n");
		add_rows(&x);
		*ret_rest = x.order.rest;
		r = strbuf_oom(&x.branches.text) || strbuf_oom(out) ? -ENOMEM : 0;
	}
	order_fini(&x.order);
	branches_fini(&x.branches);
	return r;
}

int call_tree_json(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out,
		   struct call_tree_rest *ret_rest)
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
	*ret_rest = order.rest;
	return strbuf_oom(out) ? -ENOMEM : 0;
}

int call_tree_csv(const struct frame_tree *t, const struct call_tree_opts *o, struct report *r,
		  const char *name, struct call_tree_rest *ret_rest)
{
	_cleanup_(order_fini) struct order order = { 0 };

	if (order_init(&order, t, o) < 0)
		return -ENOMEM;
	for (uint32_t i = order.child[0]; i; i = next_node(&order, i)) {
		const struct frame_node *n = &t->nodes[i];

		profile_csv_begin(r);
		strbuf_printf(&r->out, "%s,%u,", name, n->depth - 1);
		text_add_csv(&r->out, n->name);
		strbuf_putc(&r->out, ',');
		text_add_csv(&r->out, n->module);
		if (o->no_self)
			strbuf_printf(&r->out, ",,%" PRId64 "\n", n->total);
		else
			strbuf_printf(&r->out, ",%" PRId64 ",%" PRId64 "\n", n->self, n->total);
	}
	*ret_rest = order.rest;
	return strbuf_oom(&r->out) ? -ENOMEM : 0;
}
