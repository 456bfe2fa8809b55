#include "analyse/top.h"

#include "analyse/functions.h"
#include "analyse/sites.h"

#include <string.h>

static int compare_rows(const void *a, const void *b, void *order)
{
	const struct function *x = a, *y = b;
	bool by_self = *(enum top_order *)order == TOP_BY_SELF;
	int64_t vx = by_self ? x->self : x->total, vy = by_self ? y->self : y->total;

	if (vx != vy)
		return vx > vy ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->module, y->module);
}

int top_functions(const struct profile *p, uint32_t type, enum top_order order, struct top_row *out,
		  uint32_t cap)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(functions_fini) struct functions f = { 0 };
	uint32_t n = 0;
	int r;

	r = frame_tree_build(p, &(struct frame_tree_opts){ .type = type }, &tree);
	if (r == 0) {
		sites_charge(tree, sites_kind(p, type));
		r = functions_make(tree, &f);
	}
	if (r < 0)
		return r;
	if (f.n)
		qsort_r(f.rows, f.n, sizeof(*f.rows), compare_rows, &order);
	for (; n < f.n && n < cap; n++) {
		const struct function *row = &f.rows[n];

		if (!(order == TOP_BY_SELF ? row->self : row->total))
			break;
		out[n] = (struct top_row){ row->name, row->module, row->kind, row->self,
					   row->total };
	}
	return (int)n;
}
