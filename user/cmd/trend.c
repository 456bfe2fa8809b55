/* memscope trend: writes a log of a program's memory, reports on logs, compares them. */
#include "base/cleanup.h"
#include "base/sink.h"
#include "cmd/cmd.h"
#include "cmd/trend_parts.h"
#include "cmd/trend_windows.h"
#include "import/mem_log.h"
#include "render/formats/trend_svg.h"
#include "render/tables/trend_report.h"
#include "run/target.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOGS       "logs"
#define NEWEST     LOGS "/memory-*.csv" /* names that sort by time */
#define INTERVAL_S 300

struct trend_args {
	const char *pids, *pattern, *containers, *cgroups, *output, *svg;
	double interval_s, duration_s; /* interval_s: 0 if not given */
	bool once, maps, json;
	int cpu; /* enum cpu_kind */
};

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct trend_args, field), __VA_ARGS__                          \
	}

/* clang-format off */
static const struct opt rows[] = {
	{ .name = "Writing a log", .kind = OPT_HEADING },
	ROW("pid", 'p', OPT_STRING, "PID,…", pids, .help = "these processes, summed, without their children; when one ends, the next with its command line takes its place"),
	ROW("name", 'n', OPT_STRING, "PATTERN", pattern, .help = "the process whose full command line matches this regular expression"),
	ROW("container", 'c', OPT_STRING, "NAME,…", containers, .help = "the processes of these containers, summed, and what the containers are charged; restarted containers are picked up again. With an ARCHIVE: what its windows have of this one"),
	ROW("cgroup", 'G', OPT_STRING, "GROUP,…", cgroups, .help = "the processes in these control groups and below them"),
	ROW("interval", 0, OPT_DOUBLE, "SEC", interval_s, .min = 1, .max = 86400, .help = "a row every SEC seconds (default 300); with --once: print every SEC seconds instead of once"),
	ROW("duration", 'd', OPT_DOUBLE, "SEC", duration_s, .min = 1, .max = 1e9, .help = "end after SEC seconds; without it, at Ctrl-C"),
	ROW("output", 'o', OPT_STRING, "FILE", output, .help = "the log; rows are appended to an earlier log of memscope (default " LOGS "/memory-DATE-TIME.csv)"),

	{ .name = "Memory now", .kind = OPT_HEADING },
	ROW("once", 0, OPT_FLAG, NULL, once, .help = "print what each process uses now, in percent of the machine or of the container's limit too, and end"),
	ROW("maps", 0, OPT_FLAG, NULL, maps, .help = "with --once: the mappings of each process as well"),

	{ .name = "Reading logs", .kind = OPT_HEADING },
	ROW("cpu", 0, OPT_CHOICE, "KIND", cpu, .choices = "auto|interval|lifetime", .help = "what cpu_percent means in logs that memscope has not written: of each interval, or the average over the life of the process, as ps prints it (default auto: by how it changes)"),
	ROW("svg", 0, OPT_STRING, "FILE", svg, .help = "a chart as well; of several logs, the RSS of each"),
	ROW("json", 0, OPT_FLAG, NULL, json, .help = "print JSON"),
	{ 0 },
};
/* clang-format on */

