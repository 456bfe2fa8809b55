/*
 * memscope trace: a log of system calls, each with its arguments.
 */
#include "analyse/syscall_shapes.h"
#include "cmd/recording.h"
#include "run/target.h"
#include "run/trace/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trace_args {
	struct run_args run;
	const char *calls;
	bool failed, json, sums, stacks;
	double min_us, max_mb;
	uint32_t string, max_rate;
};

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct trace_args, field), __VA_ARGS__                          \
	}

/* clang-format off */
static const struct opt rows[] = {
	{ .name = "What to trace", .kind = OPT_HEADING },
	ROW("pid", 'p', OPT_STRING, "PID,…", run.pids, .help = "these processes, all their threads and children"),
	ROW("name", 'n', OPT_STRING, "PATTERN", run.pattern, .help = "the process whose full command line matches this regular expression"),
	ROW("container", 'c', OPT_STRING, "NAME,…", run.containers, .help = "the processes of these containers"),
	ROW("cgroup", 'G', OPT_STRING, "GROUP,…", run.cgroups, .help = "the processes in these control groups and below them"),
	ROW("no-children", 0, OPT_FLAG, NULL, run.no_children, .help = "leave out the children of the processes named"),
	ROW("duration", 'd', OPT_DOUBLE, "SEC", run.duration_s, .min = 0.1, .max = 1e7, .help = "end after SEC seconds; without it, at Ctrl-C or when the target ends"),

	{ .name = "Which calls", .kind = OPT_HEADING },
	ROW("calls", 'e', OPT_STRING, "CALL,…", calls, .help = "only these: names, or classes like %file, %desc, %network, %process, %memory, %signal, %ipc, %creds; \"trace=\" may stand before them; ! before all of them: all but these (default: all)"),
	ROW("failed", 'Z', OPT_FLAG, NULL, failed, .help = "only calls that failed"),
	ROW("min-us", 0, OPT_DOUBLE, "US", min_us, .min = 0, .max = 1e12, .help = "only calls that took US microseconds or longer"),
	ROW("max-rate", 0, OPT_U32, "N", max_rate, .min = 1, .max = 100000000, .help = "at most N calls a second, in parts of 134 ms; the others are counted where they are missing"),

	{ .name = "What to write", .kind = OPT_HEADING },
	ROW("output", 'o', OPT_STRING, "FILE", run.dir, .help = "write the log to FILE instead of standard output"),
	ROW("string-size", 's', OPT_U32, "N", string, .min = 0, .max = 256, .help = "bytes of buffers shown (default 32); paths are shown up to 1023"),
	ROW("max-size", 0, OPT_DOUBLE, "MIB", max_mb, .min = 0.001, .max = 1e9, .help = "end when the log has reached MIB mebibytes"),
	ROW("summary", 'C', OPT_FLAG, NULL, sums, .help = "at the end of the log a table of its calls: how many, how long, which errors"),
	ROW("stack", 'k', OPT_FLAG, NULL, stacks, .help = "below each call its user stack, as strace -k"),
	ROW("json", 0, OPT_FLAG, NULL, json, .help = "a JSON object for each call, one a line"),
	ROW("mem", 0, OPT_U32, "MIB", run.mem_mb, .min = 16, .max = 65536, .help = "memory for the kernel's tables, of which the ring of calls takes a quarter, up to 64 MiB (default 64)"),
	{ 0 },
};
/* clang-format on */

const struct opt_command trace_options = {
	.name = "trace",
	.synopsis = "[OPTION…] [-- CMD ARG…]",
	.doc = "Writes a line for each system call of processes, a container or a command, in the form of strace "
	       "-f -tt -T -y: time, thread, call, decoded arguments, result, duration. The target is never "
	       "stopped: calls go through a ring of fixed size, and those that find no room are counted where "
	       "they are missing (memscope help syscalls).",
	.opts = rows,
};

static int configure(struct trace_args *a, char **command, struct run_config *cfg,
		     struct trace_config *trace, bool *chosen, struct err *e)
{
	int r = calls_choose(a->calls ? a->calls : "all", chosen, e);

