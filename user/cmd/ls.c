/* memscope ls: what is in an archive. */
#include "base/cleanup.h"
#include "base/sink.h"
#include "cmd/cmd.h"
#include "cmd/ls_read.h"
#include "import/window_choice.h"
#include "render/tables/archive_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct ls_args {
	const char *container;
	uint32_t rows;
	bool json, check;
};

static const struct opt rows[] = {
	{ "container", 'c', OPT_STRING, "NAME", offsetof(struct ls_args, container),
	  .help = "what there is of this container alone" },
	{ "rows", 'n', OPT_U32, "N", offsetof(struct ls_args, rows), 0, 1e9,
	  .help = "the last N windows (20; 0 and --json: all)" },
	{ "check", 0, OPT_FLAG, NULL, offsetof(struct ls_args, check),
	  .help = "read every file to its end: which are damaged" },
	{ "json", 0, OPT_FLAG, NULL, offsetof(struct ls_args, json), .help = "print JSON" },
	{ 0 },
};

const struct opt_command ls_options = {
	.name = "ls",
	.synopsis = "[OPTION…] DIR [at:TIME|A..B|last:N|last:30m]",
	.doc = "Shows what is in an archive (serve, record --every): its windows with their times, sources and sizes, the "
	       "time between them in which nothing was gathered, its containers, and what is missing or damaged. A window's name, or a "
	       "time in it, chooses it in other commands: memscope report DIR at:19:50. Exit status 3: some file is "
	       "missing or damaged.",
	.opts = rows,
};

enum { USUAL_ROWS = 20, ROWS_AS_USUAL = UINT32_MAX };

/* One directory of windows. */
static int show(const struct input_place *place, const struct ls_opts *opts, bool json,
		struct sink *out, bool *is_whole, struct err *e)
{
	struct archive_view v;
	int r = ls_read(place, opts, &v, e);

	if (r == 0 && json)
		r = archive_json_write(&v, out, e);
	else if (r == 0)
		archive_text_write(&v, out);
	*is_whole &= !v.n_missing && !v.n_damaged;
	ls_labels_free(&v);
	archive_view_fini(&v);
	return r;
}

/* Of an archive with several targets each is shown, a line of JSON each. */
static int show_all(const char *dir, const struct ls_opts *opts, bool json, struct sink *out,
		    bool *is_whole, struct err *e)
{
	_cleanup_(input_names_fini) struct input_names targets = { 0 };
	struct input_place place;
	uint32_t n = 0;
	int r = 0;

	if (!input_has_profiles(dir) && !opts->container)
		r = input_targets(dir, &targets, e);
	if (r == 0 && targets.n < 2) {
		r = input_place_find(dir, opts->container, &place, e);
		return r < 0 ? r : show(&place, opts, json, out, is_whole, e);
	}
	for (uint32_t i = 0; r == 0 && i < targets.n; i++) {
		place = (struct input_place){ 0 };
		snprintf(place.dir, sizeof(place.dir), "%.3800s/%.250s", dir, targets.list[i]);
		if (n++ && !json)
			sink_puts(out, "\n");
		r = show(&place, opts, json, out, is_whole, e);
	}
	return r;
}

static int check(char *const *operands, int n, struct err *e)
{

	if (n < 1 || n > 2)
		return err_set(e, -EINVAL, "which archive? (memscope ls DIR)");
	if (n == 2 && !is_window_choice(operands[1]) && strncmp(operands[1], "last:", 5) != 0)
		return err_set(e, -EINVAL, "\"%.80s\" names no windows (at:19:50, A..B, last:30m)",
			       operands[1]);
	return 0;
}

int cmd_ls(int argc, char **argv)
{
	struct ls_args a = { .rows = ROWS_AS_USUAL };
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct ls_opts opts = { 0 };
	struct err e = { 0 };
	bool is_whole = true;
	int operand, r = opt_parse(&ls_options, argc, argv, &a, &operand, &e);

	if (r == 0)
		r = check(argv + operand, argc - operand, &e);
	if (r < 0)
		return command_fail(EXIT_USAGE, &e);
	opts.container = a.container;
	opts.check = a.check;
	opts.choice = argc - operand > 1 ? argv[operand + 1] : NULL;
	opts.rows = a.rows != ROWS_AS_USUAL ? a.rows : a.json ? 0 : USUAL_ROWS;
	r = sink_open_file("-", &out, &e);
	if (r == 0)
		r = show_all(argv[operand], &opts, a.json, out, &is_whole, &e);
	if (r == 0)
		r = sink_commit(out, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return is_whole ? EXIT_DONE : EXIT_PARTIAL;
}
