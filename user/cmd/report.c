/* memscope report: tables of profiles already taken, and the summary of a run. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/inputs_list.h"
#include "cmd/report_page.h"
#include "cmd/report_print.h"
#include "render/finding.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AT(field) offsetof(struct report_args, field)

static const struct opt rows[] = {
	{ "What to print", .kind = OPT_HEADING },
	{ "tree", 0, OPT_FLAG, NULL, AT(tree),
	  .help = "the call tree, the largest branch first; with --by, that label at its root" },
	{ "reverse", 0, OPT_FLAG, NULL, AT(reverse),
	  .help = "the call tree from the leaf (bottom-up): functions, and who called them" },
	{ "callers", 0, OPT_STRING, "FUNC", AT(callers),
	  .help = "who calls FUNC, up to the root; FUNC may be part of a name" },
	{ "callees", 0, OPT_STRING, "FUNC", AT(callees),
	  .help = "what FUNC calls; with --callers both" },
	{ "by", 0, OPT_STRING, "LABEL", AT(by),
	  .help = "a table by process, thread, container, module (image), or another label of the "
		  "samples, like pid" },
	{ "rows", 'n', OPT_U32, "N", AT(rows), 0, 1000000,
	  .help = "rows of each table (20; 0, --json and --csv: all)" },
	{ "min", 0, OPT_DOUBLE, "PERCENT", AT(min_percent), 0, 100,
	  .help = "trees: sum branches with less than this (1)" },
	{ "Output", .kind = OPT_HEADING },
	{ "json", 0, OPT_FLAG, NULL, AT(json), .help = "print JSON" },
	{ "csv", 0, OPT_FLAG, NULL, AT(csv),
	  .help = "print CSV; for a DIR without other options, of all its profiles" },
	{ "markdown", 0, OPT_FLAG, NULL, AT(markdown),
	  .help = "print a finding in Markdown (Date, Symptom, Investigation, Root cause, Fix, Result), "
		  "prefilled with the run's figures" },
	{ "output", 'o', OPT_STRING, "FILE", AT(output),
	  .help = "write to FILE, in the format of its ending: .html a self-contained page of everything, .md a "
		  "finding, .json, .csv, or .txt as printed" },
	{ "no-source", 0, OPT_FLAG, NULL, AT(no_source),
	  .help = "-o FILE.html: leave source lines out of the page" },
	{ "Input", .kind = OPT_HEADING },
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "rank by this value type: alloc_space, runnable, cpu/nanoseconds (samples, blocked "
		  "time, or what the profile names first)" },
	INPUT_OPTS(struct report_args),
	TIME_OPTS(struct report_args),
	SELECT_OPTS(struct report_args),
	{ 0 },
};

const struct opt_command report_options = {
	.name = "report",
	.synopsis = "[OPTION…] FILE… | DIR [all|latest|last:N|at:TIME|A..B|a,b]",
	.doc = "Prints a run's summary again (DIR, without options), or the functions of a profile: top by "
	       "self, then top by total. Allocations count at the function that asked for the memory, waits "
	       "at the function that waits. Reads whatever flame reads; several files are added up. Of a "
	       "run with several profiles, on-CPU unless --source says another, or all. Percentages are of the "
	       "whole profile, also of what --filter, --ignore and --focus select; what has no row is summed in one.",
	.opts = rows,
};

/* --- the summary of a run --- */

static bool wants_summary(const struct report_args *a, char *const *operands, int n)
{
	return n == 1 && input_is_directory(operands[0]) && !a->in.source && !a->in.container &&
	       !a->value && !a->tree && !a->reverse && !a->callers && !a->callees && !a->by &&
	       a->in.from_s <= 0 && a->in.to_s <= 0 && !selection_wanted(&a->in.select) &&
	       (a->kind == REPORT_AS_TEXT || a->kind == REPORT_AS_JSON);
}

static int print_file(const char *path, struct sink *out, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	char buf[16384];
	ssize_t n = 0;

	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		sink_write(out, buf, (size_t)n);
	if (n < 0)
		r = err_set(e, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	return r;
}

/* 1: there is none. */
static int print_summary(const char *dir, bool json, struct sink *out, struct err *e)
{
	char path[4096];
	int r = input_summary(dir, json ? ".json" : ".txt", path, sizeof(path));

	return r == -ENOENT ? 1
	       : r < 0      ? err_set(e, r, "%s: %s", dir, strerror(-r))
			    : print_file(path, out, e);
}

/* --- what is asked for --- */

static const struct {
	const char *ending;
	enum report_kind kind;
} endings[] = {
	{ ".html", REPORT_AS_PAGE },   { ".json", REPORT_AS_JSON }, { ".csv", REPORT_AS_CSV },
	{ ".md", REPORT_AS_MARKDOWN }, { ".txt", REPORT_AS_TEXT },
};

static int kind_of_output(const char *path, enum report_kind *ret_kind, struct err *e)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t end = strlen(endings[i].ending);

		if (len > end && strcmp(path + len - end, endings[i].ending) == 0) {
			*ret_kind = endings[i].kind;
			return 0;
		}
	}
	return err_set(
		e, -EINVAL,
		"-o %s: the format is not known from the name; end it in .html, .md, .json, .csv or "
		".txt (flame -o draws pictures)",
		path);
}

