#include "cmd/report_print.h"

#include "analyse/function_find.h"
#include "base/terminal.h"
#include "cmd/inputs_list.h"
#include "collect/session/sources.h"
#include "render/tables/profile_text.h"
#include "run/named_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { USUAL_ROWS = 20 };

static int choose_function(const struct report_args *a, const struct profile *p,
			   struct profile_text_opts *o, struct err *e)
{
	const char *callees = NULL;
	int r = a->callers ? function_find(p, a->callers, &o->function, e) : 0;

	if (r == 0 && a->callees)
		r = function_find(p, a->callees, &callees, e);
	if (r < 0)
		return r;
	if (o->function && callees && strcmp(o->function, callees) != 0)
		return err_set(e, -EINVAL,
			       "--callers and --callees must name the same function, not "
			       "%.100s and %.100s",
			       o->function, callees);
	o->function = o->function ? o->function : callees;
	o->callers = a->callers;
	o->callees = a->callees;
	return 0;
}

static int choose_view(const struct report_args *a, const struct profile *p,
		       struct profile_text_opts *o, struct err *e)
{
	bool module = a->by && strcmp(a->by, "module") == 0;
	/* A tree that begins at a function has no process above it, but where one is asked for. */
	const char *by = !a->by && a->in.select.focus ? "none" : a->by;
	int r;

	o->view = a->callers || a->callees ? PROFILE_CALLERS
		  : a->tree || a->reverse  ? PROFILE_TREE
		  : a->by                  ? PROFILE_BY
					   : PROFILE_TOP;
	o->leaf_first = a->reverse;
	r = o->view == PROFILE_CALLERS ? choose_function(a, p, o, e) : 0;
	if (r < 0)
		return r;
	if (o->view == PROFILE_BY && module)
		return 0;
	if (module)
		return err_set(e, -EINVAL,
			       "--by module prints a table and cannot be combined with a tree");
	if (o->view == PROFILE_BY && strcmp(a->by, "none") == 0)
		return err_set(e, -EINVAL, "--by none needs --tree");
	return inputs_find_by(p, by, &o->root_by, &o->root_comm, e);
}

/* What is printed of one profile; `first`: nothing was before it. */
static int print_one(struct inputs *in, const struct report_args *a, const char *source, bool first,
		     const struct profile *p, struct sink *out, struct err *e)
{
	bool table = a->kind == REPORT_AS_TEXT;
	bool terminal = table && !a->output;
	struct profile_text_opts opts = {
		.type = -1,
		.rows = a->rows != ROWS_AS_USUAL ? a->rows
			: table                  ? USUAL_ROWS
						 : 0,
		.min_percent = a->min_percent,
		.by = a->by,
		.whole = in->selection ? in->whole : NULL,
		.windows = in->chosen.n ? &in->chosen : NULL,
		.source = source,
		.width = terminal ? terminal_columns(STDOUT_FILENO) : 0,
		.colour = terminal && terminal_takes_colour(STDOUT_FILENO),
	};
	char types[256];
	int r;

	if (a->value && (opts.type = inputs_find_value(p, a->value)) < 0) {
		profile_list_types(p, types, sizeof(types));
		return err_set(e, -EINVAL, "--value: there is no %.64s in this profile; it has %s",
			       a->value, types);
	}
	r = choose_view(a, p, &opts, e);
	if (r < 0)
		return r;
	if (a->kind == REPORT_AS_CSV)
		return profile_csv_write(p, &opts, first, out, e);
	if (!first)
		sink_puts(out, table ? "\n" : ",\n");
	if (first && table && *in->windows)
		sink_printf(out, "Windows: %s\n\n", in->windows);
	return (table ? profile_text_write : profile_json_write)(p, &opts, out, e);
}

static int read_and_print(struct inputs *in, const struct report_args *a, char *const *operands,
			  int n, const char *source, bool first, struct sink *out, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r = inputs_read(in, operands, n, source, MERGE_COMMON, NULL, &p, e);

	if (r < 0)
		return r;
	if (!profile_n_samples(p))
		return err_set(
			e, -ENODATA,
			profile_over_time(p)
				? "%s: there are figures over time in it, but no samples (of GHC: "
				  "+RTS -hT, -hc …); report -o FILE.html shows them"
				: "%s: the profile is empty",
			operands[0]);
	return print_one(in, a, source, first, p, out, e);
}

bool report_all_sources(const struct report_args *a, char *const *operands)
{
	bool view = a->value || a->tree || a->reverse || a->callers || a->callees || a->by;

	if (a->in.source)
		return strcmp(a->in.source, "all") == 0;
	return a->kind == REPORT_AS_CSV && !view && input_is_directory(operands[0]);
}

/* Those of them that have what is asked for; the reason of the last that has not, where none has. */
static int print_all(struct inputs *in, const struct report_args *a, char *const *operands, int n,
		     struct sink *out, struct err *e)
{
	struct err why = { 0 };
	bool first = true;
	int last = -ENOENT;

	err_set(&why, -ENOENT, "%s: there is no profile of a run in it", operands[0]);
	named_kinds_of(operands[0]);
	for (int i = 0; i < profile_kinds(); i++) {
		struct err one = { 0 };
		int r = read_and_print(in, a, operands, n, profile_rows[i].name, first, out, &one);

		if (r == -ENOMEM) {
			*e = one;
			return r;
		}
		if (r == 0)
			first = false;
		else if (r != -ENOENT || last == -ENOENT) {
			last = r;
			why = one;
		}
	}
	if (first)
		*e = why;
	return first ? last : 0;
}

int report_print(struct inputs *in, const struct report_args *a, char *const *operands, int n,
		 struct sink *out, struct err *e)
{
	const char *source = a->in.source;
	bool all = report_all_sources(a, operands);
	int r;

	if (all && !input_is_directory(operands[0]))
		return err_set(e, -EINVAL, "--source all is of a run's directory; %s is a file",
			       operands[0]);
	if (a->kind == REPORT_AS_JSON && all)
		sink_puts(out, "[");
	if (all)
		r = print_all(in, a, operands, n, out, e);
	else {
		if (!source && input_is_directory(operands[0]))
			source = input_main_source(operands[0], a->in.container);
		r = read_and_print(in, a, operands, n, source, true, out, e);
	}
	if (r == 0 && a->kind == REPORT_AS_JSON)
		sink_puts(out, all ? "]\n" : "\n");
	return r;
}
