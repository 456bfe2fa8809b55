/* The call tree of a profile, from the root or from the leaf; and one function's callers and callees. */
#include "render/formats/text.h"
#include "render/tables/call_tree.h"
#include "render/tables/profile_parts.h"

#include <inttypes.h>
#include <string.h>

/* Self values of the rows, and of these, are what there is. */
static void text_rest(struct report *r, const struct call_tree_rest *rest, int64_t whole)
{
	if (!rest->branches)
		return;
	if (rest->in_no_row)
		strbuf_printf(&r->out, "Branches below %g%%, %s (%s) in all, have no row",
			      r->o->min_percent, shown_text(&r->shown, NULL, rest->in_no_row).s,
			      unit_percent(rest->in_no_row, whole).s);
	else
		strbuf_printf(&r->out, "Branches below %g%% are summed", r->o->min_percent);
	strbuf_puts(&r->out, "; --min 0 shows all.\n");
}

static void json_rest(struct report *r, const char *key, const struct call_tree_rest *rest)
{
	strbuf_printf(&r->out, ",\n\"%s\":{\"branches\":%u,\"total\":%" PRId64 "}", key,
		      rest->branches, rest->total);
}

static void csv_rest(struct report *r, const char *name, int64_t rest)
{
	if (rest <= 0)
		return;
	profile_csv_begin(r);
	strbuf_printf(&r->out, "%s,,\"\",\"\",,%" PRId64 "\n", name, rest);
}

/* --- the tree --- */

/* Samples without a frame are the root's own. */
static void text_no_stack(struct report *r, int64_t value)
{
	if (!value)
		return;
	row_value(&r->out, &r->style, value, r->whole);
	if (r->o->leaf_first)
		strbuf_putc(&r->out, ' ');
	else {
		row_value(&r->out, &r->style, value, r->whole);
		strbuf_putc(&r->out, ' ');
	}
	row_note(&r->out, &r->style, "(without a stack)");
}

static int build_tree(const struct report *r, struct frame_tree **ret_tree)
{
	const struct frame_tree_opts opts = { .type = r->shown.type,
					      .by = r->o->root_by,
					      .root_comm = r->o->root_comm };
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	int rc = frame_tree_build(r->p, &opts, &tree);

	if (rc == 0)
		rc = sites_charge(tree, r->sites);
	if (rc < 0)
		return rc;
	if (r->o->leaf_first)
		return frame_tree_reversed(tree, profile_dict(r->p), ret_tree);
	*ret_tree = TAKE_PTR(tree);
	return 0;
}

int profile_tree_write(struct report *r)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	struct call_tree_opts o = { &r->style, r->whole, r->o->min_percent, r->o->leaf_first };
	const char *name = r->o->leaf_first ? "reverse" : "tree";
	struct call_tree_rest rest;
	int64_t no_stack;
	int rc = build_tree(r, &tree);

	if (rc < 0)
		return rc;
	no_stack = tree->nodes[0].self;
	if (r->form == REPORT_CSV) {
		rc = call_tree_csv(tree, &o, r, name, &rest);
		csv_rest(r, name, rc == 0 ? rest.total + no_stack + (r->whole - r->part) : 0);
		return rc;
	}
	if (r->form == REPORT_JSON) {
		strbuf_printf(&r->out, ",\n\"%s\":", name);
		rc = call_tree_json(tree, &o, &r->out, &rest);
		if (rc == 0)
			json_rest(r, "not_shown", &rest);
		if (no_stack)
			strbuf_printf(&r->out, ",\"no_stack\":%" PRId64, no_stack);
		return rc;
	}
	strbuf_putc(&r->out, '\n');
	row_heading(&r->out, &r->style,
		    r->o->leaf_first ? "Functions by self, and below each its callers"
				     : "Call tree");
	rc = call_tree_text(tree, &o, &r->out, &rest);
	text_no_stack(r, no_stack);
	row_unselected(r, !r->o->leaf_first);
	if (rc == 0)
		text_rest(r, &rest, r->whole);
	return rc;
}

/* --- one function --- */

struct half {
	const char *name, *rest, *heading;
	struct frame_tree *tree;
	bool leaf_first;
};

static int write_half(struct report *r, const struct half *half)
{
	int64_t whole = half->tree->nodes[0].total;
	struct call_tree_opts o = { &r->style, whole, r->o->min_percent, half->leaf_first };
	struct call_tree_rest rest;
	int rc;

	if (r->form == REPORT_CSV) {
		rc = call_tree_csv(half->tree, &o, r, half->name, &rest);
		csv_rest(r, half->name, rc == 0 ? rest.total : 0);
	} else if (r->form == REPORT_JSON) {
		strbuf_printf(&r->out, ",\n\"%s\":", half->name);
		rc = call_tree_json(half->tree, &o, &r->out, &rest);
		if (rc == 0)
			json_rest(r, half->rest, &rest);
	} else {
		strbuf_putc(&r->out, '\n');
		row_heading(&r->out, &r->style, half->heading);
		rc = call_tree_text(half->tree, &o, &r->out, &rest);
		if (rc == 0)
			text_rest(r, &rest, whole);
	}
	return rc;
}

static int64_t self_of(const struct frame_tree *t, const char *function)
{
	int64_t sum = 0;

	for (uint32_t i = 1; i < t->n_nodes; i++)
		if (strcmp(t->nodes[i].name, function) == 0 &&
		    __builtin_add_overflow(sum, t->nodes[i].self, &sum))
			return INT64_MAX;
	return sum;
}

static void write_function(struct report *r, int64_t total, int64_t self)
{
	if (r->form == REPORT_CSV)
		return;
	if (r->form == REPORT_JSON) {
		strbuf_puts(&r->out, ",\n\"function\":\"");
		text_add(&r->out, TEXT_JSON, r->o->function, UINT32_MAX);
		strbuf_printf(&r->out,
			      "\",\"function_total\":%" PRId64 ",\"function_self\":%" PRId64, total,
			      self);
		return;
	}
	strbuf_putc(&r->out, '\n');
	text_add(&r->out, TEXT_PLAIN, r->o->function, 90);
	strbuf_printf(&r->out, ": total %s (%s), ", shown_text(&r->shown, NULL, total).s,
		      unit_percent(total, r->whole).s);
	strbuf_printf(&r->out, "self %s (%s)\n", shown_text(&r->shown, NULL, self).s,
		      unit_percent(self, r->whole).s);
}

/* Nothing is charged to sites here: malloc's callers are asked for by that name. */
int profile_callers_write(struct report *r)
{
	_cleanup_(frame_tree_freep) struct frame_tree *callers = NULL, *callees = NULL;
	struct frame_tree_opts opts = { .type = r->shown.type, .from = r->o->function };
	int rc = frame_tree_build(r->p, &opts, &callees);

	opts.leaf_first = true;
	opts.root_comm = r->o->root_comm;
	opts.by = r->o->root_by;
	if (rc == 0)
		rc = frame_tree_build(r->p, &opts, &callers);
	if (rc < 0)
		return rc;
	write_function(r, callees->nodes[0].total, self_of(callees, r->o->function));
	if (r->o->callers)
		rc = write_half(r, &(struct half){ "callers", "callers_not_shown",
						   "Callers, in percent of its total", callers,
						   true });
	if (rc == 0 && r->o->callees)
		rc = write_half(r, &(struct half){ "callees", "callees_not_shown",
						   "Callees, in percent of its total", callees,
						   false });
	return rc;
}