const struct opt_command trend_options = {
	.name = "trend",
	.synopsis = "[OPTION…] [FILE…|ARCHIVE [at:TIME|A..B|last:30m]]",
	.doc = "With -p, -n, -c or -G writes a log of the memory of processes, for days, across their restarts, and "
	       "reports on it at the end. Without, reports whether memory grew in a log: in FILE, which may also be "
	       "the trend.csv of a run, or any file of lines timestamp,rss_kb,vsz_kb,cpu_percent, with or without a "
	       "line of column names; without FILE, in the newest of " NEWEST
	       ". Its verdict is of all rows; "
	       "what the first and the last row alone say stands below it. Several files are compared. Of an ARCHIVE of "
	       "windows (serve) it reads the rows in them, of --container NAME.",
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

/* Logs that were read, and what they say. */
struct logs {
	const char **names;
	char (*windows)[512]; /* names of those that are windows of an archive */
	struct mem_log **logs;
	struct mem_trend *trends;
	uint32_t n;
};

static void logs_fini(struct logs *all)
{
	for (uint32_t i = 0; all->logs && i < all->n; i++)
		mem_log_free(all->logs[i]);
	free(all->names);
	free(all->windows);
	free(all->logs);
	free(all->trends);
}

/* A log, or windows of an archive, which the operand behind it may choose: so many operands are it. -errno */
static int read_log(struct logs *all, const struct trend_args *a, const char *const *operands,
		    uint32_t n, struct err *e)
{
	bool has_choice = n > 1 && access(operands[1], F_OK) < 0 && trend_is_choice(operands[1]);
	uint32_t i = all->n;
	int r;

	all->names[i] = operands[0];
	if (!trend_is_archive(operands[0])) {
		if (has_choice)
			return err_set(e, -EINVAL,
				       "%.200s is a log, which has no windows to choose %.100s of",
				       operands[0], operands[1]);
		r = mem_log_read(operands[0], &all->logs[i], e);
		return r < 0 ? r : 1;
	}
	r = trend_read_windows(operands[0], has_choice ? operands[1] : NULL, a->containers,
			       &all->logs[i], all->windows[i], sizeof(*all->windows), e);
	all->names[i] = all->windows[i];
	return r < 0 ? r : 1 + has_choice;
}

static int read_logs(struct logs *all, const struct trend_args *a, const char *const *operands,
		     uint32_t n, struct err *e)
{
	uint32_t n_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	enum cpu_kind cpu = (enum cpu_kind)a->cpu;
	int r = 0, rc;

	all->names = calloc(n, sizeof(*all->names));
	all->windows = calloc(n, sizeof(*all->windows));
	all->logs = calloc(n, sizeof(struct mem_log *));
	all->trends = calloc(n, sizeof(*all->trends));
	if (!all->names || !all->windows || !all->logs || !all->trends)
		return err_set(e, -ENOMEM, "out of memory for %u logs", n);
	for (uint32_t at = 0; r >= 0 && at < n; at += (uint32_t)r) {
		uint32_t i = all->n;

		r = read_log(all, a, operands + at, n - at, e);
		if (r < 0)
			return r;
		all->n++;
		rc = mem_trend_of(all->logs[i], n_cpus, &all->trends[i], e);
		if (rc < 0)
			return rc;
		if (cpu != CPU_UNKNOWN && !all->logs[i]->of_memscope)
			all->trends[i].cpu_kind = cpu;
	}
	return 0;
}

static int draw(const struct logs *all, const char *path, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r = sink_open_file(path, &out, e);

	if (r == 0 && all->n == 1)
		r = trend_svg(all->logs[0], &all->trends[0], all->names[0], out, e);
	else if (r == 0)
		r = trend_svg_compare((const struct mem_log *const *)all->logs, all->trends,
				      all->names, all->n, out, e);
	return r < 0 ? r : sink_commit(out, e);
}

static int report(const struct trend_args *a, const char *const *operands, uint32_t n,
		  struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	_cleanup_(logs_fini) struct logs all = { 0 };
	int r = read_logs(&all, a, operands, n, e);

	if (r == 0 && a->svg)
		r = draw(&all, a->svg, e);
	if (r == 0)
		r = sink_open_file("-", &out, e);
	if (r < 0)
		return r;
	if (a->json)
		r = trend_report_json(all.trends, all.names, all.n, out, e);
	else if (all.n > 1)
		trend_report_compare(all.trends, all.names, all.n, out);
	else
		trend_report_text(&all.trends[0], all.names[0], out);
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
		return err_set(e, -errno,
			       "cannot make the directory " LOGS
			       " here: %s; -o FILE writes the log elsewhere",
			       strerror(errno));
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
		struct trend_look how = { a->maps, a->json, a->interval_s, a->duration_s };

		r = trend_once(target, &how, e);
		return r < 0 ? command_fail(EXIT_NOTHING, e) : EXIT_DONE;
	}
	if (!path) {
		r = name_log(name, sizeof(name), e);
		path = name;
	}
	if (r == 0)
		r = trend_log(target, path, a->interval_s > 0 ? a->interval_s : INTERVAL_S,
			      a->duration_s, e);
	if (r == 0)
		r = report(a, &path, 1, e);
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

/* `reads`: logs, or windows of an archive, of which -c says whose. */
static int kinds_of(const struct trend_args *a, bool reads)
{
	return !!a->pids + !!a->pattern + (a->containers && !reads) + !!a->cgroups;
}

/* What was asked for must make sense together. */
static int check(const struct trend_args *a, bool reads, int n, struct err *e)
{
	int kinds = kinds_of(a, reads);

	if (kinds > 1)
		return err_set(e, -EINVAL,
			       "-p, -n, -c and -G each name processes: give one of them");
	if (a->containers && !reads && groups_check("-c", a->containers, e) < 0)
		return -EINVAL;
	if (a->cgroups && groups_check("-G", a->cgroups, e) < 0)
		return -EINVAL;
	if (kinds && n)
		return err_set(
			e, -EINVAL,
			"-%c writes a log (-o FILE), and FILE is one to report on: give one of them",
			a->pids         ? 'p'
			: a->pattern    ? 'n'
			: a->containers ? 'c'
					: 'G');
	if ((a->once || a->output || a->duration_s > 0 || a->interval_s > 0) && !kinds)
		return err_set(e, -EINVAL, "%s is for processes: name them with -p, -n, -c or -G",
			       a->once             ? "--once"
			       : a->output         ? "-o"
			       : a->duration_s > 0 ? "-d"
						   : "--interval");
	if (a->maps && !a->once)
		return err_set(e, -EINVAL, "--maps goes with --once");
	if (a->once && (a->svg || a->output))
		return err_set(e, -EINVAL, "%s is for logs, and --once writes none",
			       a->svg ? "--svg" : "-o");
	if (a->once && a->duration_s > 0 && !(a->interval_s > 0))
		return err_set(e, -EINVAL, "with --once, -d goes with --interval SEC");
	return 0;
}

int cmd_trend(int argc, char **argv)
{
	struct trend_args a = { 0 };
	const char *newest_log;
	char found[4096];
	bool reads;
	struct err e = { 0 };
	int operand, n, r;

	if (opt_parse(&trend_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	n = argc - operand;
	reads = n && trend_is_archive(argv[operand]);
	if (check(&a, reads, n, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (kinds_of(&a, reads))
		return watch(&a, &e);
	if (n == 0) {
		if (newest(found, sizeof(found), &e) < 0)
			return command_fail(EXIT_USAGE, &e);
		newest_log = found;
		r = report(&a, &newest_log, 1, &e);
	} else {
		r = report(&a, (const char *const *)&argv[operand], (uint32_t)n, &e);
	}
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return EXIT_DONE;
}
