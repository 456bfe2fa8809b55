/*
 * memscope serve: a recording without an end, in windows, under a limit of its own.
 *
 * It is the run of `record --every --archive` with other defaults and with the components of run/serve/,
 * which take part where run_config.serve is set.
 */
#include "base/cleanup.h"
#include "base/shell_words.h"
#include "base/strbuf.h"
#include "cmd/recording.h"
#include "run/serve/serve_config.h"

#include <errno.h>

struct serve_args {
	struct run_args run;
	struct serve_config serve;
};

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct serve_args, field), __VA_ARGS__                          \
	}

/* clang-format off */
static const struct opt rows[] = {
	{ .name = "What to profile", .kind = OPT_HEADING },
	ROW("all", 'a', OPT_FLAG, NULL, run.all, .help = "the whole host, all processes (default); of each container by itself, too"),
	ROW("container", 'c', OPT_STRING, "NAME,…", run.containers, .help = "the processes of these containers, by the name or id that their engine knows; also when one is started again"),
	ROW("cgroup", 'G', OPT_STRING, "GROUP,…", run.cgroups, .help = "the processes in these control groups and below them: a directory, or a path as in /proc/PID/cgroup"),
	ROW("pid", 'p', OPT_STRING, "PID,…", run.pids, .help = "these processes, all their threads and children"),
	ROW("name", 'n', OPT_STRING, "PATTERN", run.pattern, .help = "the process whose full command line matches this regular expression"),

	{ .name = "What to gather", .kind = OPT_HEADING },
	ROW("only", 0, OPT_STRING, "SOURCE,…", run.only, .help = "some of oncpu, offcpu, alloc, growth (default: all; with -a: without alloc)"),
	ROW("frequency", 'F', OPT_U32, "HZ", run.hz, .min = 1, .max = 10000, .help = "on-CPU samples per second and CPU (default 19)"),
	ROW("interval", 0, OPT_DOUBLE, "SEC", run.interval_s, .min = 1, .max = 86400, .help = "a row of trend.csv every SEC seconds (default 10)"),
	ROW("lang", 0, OPT_STRING, "LANG,…", run.langs, .help = "frames of languages that have their own in stacks: auto (default: all that are known), off, or some of python,java,ghc and others (memscope help languages)"),
	ROW("series", 0, OPT_LIST, "FILE|URL", run.series, .help = "what the targets work, to hold growth against, as in record; may be given again"),

	{ .name = "Windows", .kind = OPT_HEADING },
	ROW("archive", 0, OPT_STRING, "DIR", run.archive, .help = "write the windows into DIR/NAME, where NAME is \"host\" with -a, else the container's, the systemd service's or the command's"),
	ROW("every", 0, OPT_DOUBLE, "SEC", run.every_s, .min = 1, .max = 1e7, .help = "a window is SEC seconds long (default 120)"),
	ROW("keep", 0, OPT_STRING, "LIMIT,…", run.keep, .help = "remove the oldest windows until every limit is kept: an age (12h, 7d), a number (200), a size (20G), or several (default 7d,20G)"),
	ROW("when", 0, OPT_LIST, "CONDITION", run.when, .help = "write a window of the time before and up to now when a condition is met, as in record; may be given again"),
	ROW("before", 0, OPT_DOUBLE, "SEC", run.before_s, .min = 1, .max = 3600, .help = "with --when: so much of the time before is in it (default 30)"),
	ROW("rearm", 0, OPT_DOUBLE, "SEC", run.rearm_s, .min = 0, .max = 1e7, .help = "with --when: a condition counts again after it was false, and not before SEC seconds (default 60)"),
	ROW("label", 0, OPT_LIST, "KEY=VALUE", run.labels, .help = "kept in the profiles, like env=prod; may be given again"),

	{ .name = "Limits", .kind = OPT_HEADING },
	ROW("max-overhead", 0, OPT_DOUBLE, "PCT", serve.own_limit, .min = 0.05, .max = 100000, .help = "what all of it may cost the host, in percent of one CPU: probes, unwinding and memscope's own process (default 1)"),
	ROW("mem", 0, OPT_U32, "MIB", run.mem_mb, .min = 8, .max = 65536, .help = "memory for the kernel's tables, in MiB (default 48)"),
	ROW("quiet", 'q', OPT_FLAG, NULL, run.quiet, .help = "print nothing but errors"),
	ROW("verbose", 'v', OPT_FLAG, NULL, run.verbose, .help = "say what is done meanwhile"),
	{ 0 },
};
/* clang-format on */

const struct opt_command serve_options = {
	.name = "serve",
	.synopsis = "--archive DIR [OPTION…]",
	.doc = "Profiles the host, containers or processes all the time, at little cost: writes a window of profiles "
	       "every two minutes into an archive, in which the minutes before an incident are found later.",
	.opts = rows,
};

/* What is not asked for is what a service needs. */
static int complete(struct serve_args *a, struct err *e)
{
	struct run_args *run = &a->run;

	if (!run->archive)
		return err_set(e, -EINVAL, "serve needs --archive DIR: where its windows go");
	if (!run->pids && !run->pattern && !run->containers && !run->cgroups)
		run->all = true;
	run->max_overhead = a->serve.own_limit;
	return 0;
}

int cmd_serve(int argc, char **argv)
{
	_cleanup_(strbuf_free) struct strbuf command_line = { 0 };
	struct serve_args a = { .run = run_args_default, .serve = { .own_limit = 1 } };
	static pid_t pids[RUN_MAX_PIDS];
	struct run_config cfg = { .pids = pids, .serve = &a.serve };
	struct err e = { 0 };
	int first;

	a.run.hz = 19;
	a.run.mem_mb = 48;
	a.run.interval_s = 10;
	a.run.every_s = 120;
	a.run.keep = "7d,20G";
	shell_command_line(argc, argv, &command_line);
	if (opt_parse(&serve_options, argc, argv, &a, &first, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (first < argc)
		err_set(&e, -EINVAL, "serve takes no operands: \"%.64s\" is not understood",
			argv[first]);
	if (first < argc || complete(&a, &e) < 0 || run_args_config(&a.run, NULL, &cfg, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	cfg.command_line = command_line.s;
	if (recording_allowed(&e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	return recording_run(&a.run, &cfg);
}
