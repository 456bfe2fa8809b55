/* memscope trend: a log of a program's memory, written or told of. */
#include "base/cleanup.h"
#include "base/sink.h"
#include "cmd/cmd.h"
#include "cmd/target.h"
#include "cmd/trend_parts.h"
#include "import/mem_log.h"
#include "render/trend_report.h"
#include "render/trend_svg.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LOGS       "logs"
#define NEWEST     LOGS "/memory-*.csv" /* names that sort by time */
#define INTERVAL_S 300

struct trend_args {
	const char *pids, *pattern, *containers, *cgroups, *output, *svg;
	double interval_s, duration_s;
	bool once, maps, json;
};

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct trend_args, field), __VA_ARGS__                          \
	}

/* clang-format off */
static const struct opt rows[] = {
	{ .name = "Writing a log", .kind = OPT_HEADING },
	ROW("pid", 'p', OPT_STRING, "PID,…", pids, .help = "of these processes, summed, without their children; one that ends is waited for by its command line"),
	ROW("name", 'n', OPT_STRING, "PATTERN", pattern, .help = "of the process whose full command line matches this regular expression"),
	ROW("container", 'c', OPT_STRING, "NAME,…", containers, .help = "of the processes of these containers, summed, and what the containers are charged; also when one is started again"),
	ROW("cgroup", 'G', OPT_STRING, "GROUP,…", cgroups, .help = "of those in these control groups and below them"),
	ROW("interval", 0, OPT_DOUBLE, "SEC", interval_s, .min = 1, .max = 86400, .help = "a row every SEC seconds (default 300)"),
	ROW("duration", 'd', OPT_DOUBLE, "SEC", duration_s, .min = 1, .max = 1e9, .help = "end after SEC seconds; without it, at Ctrl-C"),
	ROW("output", 'o', OPT_STRING, "FILE", output, .help = "the log, which is gone on with if it is there (default " LOGS "/memory-DATE-TIME.csv)"),

	{ .name = "One look", .kind = OPT_HEADING },
	ROW("once", 0, OPT_FLAG, NULL, once, .help = "print what the processes use now, and end"),
	ROW("maps", 0, OPT_FLAG, NULL, maps, .help = "with --once: each of their mappings as well"),

	{ .name = "What is printed", .kind = OPT_HEADING },
	ROW("svg", 0, OPT_STRING, "FILE", svg, .help = "a chart of the log as well"),
	ROW("json", 0, OPT_FLAG, NULL, json, .help = "the same for programs to read"),
	{ 0 },
};
/* clang-format on */

const struct opt_command trend_options = {
	.name = "trend",
	.synopsis = "[OPTION…] [FILE [FILE]]",
	.doc = "With -p, -n, -c or -G writes a log of the memory of processes, for days, over their restarts, and tells "
	       "of it at the end. Without, says of a log whether the memory grew: of the file named, which may "
	       "also be the trend.csv of a run or any file of lines timestamp,rss_kb,vsz_kb,cpu_percent below a "
	       "line of these names; of the newest of " NEWEST
	       " if none is. Two verdicts: the plain rule of "
	       "first and last value, and one of all points, each with its reason. Two files are compared.",
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

static int draw(const struct mem_log *log, const struct mem_trend *trend, const char *name,
		const char *path, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r = sink_open_file(path, &out, e);

	if (r == 0)
		r = trend_svg(log, trend, name, out, e);
	return r < 0 ? r : sink_commit(out, e);
}

/* Of one log, or of two; `svg`: NULL, or where the chart of the first goes. */
static int tell(const char *const *names, uint32_t n, bool json, const char *svg, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct mem_trend trends[2];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		_cleanup_(mem_log_freep) struct mem_log *log = NULL;

		r = mem_log_read(names[i], &log, e);
		if (r == 0)
			r = mem_trend_of(log, &trends[i], e);
		if (r == 0 && svg)
			r = draw(log, &trends[i], names[i], svg, e);
	}
	if (r == 0)
		r = sink_open_file("-", &out, e);
	if (r < 0)
		return r;
	if (json)
		r = trend_report_json(trends, names, n, out, e);
	else if (n == 2)
		trend_report_compare(&trends[0], names[0], &trends[1], names[1], out);
	else
		trend_report_text(&trends[0], names[0], out);
	return r < 0 ? r : sink_commit(out, e);
}

/* --- processes --- */

