/*
 * memscope serve: a recording without an end, in windows, under a limit of its own.
 *
 * It is the run of `record --every --archive` with other defaults and with the components of run/serve/,
 * which take part where run_config.serve is set.
 */
#include "base/archive.h"
#include "base/cells.h"
#include "base/cleanup.h"
#include "base/notify.h"
#include "base/opt_file.h"
#include "base/shell_words.h"
#include "base/strbuf.h"
#include "cmd/recording.h"
#include "run/push_config.h"
#include "run/serve/serve_config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct serve_args {
	struct run_args run;
	struct opt_list listen, push, push_headers;
	const char *spool_limit;
	struct push_config push_config;
	struct serve_config serve;
	bool check_config;
};

/* struct serve_past, for the next run in this process: "SINCE LEVEL SOON MEMORY_ENDS". */
#define PAST_VARIABLE "MEMSCOPE_SERVE_PAST"
/* The descriptor that has the configuration which that run goes on with (opt_file_keep()). */
#define KEPT_VARIABLE "MEMSCOPE_SERVE_CONFIG"

#define LISTEN_DEFAULT "/run/memscope.sock"

#define KEPT_BYTES (4 << 20)

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
	ROW("only", 0, OPT_STRING, "SOURCE,…", run.only, .help = "some of oncpu, offcpu, alloc, growth, syscalls (default: all but syscalls; with -a: without alloc, too)"),
	ROW("event", 'e', OPT_LIST, "EVENT,…", run.events, .help = "stacks of these events, too: software and hardware events as perf names them, tracepoints (sched:sched_process_fork, syscalls:sys_enter_*), functions (uprobe:libc:malloc, uretprobe:…) and sites of USDT (usdt:python:gc__start); with /period=N/ one in N. may be given again (memscope help events)"),
	ROW("count", 0, OPT_LIST, "FUNC,…", run.counts, .help = "count each call of these functions, and how long it takes, too: FUNC, or FILE:FUNC; may be given again (memscope help events)"),
	ROW("frequency", 'F', OPT_U32, "HZ", run.hz, .min = 1, .max = 10000, .help = "on-CPU samples per second and CPU (default 19)"),
	ROW("interval", 0, OPT_DOUBLE, "SEC", run.interval_s, .min = 1, .max = 86400, .help = "a row of trend.csv every SEC seconds (default 10)"),
	ROW("lang", 0, OPT_STRING, "LANG,…", run.langs, .help = "frames of languages that have their own in stacks: auto (default: all that are known), off, or some of python,java,ghc and others (memscope help languages)"),
	ROW("no-wakers", 0, OPT_FLAG, NULL, run.no_wakers, .help = "do not look who ends waits: no profile wakers"),
	ROW("series", 0, OPT_LIST, "FILE|URL", run.series, .help = "what the targets work, to hold growth against, as in record; may be given again"),

	{ .name = "Windows", .kind = OPT_HEADING },
	ROW("archive", 0, OPT_STRING, "DIR", run.archive, .help = "write the windows into DIR/NAME, where NAME is \"host\" with -a, else the container's, the systemd service's or the command's"),
	ROW("every", 0, OPT_DOUBLE, "SEC", run.every_s, .min = 1, .max = 1e7, .help = "a window is SEC seconds long (default 120)"),
	ROW("keep", 0, OPT_STRING, "LIMIT,…", run.keep, .help = "remove the oldest windows until every limit is kept: an age (12h, 7d), a number (200), a size (20G), or several (default 7d,20G)"),
	ROW("when", 0, OPT_LIST, "CONDITION", run.when, .help = "write a window of the time before and up to now when a condition is met, as in record; may be given again"),
	ROW("before", 0, OPT_DOUBLE, "SEC", run.before_s, .min = 1, .max = 3600, .help = "with --when: so much of the time before is in it (default 30)"),
	ROW("rearm", 0, OPT_DOUBLE, "SEC", run.rearm_s, .min = 0, .max = 1e7, .help = "with --when: a condition counts again after it was false, and not before SEC seconds (default 60)"),
	ROW("label", 0, OPT_LIST, "KEY=VALUE", run.labels, .help = "kept in the profiles, like env=prod; may be given again"),

	{ .name = "Service", .kind = OPT_HEADING },
	ROW("config", 0, OPT_STRING, "FILE", serve.config, .not_in_file = true, .help = "read options from FILE, in lines like \"every = 60\"; those of the command line go before them. SIGHUP reads it again"),
	ROW("check-config", 0, OPT_FLAG, NULL, check_config, .not_in_file = true, .help = "check the options and those of --config, and end: with status 2 if there is a mistake"),

	{ .name = "HTTP", .kind = OPT_HEADING },
	ROW("listen", 0, OPT_LIST, "ADDRESS", listen, .help = "answer HTTP at unix:/PATH, 127.0.0.1:PORT or [::1]:PORT: /debug/pprof/, /metrics, /healthz; wider addresses need the three options below; off: nowhere (default unix:" LISTEN_DEFAULT ", of a systemd unit its RuntimeDirectory); may be given again"),
	ROW("listen-group", 0, OPT_STRING, "GROUP", serve.http.group, .help = "members of GROUP may use the sockets at unix:/PATH, too (mode 0660): they see every profile of the service"),
	ROW("tls-cert", 0, OPT_STRING, "FILE", serve.http.tls_cert, .help = "the certificate, as PEM, with which HTTPS is spoken at every address but unix:"),
	ROW("tls-key", 0, OPT_STRING, "FILE", serve.http.tls_key, .help = "its key, as PEM"),
	ROW("token-file", 0, OPT_STRING, "FILE", serve.http.token_file, .help = "clients must send the first line of FILE, as a bearer token or as a password, at every address but unix:"),

	{ .name = "Push", .kind = OPT_HEADING },
	ROW("push", 0, OPT_LIST, "STORE=URL", push, .help = "send the profiles of each window to pyroscope=URL (Pyroscope's push API) or otlp=URL (OpenTelemetry's profiles over HTTP, 1.11.0); may be given again"),
	ROW("push-token-file", 0, OPT_STRING, "FILE", push_config.token_file, .help = "send the first line of FILE as a bearer token, or, if it is like USER:PASSWORD, as these"),
	ROW("push-header", 0, OPT_LIST, "NAME: VALUE", push_headers, .help = "a header of each request, like \"X-Scope-OrgID: team\"; may be given again"),
	ROW("push-ca", 0, OPT_STRING, "FILE", push_config.ca_file, .help = "trust the certificates in FILE, as PEM, instead of the system's"),
	ROW("push-timeout", 0, OPT_DOUBLE, "SEC", push_config.timeout_s, .min = 0.1, .max = 3600, .help = "how long one request may take (default 30)"),
	ROW("spool", 0, OPT_STRING, "DIR", push_config.spool, .help = "keep what is not sent yet in DIR (default: .push in the archive)"),
	ROW("spool-limit", 0, OPT_STRING, "SIZE", spool_limit, .help = "what may wait there for each store; where it is passed, the oldest profiles go (default 1G)"),

	{ .name = "Limits", .kind = OPT_HEADING },
	ROW("max-overhead", 0, OPT_DOUBLE, "PCT", serve.own_limit, .min = 0.05, .max = 100000, .help = "what it may cost the host, in percent of one CPU (default 1): what costs more is gathered in a part of the time"),
	ROW("own-memory", 0, OPT_U32, "MIB", serve.own_memory_mb, .min = 0, .max = 1048576, .help = "what memscope's processes and the kernel's tables may take, in MiB (default 150, 0: no limit): where that is passed, the window is finished, and another run begins with empty tables"),
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