	if (r == 0)
		r = run_args_config(&a->run, command, cfg, e);
	if (r < 0)
		return r;
	for (int i = 0; i < N_SOURCES; i++)
		cfg->sources[i] = false;
	cfg->user_stacks = a->stacks;
	cfg->kernel_stacks = false;
	cfg->quiet = true;
	cfg->trace = trace;
	trace->failed = a->failed;
	trace->json = a->json;
	trace->sums = a->sums;
	trace->stacks = a->stacks;
	trace->min_ns = (uint64_t)(a->min_us * 1000);
	trace->most_bytes = a->string;
	trace->max_rate = a->max_rate;
	trace->max_bytes = (uint64_t)(a->max_mb * 1048576);
	trace->wanted = chosen;
	return 0;
}

/* What was lost is known where the log ends. */
static enum exit_status say_end(const struct trace_config *t, const struct run *r)
{
	const struct trace_result *res = t->result;

	if (res->error) {
		struct err e = { 0 };

		if (res->error == EPIPE)
			return EXIT_DONE;
		err_set(&e, -res->error, "the log cannot be written: %s", strerror(res->error));
		return command_fail(EXIT_NOTHING, &e);
	}
	if (res->lost || res->over)
		fprintf(stderr,
			"memscope: %llu calls in the log, %llu lost for want of room, %llu left out by "
			"--max-rate\n",
			(unsigned long long)res->calls, (unsigned long long)res->lost,
			(unsigned long long)res->over);
	if (r->oom) {
		err_print("out of memory: calls are missing in the log");
		return EXIT_PARTIAL;
	}
	return res->lost ? EXIT_PARTIAL : EXIT_DONE;
}

/*
 * Arguments may be secrets: it is for its owner alone. What is in it stays until the run has begun; *ret_new: there was no file.
 */
static FILE *open_log(const char *path, bool *ret_new)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *f;

	*ret_new = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (f)
		fd = -1;
	return f;
}

/* What is no file, a pipe or a terminal, cannot be and need not be. */
static void empty_log(FILE *log)
{
	struct stat st;

	if (fstat(fileno(log), &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fileno(log), 0) < 0)
		fprintf(stderr, "memscope: the log's old content stays behind the new: %s\n",
			strerror(errno));
}

/* *ret_begun: the log is this run's. */
static enum exit_status trace_run(struct run_config *cfg, bool *ret_begun)
{
	struct err e = { 0 }, later = { 0 };
	static char buffer[256 * 1024];
	static struct run r;
	enum exit_status status;
	int rc, rc2;

	rc = run_begin(&r, cfg, &e);
	*ret_begun = rc == 0;
	if (rc == 0 && cfg->trace->out != stdout)
		empty_log(cfg->trace->out);
	if (rc == 0) /* the log flushes it several times a second */
		setvbuf(cfg->trace->out, buffer, _IOFBF, sizeof(buffer));
	if (rc == 0)
		rc = run_loop(&r, &e);
	rc2 = run_end(&r, &later);
	if (rc == 0 && rc2 < 0) {
		e = later;
		rc = rc2;
	}
	if (rc < 0)
		status = command_fail(EXIT_NOTHING, &e);
	else
		status = say_end(cfg->trace, &r);
	run_free(&r);
	return status;
}

int cmd_trace(int argc, char **argv)
{
	struct trace_args a = { .run = run_args_default, .string = 32 };
	static pid_t pids[RUN_MAX_PIDS];
	static bool chosen[TRACE_CALLS];
	struct run_config cfg = { .pids = pids };
	struct trace_result result = { 0 };
	struct trace_config trace = { .out = stdout, .result = &result };
	char **command;
	struct err e = { 0 };
	enum exit_status status;
	bool is_new = false, begun;
	int first;

	if (opt_parse(&trace_options, argc, argv, &a, &first, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	command = first < argc ? &argv[first] : NULL;
	if (configure(&a, command, &cfg, &trace, chosen, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (recording_allowed(&e) < 0 || recording_targets(&a.run, &cfg, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (a.run.dir) {
		trace.out = open_log(a.run.dir, &is_new);
		if (!trace.out) {
			err_set(&e, -errno, "cannot write \"%s\": %s", a.run.dir, strerror(errno));
			return command_fail(EXIT_NOTHING, &e);
		}
	}
	status = trace_run(&cfg, &begun);
	if (is_new && !begun)
		unlink(a.run.dir);
	if (fclose(trace.out) != 0 && status == EXIT_DONE && errno != EPIPE) {
		err_set(&e, -errno, "the log cannot be written: %s", strerror(errno));
		return command_fail(EXIT_NOTHING, &e);
	}
	return status;
}