static int find_target(const struct trend_args *a, struct trend_target *ret_target, struct err *e)
{
	int r;

	*ret_target = (struct trend_target){ .pattern = a->pattern };
	if (a->containers || a->cgroups)
		return trend_groups_open(a->containers, a->cgroups, &ret_target->groups, e);
	if (a->pattern) {
		r = target_check_pattern(a->pattern, e);
		if (r == 0 && target_find_oldest(a->pattern, NULL, NULL, ret_target->pids) < 0)
			r = err_set(e, -ESRCH,
				    "no running process has a command line that matches "
				    "\"%.64s\"",
				    a->pattern);
		ret_target->n = 1;
		return r;
	}
	r = target_parse_pids(a->pids, "-p", ret_target->pids, TREND_PIDS, e);
	if (r < 0)
		return r;
	ret_target->n = (uint32_t)r;
	r = 0;
	for (uint32_t i = 0; r == 0 && i < ret_target->n; i++)
		r = target_check(ret_target->pids[i], e);
	return r;
}

static int name_log(char *buf, size_t cap, struct err *e)
{
	time_t now = time(NULL);
	struct tm tm;

	if (mkdir(LOGS, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, LOGS ": %s", strerror(errno));
	localtime_r(&now, &tm);
	strftime(buf, cap, LOGS "/memory-%Y%m%d-%H%M%S.csv", &tm);
	return 0;
}

static int watch_target(const struct trend_args *a, const struct trend_target *target,
			struct err *e)
{
	const char *path = a->output;
	char name[64];
	int r = 0;

	if (a->once) {
		r = trend_once(target, a->maps, a->json, e);
		return r < 0 ? command_fail(EXIT_NOTHING, e) : EXIT_DONE;
	}
	if (!path) {
		r = name_log(name, sizeof(name), e);
		path = name;
	}
	if (r == 0)
		r = trend_log(target, path, a->interval_s, a->duration_s, e);
	if (r == 0)
		r = tell(&path, 1, a->json, a->svg, e);
	return r < 0 ? command_fail(EXIT_NOTHING, e) : EXIT_DONE;
}

static int watch(const struct trend_args *a, struct err *e)
{
	struct trend_target target;
	int r = find_target(a, &target, e);

	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, e);
	if (target.groups)
		target_raise_files();
	r = watch_target(a, &target, e);
	trend_groups_free(target.groups);
	return r;
}

/* What was asked for must make sense together. */
static int check(const struct trend_args *a, int n, struct err *e)
{
	int kinds = !!a->pids + !!a->pattern + !!a->containers + !!a->cgroups;

	if (kinds > 1)
		return err_set(e, -EINVAL,
			       "-p, -n, -c and -G each name processes: give one of them");
	if (a->containers && groups_check("-c", a->containers, e) < 0)
		return -EINVAL;
	if (a->cgroups && groups_check("-G", a->cgroups, e) < 0)
		return -EINVAL;
	if (kinds && n)
		return err_set(e, -EINVAL,
			       "-%c writes a log (-o FILE), a FILE is told of: give one of them",
			       a->pids         ? 'p'
			       : a->pattern    ? 'n'
			       : a->containers ? 'c'
					       : 'G');
	if ((a->once || a->output || a->duration_s > 0) && !kinds)
		return err_set(e, -EINVAL, "%s is for processes: name them with -p, -n, -c or -G",
			       a->once     ? "--once"
			       : a->output ? "-o"
					   : "-d");
	if (a->maps && !a->once)
		return err_set(e, -EINVAL, "--maps goes with --once");
	if (a->svg && (a->once || n == 2))
		return err_set(e, -EINVAL, "--svg draws one log");
	if (n > 2)
		return err_set(e, -EINVAL, "%d logs; one is told of, two are compared", n);
	return 0;
}

int cmd_trend(int argc, char **argv)
{
	struct trend_args a = { .interval_s = INTERVAL_S };
	const char *names[2];
	char found[4096];
	struct err e = { 0 };
	int operand, n, r;

	if (opt_parse(&trend_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	n = argc - operand;
	if (check(&a, n, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (a.pids || a.pattern || a.containers || a.cgroups)
		return watch(&a, &e);
	if (n == 0) {
		if (newest(found, sizeof(found), &e) < 0)
			return command_fail(EXIT_USAGE, &e);
		names[n++] = found;
	} else {
		memcpy(names, argv + operand, (size_t)n * sizeof(names[0]));
	}
	r = tell(names, (uint32_t)n, a.json, a.svg, &e);
	return r < 0 ? command_fail(EXIT_NOTHING, &e) : EXIT_DONE;
}
