/* memscope report: tables of profiles already taken, and the summary of a run. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/inputs_list.h"
#include "cmd/report_page.h"
#include "render/tables/profile_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct report_args {
	struct input_args in;
	const char *value, *callers, *by, *output;
	uint32_t rows;
	double min_percent;
	bool tree, json;
};

#define AT(field) offsetof(struct report_args, field)

static const struct opt rows[] = {
	{ "What to print", .kind = OPT_HEADING },
	{ "tree", 0, OPT_FLAG, NULL, AT(tree),
	  .help = "the call tree, the largest branch first; with --by, that label at its root" },
	{ "callers", 0, OPT_STRING, "FUNC", AT(callers),
	  .help = "who calls FUNC, up to the root, and what FUNC calls; FUNC may be part of a name" },
	{ "by", 0, OPT_STRING, "LABEL", AT(by),
	  .help = "a table by process, thread, container, module (image), or another label of the "
		  "samples, like pid" },
	{ "rows", 'n', OPT_U32, "N", AT(rows), 1, 1000000, .help = "rows of each table (20)" },
	{ "min", 0, OPT_DOUBLE, "PERCENT", AT(min_percent), 0, 100,
	  .help = "trees: leave out branches with less (1)" },
	{ "json", 0, OPT_FLAG, NULL, AT(json), .help = "print JSON" },
	{ "output", 'o', OPT_STRING, "FILE.html", AT(output),
	  .help = "write a page that shows all of it: every profile of a run, its tables over time and its summary; "
		  "for a browser, it loads nothing" },
	{ "Input", .kind = OPT_HEADING },
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "rank by this value type: alloc_space, runnable, cpu/nanoseconds (samples, blocked "
		  "time, or what the profile names first)" },
	INPUT_OPTS(struct report_args),
	TIME_OPTS(struct report_args),
	{ 0 },
};

const struct opt_command report_options = {
	.name = "report",
	.synopsis = "[OPTION…] FILE… | DIR [all|latest|last:N|a,b]",
	.doc = "Prints a run's summary again (DIR, without options), or the functions of a profile: top by "
	       "self, then top by total. Allocations count at the function that asked for the memory, waits "
	       "at the function that waits. Reads whatever flame reads; several files are added up. Of a "
	       "run with several profiles, on-CPU unless --source says another.",
	.opts = rows,
};

/* --- the summary of a run --- */

static bool wants_summary(const struct report_args *a, char *const *operands, int n)
{
	return n == 1 && input_is_directory(operands[0]) && !a->in.source && !a->value &&
	       !a->tree && !a->callers && !a->by && a->in.from_s <= 0 && a->in.to_s <= 0;
}

static int print_file(const char *path, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	char buf[16384];
	ssize_t n = 0;

	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	r = sink_open_file("-", &out, e);
	while (r == 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		sink_write(out, buf, (size_t)n);
	if (n < 0)
		r = err_set(e, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	return r == 0 ? sink_commit(out, e) : r;
}

/* 1: there is none. */
static int print_summary(const char *dir, bool json, struct err *e)
{
	char path[4096];
	int r = input_summary(dir, json ? ".json" : ".txt", path, sizeof(path));

	return r == -ENOENT ? 1
	       : r < 0      ? err_set(e, r, "%s: %s", dir, strerror(-r))
			    : print_file(path, e);
}

/* --- profiles --- */

static int choose_view(const struct report_args *a, const struct profile *p,
		       struct profile_text_opts *o, struct err *e)
{
	bool module = a->by && strcmp(a->by, "module") == 0;

	o->view = a->tree      ? PROFILE_TREE
		  : a->callers ? PROFILE_CALLERS
		  : a->by      ? PROFILE_BY
			       : PROFILE_TOP;
	if (a->callers) {
		int r = profile_find_function(p, a->callers, &o->function, e);

		if (r < 0)
			return r == -ENOENT ? -EINVAL : r;
	}
	if (o->view == PROFILE_BY && module)
		return 0;
	if (module)
		return err_set(e, -EINVAL,
			       "--by module is a table: it goes with neither --tree nor --callers");
	if (o->view == PROFILE_BY && strcmp(a->by, "none") == 0)
		return err_set(e, -EINVAL, "--by none has no table; it goes with --tree");
	return inputs_find_by(p, a->by, &o->root_by, &o->root_comm, e);
}

static int report(struct inputs *in, const struct report_args *a, char **operands, int n,
		  struct err *e)
{
	struct profile_text_opts opts = {
		.type = -1, .rows = a->rows, .min_percent = a->min_percent, .by = a->by
	};
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(sink_closep) struct sink *out = NULL;
	const char *source = a->in.source;
	char types[256];
	int r;

	if (!source && input_is_directory(operands[0]))
		source = input_main_source(operands[0]);
	r = inputs_read(in, operands, n, source, MERGE_COMMON, NULL, &p, e);
	if (r < 0)
		return r;
	if (a->value && (opts.type = inputs_find_value(p, a->value)) < 0) {
		profile_list_types(p, types, sizeof(types));
		return err_set(e, -EINVAL, "--value: there is no %.64s in this profile; it has %s",
			       a->value, types);
	}
	if (!profile_n_samples(p))
		return err_set(e, -ENODATA, "%s: the profile is empty", operands[0]);
	r = choose_view(a, p, &opts, e);
	if (r == 0)
		r = sink_open_file("-", &out, e);
	if (r == 0)
		r = (a->json ? profile_json_write : profile_text_write)(p, &opts, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}

static int check_output(const struct report_args *a, struct err *e)
{
	size_t len = strlen(a->output);

	if (a->tree || a->callers || a->by || a->json || a->value)
		return err_set(
			e, -EINVAL,
			"-o writes a page of everything: it goes without --tree, --callers, --by, --value and --json");
	if (len < 6 || strcmp(a->output + len - 5, ".html") != 0)
		return err_set(e, -EINVAL,
			       "-o %s: its name must end in .html (flame -o draws pictures)",
			       a->output);
	return 0;
}

int cmd_report(int argc, char **argv)
{
	struct report_args a = { .rows = 20, .min_percent = 1 };
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	struct err e = { 0 };
	int operand, r;

	r = opt_parse(&report_options, argc, argv, &a, &operand, &e);
	if (r == 0 && operand == argc)
		r = err_set(&e, -EINVAL,
			    "which profile, or which run? (memscope report FILE… or DIR)");
	if (r == 0 && a.tree && a.callers)
		r = err_set(&e, -EINVAL, "--tree and --callers: choose one");
	if (r == 0 && a.output)
		r = check_output(&a, &e);
	if (r == 0 && a.output) {
		r = inputs_init(&in, &a.in, &e);
		if (r == 0)
			r = report_page(&in, argv + operand, argc - operand, a.output, &e);
		if (r < 0)
			return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
		return inputs_left_out(&in);
	}
	if (r == 0 && wants_summary(&a, argv + operand, argc - operand)) {
		r = print_summary(argv[operand], a.json, &e);
		if (r <= 0)
			return r < 0 ? command_fail(EXIT_NOTHING, &e) : EXIT_DONE;
		r = 0;
	}
	if (r == 0)
		r = inputs_init(&in, &a.in, &e);
	if (r == 0)
		r = report(&in, &a, argv + operand, argc - operand, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return inputs_left_out(&in);
}
