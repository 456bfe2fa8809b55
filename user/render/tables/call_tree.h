/*
 * A call tree as text: what called what, the largest first.
 *
 *      total             self           function
 *        100  100.0%        0    0.0%   main  [prog]
 *         95   95.0%       10   10.0%   event_loop
 *         40   40.0%        0    0.0%   ├─ parse
 *         40   40.0%       40   40.0%   │  next_token
 *         25   25.0%        0    0.0%   └─ __read  [libc.so.6]
 *
 * What is called by one function only stays in its column, so that deep stacks do not run off the page. An
 * image is named where it changes.
 */
#ifndef MEMSCOPE_RENDER_TABLES_CALL_TREE_H
#define MEMSCOPE_RENDER_TABLES_CALL_TREE_H

#include "analyse/frame_tree.h"
#include "base/strbuf.h"
#include "render/shown.h"

struct call_tree_opts {
	const struct shown *shown;
	int64_t whole;      /* what percentages are of                       */
	double min_percent; /* of it: branches with less are left out          */
	bool no_self;       /* callers: what they spent themselves is not said */
};

/* *ret_left_out: some branch was too small. 0 or -ENOMEM. */
int call_tree_text(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out,
		   bool *ret_left_out);
/* [{"depth": 0, "function", "module", "self", "total"}, …], parents before their children. */
int call_tree_json(const struct frame_tree *t, const struct call_tree_opts *o, struct strbuf *out);

#endif