static int choose_kind(struct report_args *a, struct err *e)
{
	enum report_kind asked = a->json       ? REPORT_AS_JSON
				 : a->csv      ? REPORT_AS_CSV
				 : a->markdown ? REPORT_AS_MARKDOWN
					       : REPORT_AS_TEXT;
	bool any = a->json || a->csv || a->markdown;
	int r = 0;

	if (a->json + a->csv + a->markdown > 1)
		return err_set(e, -EINVAL, "--json, --csv and --markdown: choose one");
	a->kind = asked;
	if (a->output && strcmp(a->output, "-") == 0) {
		a->output = NULL;
		return 0;
	}
	/* A flag says it, whatever the ending; else the ending does. */
	if (a->output && !any)
		r = kind_of_output(a->output, &a->kind, e);
	return r;
}

/* Pages and findings are of all of a run. */
static int check_whole(const struct report_args *a, struct err *e)
{
	const char *what = a->kind == REPORT_AS_PAGE ? "a page" : "a finding";

	if (a->tree || a->reverse || a->callers || a->callees || a->by || a->value ||
	    (a->in.source && strcmp(a->in.source, "all") == 0))
		return err_set(
			e, -EINVAL,
			"%s shows everything and cannot be combined with --tree, --reverse, --callers, --callees, --by, "
			"--value and --source all",
			what);
	if (selection_wanted(&a->in.select))
		return err_set(
			e, -EINVAL,
			"%s shows everything and cannot be combined with --filter, --ignore and --focus",
			what);
	return 0;
}

static int check(struct report_args *a, int operands, struct err *e)
{
	int r;

	if (!operands)
		return err_set(e, -EINVAL,
			       "which profile, or which run? (memscope report FILE… or DIR)");
	if ((a->tree || a->reverse) && (a->callers || a->callees))
		return err_set(
			e, -EINVAL,
			"--tree and --reverse show all functions and cannot be combined with --callers and "
			"--callees");
	r = choose_kind(a, e);
	return r == 0 && (a->kind == REPORT_AS_PAGE || a->kind == REPORT_AS_MARKDOWN)
		       ? check_whole(a, e)
		       : r;
}

static int top_of(const struct profile *p, struct finding *f, struct top_row *top)
{
	int n;

	f->p = p;
	f->shown = shown_pick(p, -1);
	n = top_functions(p, f->shown.type, TOP_BY_SELF, top, FINDING_ROWS);
	f->n_rows = n > 0 ? (uint32_t)n : 0;
	return n < 0 ? n : 0;
}

static int write_finding(struct inputs *in, const struct report_args *a, char **operands, int n,
			 struct sink *out, struct err *e)
{
	_cleanup_(sink_closep) struct sink *summary = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct top_row top[FINDING_ROWS];
	struct finding f = { .of = operands[0], .rows = top };
	const char *source = a->in.source;
	bool run = input_is_directory(operands[0]);
	size_t len;
	int r = sink_open_memory(&summary, e);

	if (r == 0)
		r = run && n == 1 && !source && !a->in.container
			    ? print_summary(operands[0], true, summary, e)
			    : 1;
	if (r == 0 && (r = sink_commit(summary, e)) == 0) {
		const char *text = sink_memory(summary, &len);

		f.summary = bytes_of(text, len);
	} else if (r == 1) {
		if (run && !source)
			source = input_main_source(operands[0], a->in.container);
		r = inputs_read(in, operands, n, source, MERGE_COMMON, NULL, &p, e);
		if (r == 0 && (r = top_of(p, &f, top)) < 0)
			err_set(e, r, "out of memory for a finding");
	}
	return r == 0 ? finding_write(&f, out, e) : r;
}

static int write_report(struct inputs *in, const struct report_args *a, char **operands, int n,
			struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r;

	if (a->kind == REPORT_AS_PAGE)
		return report_page(in, operands, n, a->output, a->no_source, e);
	r = sink_open_file(a->output ? a->output : "-", &out, e);
	if (r == 0 && a->kind == REPORT_AS_MARKDOWN)
		r = write_finding(in, a, operands, n, out, e);
	else if (r == 0)
		r = 1;
	if (r == 1 && wants_summary(a, operands, n))
		r = print_summary(operands[0], a->kind == REPORT_AS_JSON, out, e);
	if (r == 1)
		r = report_print(in, a, operands, n, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}

int cmd_report(int argc, char **argv)
{
	struct report_args a = { .rows = ROWS_AS_USUAL, .min_percent = 1 };
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	struct err e = { 0 };
	int operand, r;

	r = opt_parse(&report_options, argc, argv, &a, &operand, &e);
	if (r == 0)
		r = check(&a, argc - operand, &e);
	if (r == 0)
		r = inputs_init(&in, &a.in, &e);
	if (r == 0)
		r = write_report(&in, &a, argv + operand, argc - operand, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return inputs_left_out(&in);
}
