/*
 * A profile as text, JSON and CSV: its functions, largest first; its call tree; who calls a function and what
 * it calls; its parts by a label of the samples, or by image.
 *
 * Text adds up: what has no row of its own is summed in a row that says so, so that self values of a table or a tree, and those
 * rows, are 100 % of the profile. Percentages are of the whole profile, also of a part that was selected
 * (analyse/selection.h).
 */
#ifndef MEMSCOPE_RENDER_TABLES_PROFILE_TEXT_H
#define MEMSCOPE_RENDER_TABLES_PROFILE_TEXT_H

#include "base/err.h"
#include "base/sink.h"
#include "model/profile.h"

enum profile_view {
	PROFILE_TOP,      /* functions by self, then by total      */
	PROFILE_TREE,
	PROFILE_CALLERS,  /* of `function`, or what it calls       */
	PROFILE_BY,       /* parts by `by`                         */
};

struct profile_windows {
	uint32_t n, gaps;          /* gaps: times between them in which nothing was gathered */
	int64_t from_ns, to_ns;    /* since the Epoch */
	int64_t gaps_ns;
};

struct profile_text_opts {
	enum profile_view view;
	int type;             /* index of the value type, -1 to choose (shown.h) */
	uint32_t rows;        /* of a table at most, 0: all                      */
	double min_percent;   /* trees: branches with less are summed            */
	const char *function; /* its whole name                                  */
	bool callers, callees; /* of it: which                                  */
	bool leaf_first;      /* the tree: what did the work at its root         */
	const char *by;       /* "module", or what frame_tree_opts.by may be      */
	bool root_comm;       /* trees: the process name at the root              */
	const char *root_by;  /* trees: this label above it; NULL: none           */
	const int64_t *whole; /* by value type, what there was before a selection; NULL: the profile is all */
	const struct profile_windows *windows; /* JSON: of which windows it is the sum; NULL: not known */
	const char *source;   /* "oncpu": which of several profiles it is, for CSV and JSON; NULL: not known */
	uint32_t width;       /* columns of the terminal, 0: lines may be long   */
	bool colour;
};

/* 0 or -ENOMEM. */
int profile_text_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e);
/*
 * {"type", "unit", "total", "samples", "duration_ns", …}, "source" where it is known, "selected" (which stacks) and "whole" (its total)
 * of a part, "windows": {"n", "begin_ns", "end_ns", "gaps", "gaps_ns"} of those that were chosen by time, "estimates" where the profile says how it was estimated and, by view:
 *
 *   "by_self": [{"function", "module", "self", "total"}, …], "by_total": […]; before that "estimated": whether
 *           values are estimates. Then rows have 95 % intervals "self_low", "self_high", "total_low",
 *           "total_high", and "samples", which total rests on; the whole "total_low" and "total_high" (of on-CPU
 *           samples none). "not_shown": {"functions", "self"}, which have no row
 *   "tree", or "reverse" (from the leaf): as call_tree.h has it; "not_shown": {"branches", "total"}, and "no_stack", if there are samples without
 *   "function", "function_total", "function_self", "callers": (tree), "callees": (tree), each with its
 *           "callers_not_shown" or "callees_not_shown"
 *   "by", "parts": [{"name", "self", "total"}, …]    self: of images only; "not_shown": {"parts", "self" or "total"}
 */
int profile_json_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e);
/*
 * A row of column names first (`heading`), which several profiles of one view share. By view, behind source, type and unit:
 *
 *   function, module, self, total, self_low, self_high, total_low, total_high    by self; intervals are empty where
 *           values are counted
 *   tree, depth, function, module, self, total     tree: "tree", "reverse", "callers" or "callees"; parents first
 *   by, name, self, total                          self: of images only
 *
 * What has no row is in a last one without a function or name, so that self adds up: of trees its total does, which is of the branches
 * that were left out; of a part of a profile also what was not selected.
 */
int profile_csv_write(const struct profile *p, const struct profile_text_opts *o, bool heading, struct sink *out,
		      struct err *e);

#endif
