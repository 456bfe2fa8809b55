/*
 * A profile as text and as JSON: its functions, largest first; its call tree; who calls a function and what
 * it calls; its parts by a label of the samples, or by image.
 */
#ifndef MEMSCOPE_RENDER_TABLES_PROFILE_TEXT_H
#define MEMSCOPE_RENDER_TABLES_PROFILE_TEXT_H

#include "base/err.h"
#include "base/sink.h"
#include "model/profile.h"

enum profile_view {
	PROFILE_TOP,      /* functions by self, then by total      */
	PROFILE_TREE,
	PROFILE_CALLERS,  /* of `function`, and what it calls      */
	PROFILE_BY,       /* parts by `by`                         */
};

struct profile_text_opts {
	enum profile_view view;
	int type;             /* index of the value type, -1 to choose (shown.h) */
	uint32_t rows;        /* of a table at most                              */
	double min_percent;   /* trees: branches with less are left out          */
	const char *function; /* its whole name                                  */
	const char *by;       /* "module", or what frame_tree_opts.by may be      */
	bool root_comm;       /* trees: the process name at the root              */
	const char *root_by;  /* trees: this label above it; NULL: none           */
};

/* 0 or -ENOMEM. */
int profile_text_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e);
/*
 * {"type", "unit", "total", "samples", "duration_ns", …}, "estimates" where the profile says how it was
 * estimated and, by view:
 *
 *   "by_self": [{"function", "module", "self", "total"}, …], "by_total": […]; before that "estimated": whether
 *           values are estimates. Then rows have 95 % intervals "self_low", "self_high", "total_low",
 *           "total_high", and "samples", which total rests on; the whole "total_low" and "total_high" (of on-CPU
 *           samples none)
 *   "tree": as call_tree.h has it
 *   "function", "function_total", "function_self", "callers": (tree), "callees": (tree)
 *   "by", "parts": [{"name", "self", "total"}, …]    self: of images only
 */
int profile_json_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e);

/*
 * The function that `name` means: the one of that name, or "name(…)"; else the only one that has it as a
 * part. -ENOENT: none; -EINVAL: several, with a sentence that names some. *ret_name is borrowed from
 * the dict.
 */
int profile_find_function(const struct profile *p, const char *name, const char **ret_name,
			  struct err *e);

#endif