/* Under systemd /run is read-only but for the unit's own folder (RuntimeDirectory=). */
static const char *listen_by_default(void)
{
	static char address[128];
	const char *folder = getenv("RUNTIME_DIRECTORY");

	if (!folder || *folder != '/' || strchr(folder, ':'))
		return "unix:" LISTEN_DEFAULT;
	snprintf(address, sizeof(address), "unix:%.100s/http.sock", folder);
	return address;
}

/* Where HTTP is answered. */
static int complete_listen(struct serve_args *a, struct err *e)
{
	static const char *by_default[1];
	struct http_options *http = &a->serve.http;

	by_default[0] = listen_by_default();
	http->listen = a->listen.n ? a->listen.items : by_default;
	http->n_listen = a->listen.n ? a->listen.n : 1;
	a->serve.listen_default = !a->listen.n;
	if (a->listen.n == 1 && strcmp(a->listen.items[0], "off") == 0)
		http->n_listen = 0;
	return http_options_check(http, e);
}

static int complete_push(struct serve_args *a, struct err *e)
{
	struct push_config *push = &a->push_config;

	push->stores = a->push.items;
	push->n_stores = a->push.n;
	push->headers = a->push_headers.items;
	push->n_headers = a->push_headers.n;
	push->spool_bytes = 1 << 30;
	if (a->spool_limit && push_spool_size(a->spool_limit, &push->spool_bytes, e) < 0)
		return -EINVAL;
	return push_config_check(push, e);
}

