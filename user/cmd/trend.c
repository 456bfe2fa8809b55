/* memscope trend: what a log of a program's memory says. */
#include "base/cleanup.h"
#include "base/sink.h"
#include "cmd/cmd.h"
#include "import/mem_log.h"
#include "render/trend_report.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NEWEST "logs/memory-*.csv" /* names that sort by time */

struct trend_args {
	bool json;
};

static const struct opt rows[] = {
	{ "json", 0, OPT_FLAG, NULL, offsetof(struct trend_args, json),
	  .help = "the same for programs to read" },
	{ 0 },
};

const struct opt_command trend_options = {
	.name = "trend",
	.synopsis = "[OPTION…] [FILE [FILE]]",
	.doc = "Says of a log of a program's memory whether it grew: a trend.csv of a run, or any file of "
	       "lines timestamp,rss_kb,vsz_kb,cpu_percent below a line of these names. Two verdicts: the "
	       "plain rule of first and last value, and one of all points, each with its reason. Two files "
	       "are compared. No file: the newest of " NEWEST ".",
	.opts = rows,
};

/* The last name of the pattern, in `buf`. */
static int newest(char *buf, size_t cap, struct err *e)
{
	glob_t g;
	int r = glob(NEWEST, 0, NULL, &g);

	if (r != 0)
		return err_set(e, -ENOENT,
			       "which log? (memscope trend FILE; there is no " NEWEST " here)");
	snprintf(buf, cap, "%s", g.gl_pathv[g.gl_pathc - 1]);
	globfree(&g);
	return 0;
}

static int read_trend(const char *path, struct mem_trend *ret_trend, struct err *e)
{
	_cleanup_(mem_log_freep) struct mem_log *log = NULL;
	int r = mem_log_read(path, &log, e);

	return r < 0 ? r : mem_trend_of(log, ret_trend, e);
}

int cmd_trend(int argc, char **argv)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct mem_trend trends[2];
	const char *names[2];
	struct trend_args a = { 0 };
	char found[4096];
	struct err e = { 0 };
	int operand, n, r = 0;

	if (opt_parse(&trend_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	n = argc - operand;
	if (n > 2) {
		err_set(&e, -EINVAL, "%d logs; one is told of, two are compared", n);
		return command_fail(EXIT_USAGE, &e);
	}
	if (n == 0) {
		if (newest(found, sizeof(found), &e) < 0)
			return command_fail(EXIT_USAGE, &e);
		names[n++] = found;
	} else {
		memcpy(names, argv + operand, (size_t)n * sizeof(names[0]));
	}
	for (int i = 0; r == 0 && i < n; i++)
		r = read_trend(names[i], &trends[i], &e);
	if (r == 0)
		r = sink_open_file("-", &out, &e);
	if (r < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (a.json)
		r = trend_report_json(trends, names, (uint32_t)n, out, &e);
	else if (n == 2)
		trend_report_compare(&trends[0], names[0], &trends[1], names[1], out);
	else
		trend_report_text(&trends[0], names[0], out);
	if (r == 0)
		r = sink_commit(out, &e);
	return r < 0 ? command_fail(EXIT_NOTHING, &e) : EXIT_DONE;
}
