/*
 * A call tree as text: what called what, the largest first.
 *
 *         total         self
 *      100 100.0%               main  [prog]
 *       95  95.0%   10  10.0%   event_loop
 *       40  40.0%               ├─ parse
 *       40  40.0%   40  40.0%   │  next_token
 *       25  25.0%               ├─ __read  [libc.so.6]
 *       20  20.0%               └─ (12 more)
 *
 * What is called by one function only stays in its column, so that deep stacks do not run off the page. An
 * image is named where it changes. Branches that are too small are summed in a row behind their siblings; where even their sum
 * is too small, they are in no row, and struct call_tree_rest has them.
 */
#ifndef MEMSCOPE_RENDER_TABLES_CALL_TREE_H
#define MEMSCOPE_RENDER_TABLES_CALL_TREE_H

#include "analyse/frame_tree.h"
#include "base/strbuf.h"
#include "render/tables/profile_parts.h"

struct call_tree_opts {
	const struct row_style *style;
	int64_t whole;      /* what percentages are of                       */
	double min_percent; /* of it: branches with less have no row of their own */
	bool no_self;       /* callers: what they spent themselves is not said */
};

/* What has no row of its own: branches whose parents have one. */
struct call_tree_rest {
	uint32_t branches;
	int64_t total;         /* of all of them                         */
	int64_t in_no_row;     /* of those that are in no sum of text    */
};

/* 0 or -ENOMEM. */
int call_tree_text(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out,
		   struct call_tree_rest *ret_rest);
/* [{"depth": 0, "function", "module", "self", "total"}, …], parents before their children. */
int call_tree_json(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out,
		   struct call_tree_rest *ret_rest);
/* A line each: tree (`name`), depth, function, module, self, total; r->out has them. */
int call_tree_csv(const struct frame_tree *t, const struct call_tree_opts *o, struct report *r, const char *name,
		  struct call_tree_rest *ret_rest);

#endif