/* What is not asked for is what a service needs. */
static int complete(struct serve_args *a, struct err *e)
{
	struct run_args *run = &a->run;

	if (!run->archive)
		return err_set(e, -EINVAL, "serve needs --archive DIR: where its windows go");
	if (!run->pids && !run->pattern && !run->containers && !run->cgroups)
		run->all = true;
	if (!run->keep)
		run->keep = "7d,20G";
	run->max_overhead = a->serve.own_limit;
	run->events_too = true;
	return 0;
}

/* The words after "serve", then `more` of them, up to NULL; not freed before the process ends. */
static char **same_words(int argc, char **argv, char *const *more)
{
	size_t n_more = 0;
	char **words;

	while (more[n_more])
		n_more++;
	words = calloc((size_t)argc + n_more + 2, sizeof(*words));
	if (!words)
		return NULL;
	words[0] = (char *)"memscope";
	memcpy(words + 1, argv, (size_t)argc * sizeof(*words));
	memcpy(words + 1 + argc, more, n_more * sizeof(*words));
	return words;
}

/* The descriptor that the run before has left; -1: the file is to be read. */
static int kept_config(void)
{
	const char *text = getenv(KEPT_VARIABLE);
	int fd = -1;

	if (text && (sscanf(text, "%d", &fd) != 1 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0))
		fd = -1;
	unsetenv(KEPT_VARIABLE);
	return fd;
}

/* Options of the command line and, where those do not have them, of the file. */
static int read_options(int argc, char **argv, struct serve_args *a, struct run_config *cfg,
			struct opt_file *file, struct err *e)
{
	static bool given[sizeof(rows) / sizeof(*rows)];
	_cleanup_(closep) int kept = kept_config();
	int first, rc;

	if (opt_parse_given(&serve_options, argc, argv, a, given, &first, e) < 0)
		return -EINVAL;
	if (first < argc)
		return err_set(e, -EINVAL, "serve takes no operands: \"%.64s\" is not understood",
			       argv[first]);
	if (a->serve.config &&
	    opt_file_read(&serve_options, a->serve.config, kept, given, a, file, e) < 0)
		return -EINVAL;
	rc = complete(a, e);
	if (rc == 0)
		rc = complete_listen(a, e);
	if (rc == 0)
		rc = complete_push(a, e);
	if (rc == 0)
		rc = run_args_config(&a->run, NULL, cfg, e);
	if (rc < 0 && a->serve.config)
		opt_file_blame(file, e);
	return rc;
}

/* Where that cannot be, the next run reads the file. */
static void hand_on_config(const struct opt_file *file)
{
	int fd = file->as_read ? opt_file_keep(file) : -1;
	char text[16];

	if (fd < 0 || fcntl(fd, F_SETFD, 0) < 0)
		return;
	snprintf(text, sizeof(text), "%d", fd);
	setenv(KEPT_VARIABLE, text, 1);
}

