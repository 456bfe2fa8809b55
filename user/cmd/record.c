/*
 * memscope record, the default command: profile for a while, write the files, print the summary.
 */
#include "base/cleanup.h"
#include "base/shell_words.h"
#include "base/strbuf.h"
#include "cmd/event_list.h"
#include "cmd/recording.h"

#include <errno.h>
#include <string.h>

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct run_args, field), __VA_ARGS__                            \
	}

/* clang-format off */
static const struct opt rows[] = {
	{ .name = "What to profile", .kind = OPT_HEADING },
	ROW("pid", 'p', OPT_STRING, "PID,…", pids, .help = "these processes, all their threads and children"),
	ROW("name", 'n', OPT_STRING, "PATTERN", pattern, .help = "the process whose full command line matches this regular expression"),
	ROW("tid", 't', OPT_U32, "TID", tid, .min = 1, .max = 4194304, .help = "this thread only"),
	ROW("container", 'c', OPT_STRING, "NAME,…", containers, .help = "the processes of these containers, by the name or id that podman, CRI-O, docker or containerd knows; also when one is started again"),
	ROW("cgroup", 'G', OPT_STRING, "GROUP,…", cgroups, .help = "the processes in these control groups and below them: a directory, or a path as in /proc/PID/cgroup"),
	ROW("all", 'a', OPT_FLAG, NULL, all, .help = "the whole host, all processes"),
	ROW("cpus", 'C', OPT_STRING, "CPUS", cpus, .help = "on-CPU samples of these CPUs only, like 0,2-3"),
	ROW("no-children", 0, OPT_FLAG, NULL, no_children, .help = "leave out the children of the processes named"),

	{ .name = "How long", .kind = OPT_HEADING },
	ROW("duration", 'd', OPT_DOUBLE, "SEC", duration_s, .min = 0.1, .max = 1e7, .help = "end after SEC seconds; without it, at Ctrl-C or when the target ends"),
	ROW("delay", 0, OPT_DOUBLE, "SEC", delay_s, .min = 0, .max = 1e7, .help = "begin SEC seconds from now"),
	ROW("interval", 0, OPT_DOUBLE, "SEC", interval_s, .min = 0.1, .max = 86400, .help = "a row of trend.csv every SEC seconds (default 1)"),

	{ .name = "What to gather", .kind = OPT_HEADING },
	ROW("only", 0, OPT_STRING, "SOURCE,…", only, .help = "some of oncpu, offcpu, alloc, growth, syscalls (default: all but syscalls; with -a: without alloc, too)"),
	ROW("event", 'e', OPT_LIST, "EVENT,…", events, .help = "stacks of these events, as perf record takes them, instead of the other sources (or beside those of --only): software and hardware events as perf names them, tracepoints (sched:sched_process_fork, syscalls:sys_enter_*), functions (uprobe:libc:malloc, uretprobe:…) and sites of USDT (usdt:python:gc__start); with /period=N/ one in N. -e list shows what is there; may be given again (memscope help events)"),
	ROW("count", 0, OPT_LIST, "FUNC,…", counts, .help = "count each call of these functions of the target's program or libraries, and how long it takes: FUNC, or FILE:FUNC (libc:malloc, ./prog:ns::parse); * and ? stand for any text and character. Like -e, instead of the other sources or beside those of --only; may be given again (memscope help events)"),
	ROW("frequency", 'F', OPT_U32, "HZ", hz, .min = 1, .max = 100000, .help = "on-CPU samples per second and CPU (default 99)"),
	ROW("fine", 0, OPT_FLAG, NULL, fine, .help = "keep the times of on-CPU samples to 7.8 ms, not to a second: for what happens within a second; costs some memory in the kernel and a larger oncpu.times.csv.gz"),
	ROW("min-block", 0, OPT_DOUBLE, "US", min_block_us, .min = 0, .max = 1e12, .help = "off-CPU: leave out waits shorter than US microseconds"),
	ROW("max-block", 0, OPT_DOUBLE, "US", max_block_us, .min = 0.001, .max = 1e12, .help = "off-CPU: leave out waits longer than US microseconds"),
	ROW("user", 'U', OPT_FLAG, NULL, user_only, .help = "user stacks only"),
	ROW("kernel", 'K', OPT_FLAG, NULL, kernel_only, .help = "kernel stacks only"),
	ROW("lang", 0, OPT_STRING, "LANG,…", langs, .help = "frames of languages that have their own in stacks: auto (default: all that are known), off, or some of python,java,ghc and others (memscope help languages)"),
	ROW("native", 0, OPT_CHOICE, "WHAT", native, .choices = "hide|keep", .help = "the interpreter's own frames between those of a language: hide (default) or keep"),
	ROW("alloc", 0, OPT_CHOICE, "MODE", alloc, .choices = "auto|exact|sampled|bursts|off", .choice_synonyms = "slices=bursts", .help = "allocations: auto (default) traces every call if the call rate allows it (exact forces it), else listens to a sampler that is there, else traces in bursts (bursts forces that); to Go's own sampler in any case; sampled listens to a sampler in the target, which a command is given by LD_PRELOAD; off leaves them out"),
	ROW("alloc-rate", 0, OPT_STRING, "BYTES", alloc_rate, .help = "with --alloc=sampled -- CMD, or --inject: mean bytes between samples (default 512K)"),
	ROW("inject", 0, OPT_FLAG, NULL, inject, .help = "with -p or -n: allocations sampled, or with --alloc=exact (also -- CMD) recorded one and all, by memscope's own library, which is put into the running process, and idle again in the end; refused, with the reason, where that is not safe (glibc 2.34 and later, x86-64; no static programs; under seccomp, where the filter allows it)"),
	ROW("alloc-scope", 0, OPT_CHOICE, "SCOPE", alloc_scope, .choices = "process|file", .help = "process (default): probes in the target alone; file: in every process that maps the same library, so that a forked child is traced from its first call (functions of -e, too)"),
	ROW("python-objects", 0, OPT_FLAG, NULL, python_objects, .help = "with --alloc=exact or bursts: every object that CPython allocates as well, not only what it takes from malloc; millions a second. Refused by name where not all calls can be seen: they are inlined, as in Debian's python3, or there are no symbols. --inject sees them in any case"),
	ROW("offcpu", 0, OPT_CHOICE, "MODE", offcpu, .choices = "auto|exact|sampled", .help = "waits: the length of each is taken, and its stack: of all (exact), of some by chance where a thread switches over a thousand times a second (sampled), or that once all cost more than --max-overhead leaves for it (auto, the default)"),
	ROW("no-wakers", 0, OPT_FLAG, NULL, no_wakers, .help = "do not look who ends waits: no profile wakers"),
	ROW("series", 0, OPT_LIST, "FILE|URL", series, .help = "what the targets work, to hold growth against: lines timestamp,name,value of a file, which is followed, or a page of Prometheus text, fetched at each --interval; FILE#NAME,… takes these alone; may be given again"),
	ROW("census", 0, OPT_DOUBLE, "SEC", census_s, .min = 0.1, .max = 1e7, .help = "count the objects of a target by type every SEC seconds, for which it is stopped as long as copying its memory takes: census.csv; of several targets, of the one that has most private memory. Later where the pauses would be more than --max-overhead"),
	ROW("max-overhead", 0, OPT_DOUBLE, "PCT", max_overhead, .min = 0.01, .max = 100000, .help = "what the run may cost who is profiled, in percent of one CPU: allocations and stacks of waits keep within what the other sources leave, unless forced (default 5)"),
	ROW("mem", 0, OPT_U32, "MIB", mem_mb, .min = 8, .max = 65536, .help = "memory for the kernel's tables, in MiB (default 64)"),

	{ .name = "Windows and archives", .kind = OPT_HEADING },
	ROW("every", 0, OPT_DOUBLE, "SEC", every_s, .min = 0.1, .max = 1e7, .help = "write the profiles of each SEC seconds as SOURCE-DATE-TIME, and go on"),
	ROW("when", 0, OPT_LIST, "CONDITION", when, .help = "write the profiles of the time before and up to now as SOURCE_CONDITION-DATE-TIME when a condition is met, and go on: 'rss>4G', 'rss+=1G' (each further), 'growth>100M/min', 'allocated>2G', 'allocated+=1G', 'cpu>80%' or 'oom'; may be given again"),
	ROW("before", 0, OPT_DOUBLE, "SEC", before_s, .min = 1, .max = 3600, .help = "with --when: so much of the time before is in it (default 30)"),
	ROW("rearm", 0, OPT_DOUBLE, "SEC", rearm_s, .min = 0, .max = 1e7, .help = "with --when: a condition counts again after it was false, and not before SEC seconds (default 60)"),
	ROW("archive", 0, OPT_STRING, "DIR", archive, .synonyms = { "tree" }, .help = "write into DIR/NAME/DATE-TIME, or with --every into DIR/NAME, where NAME is the container's, else the systemd service's, else the pattern of --name, else the command's; \"host\" with -a"),
	ROW("keep", 0, OPT_STRING, "LIMIT,…", keep, .help = "with --every or --archive: remove the oldest windows and runs beside this one until every limit is kept: an age (30s, 90m, 12h, 7d), a number (200), a size (500M), or several (7d,20G)"),

	{ .name = "What to write", .kind = OPT_HEADING },
	ROW("output", 'o', OPT_STRING, "DIR", dir, .help = "where the files go (default memscope-COMM-PID-TIME); an earlier run there is replaced"),
	ROW("by", 0, OPT_CHOICE, "WHAT", by, .choices = "process|thread|container|none", .help = "at the root of folded stacks and pictures: the process's name (default), each of its threads below it, its container above it, or none"),
	ROW("title", 0, OPT_STRING, "TEXT", title, .help = "what pictures and the summary name the run by, instead of its target; kept in its profiles"),
	ROW("label", 0, OPT_LIST, "KEY=VALUE", labels, .help = "kept in the profiles and the summary, and shown in pictures, like env=prod; may be given again"),
	ROW("json", 0, OPT_FLAG, NULL, json, .help = "print the summary as JSON"),
	ROW("no-source", 0, OPT_FLAG, NULL, no_source, .help = "report.html: leave source lines out of the page"),
	ROW("no-demangle", 0, OPT_FLAG, NULL, no_demangle, .help = "leave C++, Rust, D and Haskell names as the linker knows them"),
	ROW("quiet", 'q', OPT_FLAG, NULL, quiet, .help = "print nothing but errors"),
	ROW("verbose", 'v', OPT_FLAG, NULL, verbose, .help = "print the whole summary, and say what is done meanwhile"),
	{ 0 },
};
/* clang-format on */

