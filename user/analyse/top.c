#include "analyse/top.h"

#include "analyse/functions.h"
#include "analyse/messengers.h"
#include "analyse/name_match.h"
#include "analyse/nameless.h"
#include "analyse/sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRUNK_PART 0.5 /* of the profile */

static int compare_rows(const void *a, const void *b, void *order)
{
	const struct function *x = a, *y = b;
	bool by_self = *(enum top_order *)order != TOP_BY_TOTAL;
	int64_t vx = by_self ? x->self : x->total, vy = by_self ? y->self : y->total;

	if (vx != vy)
		return vx > vy ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->module, y->module);
}

static int make_functions(const struct profile *p, uint32_t type, enum site_kind charge,
			  bool keep_samples, struct frame_tree **tree, struct functions *f)
{
	struct frame_tree_opts opts = { .type = type, .keep_samples = keep_samples };
	int r = frame_tree_build(p, &opts, tree);

	if (r == 0)
		r = sites_charge(*tree, charge);
	return r == 0 ? functions_make(*tree, f) : r;
}

static int compare_functions(const void *a, const void *b)
{
	return function_compare(a, b);
}

int top_intervals(const struct profile *p, uint32_t type, struct top_row *rows, uint32_t n,
		  double whole, struct profile_sums *ret_sums)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(functions_fini) struct functions f = { 0 };
	_cleanup_(freep) struct row_sums *sums = NULL;
	int r = make_functions(p, type, sites_kind(p, type), true, &tree, &f);

	if (r == 0 && !(sums = calloc(f.n + 1ul, sizeof(*sums))))
		r = -ENOMEM;
	if (r == 0)
		r = row_sums_add(p, type, ERROR_OF_RUN, tree, NULL,
				 &(struct row_table){ tree, f.row_of, f.n }, sums, ret_sums);
	if (r == 0 && ret_sums->on_cpu && whole > 0 && ret_sums->all.value > 0) {
		ret_sums->all.error.v *= whole / ret_sums->all.value;
		ret_sums->all.error.samples *= whole / ret_sums->all.value;
		ret_sums->all.value = whole;
	}
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct function like = { .name = rows[i].name, .module = rows[i].module };
		/* In this order they were made. */
		const struct function *of =
			bsearch(&like, f.rows, f.n, sizeof(*f.rows), compare_functions);

		if (!of)
			continue;
		rows[i].self_interval = row_interval(&sums[of - f.rows].self, ret_sums);
		rows[i].total_interval = row_interval(&sums[of - f.rows].total, ret_sums);
		rows[i].samples = sums[of - f.rows].total.error.samples;
	}
	return r;
}

int top_functions(const struct profile *p, uint32_t type, enum top_order order, struct top_row *out,
		  uint32_t cap)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(functions_fini) struct functions f = { 0 };
	enum site_kind charge = order == TOP_INTERPRETED ? SITE_INTERPRETED : sites_kind(p, type);
	uint32_t n = 0;
	int r = make_functions(p, type, charge, false, &tree, &f);

	if (r < 0)
		return r;
	if (f.n)
		qsort_r(f.rows, f.n, sizeof(*f.rows), compare_rows, &order);
	for (uint32_t i = 0; i < f.n && n < cap; i++) {
		const struct function *row = &f.rows[i];

		if (!(order == TOP_BY_TOTAL ? row->total : row->self))
			break;
		if (order == TOP_INTERPRETED && row->kind != FRAME_LANG)
			continue;
		out[n++] = (struct top_row){ .name = row->name,
					     .module = row->module,
					     .kind = row->kind,
					     .self = row->self,
					     .total = row->total };
	}
	return (int)n;
}

static uint32_t widest_child(const struct frame_tree *t, uint32_t node)
{
	uint32_t widest = t->nodes[node].first_child;

	for (uint32_t c = widest; c; c = t->nodes[c].next_sibling)
		if (t->nodes[c].total > t->nodes[widest].total)
			widest = c;
	return widest;
}

/* How programs and threads begin; a module of Python that is run. */
static bool only_starts(const char *name)
{
	static const char *const starts[] = { "_start",       "main",     "main.main",
					      "start_thread", "clone*",   "Main.main*",
					      "<module> *",   "<main> *", "{main}*" };

	return NAME_IN(starts, name);
}

static bool is_worth_naming(const struct frame_node *n)
{
	if (n->kind == FRAME_LANG)
		return !messenger_of_language(n->name, n->module) && !only_starts(n->name);
	return (n->kind == FRAME_USER || n->kind == FRAME_INLINED) &&
	       strcmp(n->module, "[kernel]") != 0 && !nameless_name(n->name) &&
	       !only_starts(n->name) && !messenger(n->name, n->module) && !messenger_of_go(n->name);
}

int top_trunk(const struct profile *p, uint32_t type, struct top_row *ret_row)
{
	const struct frame_tree_opts opts = { .type = type };
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	const struct frame_node *found = NULL;
	int r = frame_tree_build(p, &opts, &tree);

	if (r < 0)
		return r;
	for (uint32_t at = widest_child(tree, 0); at; at = widest_child(tree, at)) {
		const struct frame_node *n = &tree->nodes[at];

		if ((double)n->total < TRUNK_PART * (double)tree->nodes[0].total)
			break;
		/* What native code does for a language is the language's. */
		if (is_worth_naming(n) &&
		    !(found && found->kind == FRAME_LANG && n->kind != FRAME_LANG))
			found = n;
	}
	if (!found)
		return 0;
	*ret_row = (struct top_row){ .name = found->name,
				     .module = found->module,
				     .kind = found->kind,
				     .self = found->self,
				     .total = found->total };
	return 1;
}