/* The next run, in this process but in nothing else that this one leaves; `file`: with these options, NULL: it reads them. */
static enum exit_status again(char **words, const struct serve_past *past,
			      const struct opt_file *file)
{
	struct err e = { 0 };
	_cleanup_(fclosep) FILE *children = fopen("/proc/thread-self/children", "re");
	char text[64 + 16 * SERVE_WRITERS];
	int n, pid;

	n = snprintf(text, sizeof(text), "%" PRIu64 " %u %u %u", past->since_ns, past->level,
		     past->soon, past->memory_ends);
	for (int i = 0; i < SERVE_WRITERS && children && fscanf(children, "%d", &pid) == 1; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %d", pid);
	setenv(PAST_VARIABLE, text, 1);
	close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
	if (file)
		hand_on_config(file);
	fflush(NULL);
	execv("/proc/self/exe", words);
	err_set(&e, -errno, "cannot begin the next run: %s", strerror(errno));
	return command_fail(EXIT_NOTHING, &e);
}

static struct serve_past past_read(void)
{
	const char *text = getenv(PAST_VARIABLE);
	struct serve_past past = { 0 };
	uint32_t level;
	int n = 0;

	if (!text || sscanf(text, "%" SCNu64 " %u %u %u%n", &past.since_ns, &level, &past.soon,
			    &past.memory_ends, &n) < 4)
		return past;
	past.level = level < SERVE_LEVELS ? level : SERVE_LEVELS - 1;
	text += n;
	for (int i = 0; i < SERVE_WRITERS && sscanf(text, "%d%n", &past.writers[i], &n) == 1; i++)
		text += n;
	unsetenv(PAST_VARIABLE);
	return past;
}

/* The second run in a row that ended too soon for memory is followed by one that gathers less. */
static struct serve_past past_of(const struct serve_past *before, const struct recording_end *end)
{
	struct serve_past next = { .since_ns = end->ns, .memory_ends = before->memory_ends };

	if (end->why != RUN_END_MEMORY)
		return next;
	next.memory_ends++;
	next.level = before->level;
	if (end->length_ns >= SERVE_SOON_NS)
		return next;
	next.soon = before->soon + 1;
	if (next.soon >= 2 && next.level < SERVE_LEVELS - 1) {
		next.level++;
		next.soon = 0;
	}
	return next;
}

/* What the runs before had no memory for is left out. */
static void gather_less(const struct serve_past *past, struct run_config *cfg)
{
	if (past->level == SERVE_ALL)
		return;
	cfg->no_langs = true;
	for (int i = 0; i < N_SOURCES && past->level == SERVE_ONCPU; i++)
		cfg->sources[i] &= i == SOURCE_ONCPU;
	err_warn(
		past->level == SERVE_ONCPU
			? "on-CPU samples alone, without frames of languages: runs with more ended "
			  "soon because --own-memory was passed"
			: "frames of languages are left out: runs with them ended soon because "
			  "--own-memory was passed");
}

/* SIGTERM or SIGINT came when the run had ended: another one would only begin and end. */
static bool is_asked_to_end(void)
{
	sigset_t set;

	return sigpending(&set) == 0 && (sigismember(&set, SIGTERM) || sigismember(&set, SIGINT));
}

/* Its windows are complete then; its manager ends them with this process. */
static void wait_for_children(void)
{
	notify_send("STOPPING=1");
	cells_end();
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

/* What comes before a run takes it is kept: SIGHUP would be the end of us; the others too, of a run that follows another. */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int cmd_serve(int argc, char **argv)
{
	static char *const check_words[] = { (char *)"--check-config", (char *)"--quiet", NULL };
	static char *const no_words[] = { NULL };
	_cleanup_(strbuf_free) struct strbuf command_line = { 0 };
	_cleanup_(opt_file_fini) struct opt_file file = { 0 };
	struct serve_args a = { .run = run_args_default,
				.push_config = { .timeout_s = 30 },
				.serve = { .own_limit = 1, .own_memory_mb = 150 } };
	char **same = same_words(argc, argv, no_words);
	static pid_t pids[RUN_MAX_PIDS];
	struct run_config cfg = { .pids = pids, .serve = &a.serve };
	struct recording_end end = { 0 };
	enum exit_status status;
	struct err e = { 0 };

	a.run.hz = 19;
	a.run.mem_mb = 48;
	a.run.interval_s = 10;
	a.run.every_s = 120;
	a.serve.check = same_words(argc, argv, check_words);
	shell_command_line(argc, argv, &command_line);
	if (read_options(argc, argv, &a, &cfg, &file, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	cfg.push = a.push_config.n_stores ? &a.push_config : NULL;
	if (a.check_config) {
		if (!a.run.quiet)
			puts("the options are understood");
		return EXIT_DONE;
	}
	a.serve.past = past_read();
	gather_less(&a.serve.past, &cfg);
	cfg.command_line = command_line.s;
	if (!same || !a.serve.check)
		return command_fail(EXIT_NOTHING, &(struct err){ .msg = "out of memory" });
	if (recording_allowed(&e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	hold_signals();
	signal(SIGPIPE, SIG_IGN); /* who reads our log may be started again */
	/* Of what each look allocates and frees, so much is kept: pages that come and go cost more than that they stay. */
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	mallopt(M_TOP_PAD, KEPT_BYTES / 4);
	a.serve.found_again = a.run.pattern;
	status = recording_run(&a.run, &cfg, &end);
	if (status == EXIT_DONE && end.goes_on && !is_asked_to_end()) {
		a.serve.past = past_of(&a.serve.past, &end);
		return again(same, &a.serve.past, end.new_config ? NULL : &file);
	}
	/* Of a run before, where none came after it: its target has not come again. */
	for (int i = 0; i < SERVE_WRITERS; i++)
		if (a.serve.past.writers[i])
			waitpid(a.serve.past.writers[i], NULL, 0);
	if (status == EXIT_DONE && end.goes_on)
		wait_for_children();
	if (end.handed_on)
		archive_close(
			cfg.archive); /* the process that wrote the last window could not: it was ours, too */
	return status;
}