const struct opt_command record_options = {
	.name = "record",
	.synopsis = "[OPTION…] [-- CMD ARG…]",
	.doc = "Profiles processes, a command or the whole host: where they spend CPU time, what they wait for, "
	       "what memory they allocate and keep. Writes pprof, folded stacks, flame graphs, a memory trend "
	       "and a summary into a directory.",
	.opts = rows,
};

/* What stands behind the options: a command behind --, or a mistake. */
static int take_command(int argc, char **argv, int first, char ***ret_command, struct err *e)
{
	const char *word = argv[first];

	*ret_command = NULL;
	if (first >= argc)
		return 0;
	if (strcmp(argv[first - 1], "--") == 0) {
		*ret_command = &argv[first];
		return 0;
	}
	if (!word[strspn(word, "0123456789.")])
		return err_set(e, -EINVAL,
			       "\"%.64s\" is not understood: -d %.64s records so many seconds, "
			       "-p %.64s that process",
			       word, word, word);
	return err_set(e, -EINVAL,
		       "\"%.64s\" is not understood: to profile a command, put -- before it", word);
}

int cmd_record(int argc, char **argv)
{
	_cleanup_(strbuf_free) struct strbuf command_line = { 0 };
	struct run_args a = run_args_default;
	static pid_t pids[RUN_MAX_PIDS];
	struct run_config cfg = { .pids = pids };
	char **command = NULL;
	struct err e = { 0 };
	int first;

	shell_command_line(argc, argv,
			   &command_line); /* before options and operands are put apart */
	if (opt_parse(&record_options, argc, argv, &a, &first, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (event_list_asked(&a.events))
		return event_list_print(&e) < 0 ? command_fail(EXIT_NOTHING, &e) : EXIT_DONE;
	if (take_command(argc, argv, first, &command, &e) < 0 ||
	    run_args_config(&a, command, &cfg, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	cfg.command_line = command_line.s;
	if (recording_allowed(&e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	return recording_run(&a, &cfg, NULL);
}
