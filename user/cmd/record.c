/*
 * memscope record, the default command: profile for a while, write the files, print the summary.
 */
#include "base/cleanup.h"
#include "base/shell_words.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "collect/probes/uprobes.h"
#include "collect/stacks/user_stacks.h"
#include "run/about.h"
#include "run/archive_name.h"
#include "run/run.h"
#include "run/target.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MAX_PIDS 1024
#define MAX_CPUS 4096

struct record_args {
	const char *pids, *pattern, *cpus, *only, *dir, *alloc_rate, *archive, *keep, *langs;
	const char *containers, *cgroups, *title;
	struct opt_list labels, when, series;
	bool all, user_only, kernel_only, no_children, quiet, verbose, json, no_demangle, no_source,
		inject;
	bool python_objects, fine;
	uint32_t tid, hz, mem_mb;
	double duration_s, delay_s, interval_s, every_s, max_overhead, min_block_us, max_block_us;
	double census_s;
	double before_s, rearm_s;
	int alloc, alloc_scope, by, offcpu, native;
};

#define ALLOC_NOT_GIVEN (-1)

enum { BY_PROCESS, BY_THREAD, BY_CONTAINER, BY_NONE };

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct record_args, field), __VA_ARGS__                         \
	}

/* clang-format off */
static const struct opt rows[] = {
	{ .name = "What to profile", .kind = OPT_HEADING },
	ROW("pid", 'p', OPT_STRING, "PID,…", pids, .help = "these processes, all their threads and children"),
	ROW("name", 'n', OPT_STRING, "PATTERN", pattern, .help = "the process whose full command line matches this regular expression"),
	ROW("tid", 't', OPT_U32, "TID", tid, .min = 1, .max = 4194304, .help = "this thread only"),
	ROW("container", 'c', OPT_STRING, "NAME,…", containers, .help = "the processes of these containers, by the name or id that podman, docker or containerd knows; also when one is started again"),
	ROW("cgroup", 'G', OPT_STRING, "GROUP,…", cgroups, .help = "the processes in these control groups and below them: a directory, or a path as in /proc/PID/cgroup"),
	ROW("all", 'a', OPT_FLAG, NULL, all, .help = "the whole host, all processes"),
	ROW("cpus", 'C', OPT_STRING, "CPUS", cpus, .help = "on-CPU samples of these CPUs only, like 0,2-3"),
	ROW("no-children", 0, OPT_FLAG, NULL, no_children, .help = "leave out the children of the processes named"),

	{ .name = "How long", .kind = OPT_HEADING },
	ROW("duration", 'd', OPT_DOUBLE, "SEC", duration_s, .min = 0.1, .max = 1e7, .help = "end after SEC seconds; without it, at Ctrl-C or when the target ends"),
	ROW("delay", 0, OPT_DOUBLE, "SEC", delay_s, .min = 0, .max = 1e7, .help = "begin SEC seconds from now"),
	ROW("interval", 0, OPT_DOUBLE, "SEC", interval_s, .min = 0.1, .max = 86400, .help = "a row of trend.csv every SEC seconds (default 1)"),

	{ .name = "What to gather", .kind = OPT_HEADING },
	ROW("only", 0, OPT_STRING, "SOURCE,…", only, .help = "some of oncpu, offcpu, alloc, growth (default: all; with -a: without alloc)"),
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
	ROW("alloc-scope", 0, OPT_CHOICE, "SCOPE", alloc_scope, .choices = "process|file", .help = "process (default): probes in the target alone; file: in every process that maps the same library, so that a forked child is traced from its first call"),
	ROW("python-objects", 0, OPT_FLAG, NULL, python_objects, .help = "with --alloc=exact or bursts: every object that CPython allocates as well, not only what it takes from malloc; millions a second. Refused by name where not all calls can be seen: they are inlined, as in Debian's python3, or there are no symbols. --inject sees them in any case"),
	ROW("offcpu", 0, OPT_CHOICE, "MODE", offcpu, .choices = "auto|exact|sampled", .help = "waits: the length of each is taken, and its stack: of all (exact), of some by chance where a thread switches over a thousand times a second (sampled), or that once all cost more than --max-overhead leaves for it (auto, the default)"),
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

/* "python,java" → languages; 0: all. */
static int choose_langs(const struct record_args *a, struct run_config *cfg, struct err *e)
{
	const char *at = a->langs;

	cfg->native_frames = a->native == 1;
	cfg->no_langs = at && !strcmp(at, "off");
	if (!at || cfg->no_langs || !strcmp(at, "auto"))
		return 0;
	while (at) {
		const char *end = strchrnul(at, ',');
		uint32_t bit = user_stacks_lang(at, (size_t)(end - at));

		if (!bit)
			return err_set(e, -EINVAL, "--lang %.64s: expected auto, off or some of %s",
				       a->langs, user_stacks_lang_names());
		cfg->langs |= bit;
		at = *end ? end + 1 : NULL;
	}
	return 0;
}

/* "oncpu,alloc" → sources; without --only all, but under -a no allocations. */
static int choose_sources(const struct record_args *a, struct run_config *cfg, struct err *e)
{
	const char *s = a->only;

	cfg->alloc = a->alloc == ALLOC_NOT_GIVEN ? ALLOC_AUTO : (enum alloc_mode)a->alloc;
	if (a->inject && (a->alloc == ALLOC_NOT_GIVEN || a->alloc == ALLOC_SAMPLED))
		cfg->alloc = ALLOC_SAMPLED;
	else if (a->inject && a->alloc != ALLOC_EXACT)
		return err_set(e, -EINVAL, "--inject is for --alloc=sampled and --alloc=exact");
	if (a->inject && !a->pids && !a->pattern && !a->tid &&
	    !(cfg->command && cfg->alloc == ALLOC_EXACT))
		return err_set(e, -EINVAL, "--inject is for one running process (-p, -n, -t)%s",
			       cfg->command
				       ? ": a command gets the library by --alloc=sampled alone"
				       : "");
	cfg->inject = a->inject;
	if (a->python_objects && cfg->alloc != ALLOC_EXACT && cfg->alloc != ALLOC_BURSTS)
		return err_set(e, -EINVAL,
			       "--python-objects goes with --alloc=exact or --alloc=bursts");
	/* The library sees them in any case. */
	cfg->python_objects = a->python_objects || (a->inject && cfg->alloc == ALLOC_EXACT);
	for (int i = 0; i < N_SOURCES; i++)
		cfg->sources[i] = !s;
	while (s && *s) {
		size_t len = strcspn(s, ",");
		int i = 0;

		while (i < N_SOURCES &&
		       (strlen(source_names[i]) != len || strncmp(source_names[i], s, len) != 0))
			i++;
		if (i == N_SOURCES)
			return err_set(e, -EINVAL,
				       "--only takes oncpu, offcpu, alloc and growth, not \"%.*s\"",
				       (int)len, s);
		cfg->sources[i] = true;
		s += len + (s[len] == ',');
	}
	cfg->alloc_asked = a->inject || a->alloc == ALLOC_EXACT || a->alloc == ALLOC_SAMPLED ||
			   a->alloc == ALLOC_BURSTS || (a->only && cfg->sources[SOURCE_ALLOC]);
	if (cfg->all && cfg->alloc != ALLOC_EXACT && cfg->alloc != ALLOC_SAMPLED &&
	    cfg->alloc != ALLOC_BURSTS)
		cfg->sources[SOURCE_ALLOC] = false;
	if (cfg->alloc == ALLOC_OFF)
		cfg->sources[SOURCE_ALLOC] = false;
	if (cfg->all && cfg->alloc == ALLOC_EXACT)
		cfg->file_scope = true;
	for (int i = 0; i < N_SOURCES; i++)
		if (cfg->sources[i])
			return 0;
	return err_set(e, -EINVAL, "nothing is left to gather: see --only and --alloc");
}

/* "512K", "1M": 1 to 1G. */
static int choose_rate(const struct record_args *a, struct run_config *cfg, struct err *e)
{
	unsigned long long n;
	char *end;

	cfg->alloc_rate = 512 << 10;
	if (!a->alloc_rate)
		return 0;
	if (cfg->alloc != ALLOC_SAMPLED || (!cfg->command && !cfg->inject))
		return err_set(
			e, -EINVAL,
			"--alloc-rate is for --alloc=sampled -- CMD and --inject: a process that runs has "
			"its own rate (MEMSCOPE_ALLOC_RATE when it was started)");
	n = strtoull(a->alloc_rate, &end, 10);
	for (const char *units = "KMG", *u = units; *end && u < units + 3; u++)
		if ((*end & ~0x20) == *u && !end[1]) {
			n = n > 1 << 30 ? n : n << (10 * (u - units + 1));
			end++;
			break;
		}
	if (a->alloc_rate[0] < '0' || a->alloc_rate[0] > '9' || *end || !n || n > 1 << 30)
		return err_set(e, -EINVAL,
			       "--alloc-rate takes bytes, 1 to 1G, like 512K: not \"%s\"",
			       a->alloc_rate);
	cfg->alloc_rate = n;
	return 0;
}

static int choose_triggers(const struct record_args *a, struct run_config *cfg, struct err *e)
{
	static struct trigger when[sizeof(a->when.items) / sizeof(*a->when.items)];

	cfg->when = when;
	for (uint32_t i = 0; i < a->when.n; i++) {
		if (trigger_parse(a->when.items[i], &when[i], e) < 0)
			return -EINVAL;
		if (when[i].what == TRIGGER_ALLOCATED && !cfg->sources[SOURCE_ALLOC])
			return err_set(
				e, -EINVAL,
				"--when '%s' needs allocations, which --only, --alloc=off or -a "
				"leave out",
				when[i].text);
	}
	cfg->n_when = a->when.n;
	return 0;
}

static int choose_windows(const struct record_args *a, struct run_config *cfg, struct err *e)
{
	cfg->every_s = a->every_s;
	if (!a->every_s && !a->archive && a->keep)
		return err_set(e, -EINVAL, "--keep goes with --every SEC or --archive DIR");
	if (a->series.n > 8)
		return err_set(e, -EINVAL, "--series may be given 8 times, not %u", a->series.n);
	cfg->series = a->series.items;
	cfg->n_series = a->series.n;
	if (!a->when.n && (a->before_s > 0 || a->rearm_s >= 0))
		return err_set(e, -EINVAL, "--before and --rearm go with --when CONDITION");
	cfg->before_s = a->before_s > 0 ? a->before_s : 30;
	cfg->rearm_s = a->rearm_s >= 0 ? a->rearm_s : 60;
	if (choose_triggers(a, cfg, e) < 0)
		return -EINVAL;
	if (a->archive && a->dir)
		return err_set(e, -EINVAL,
			       "-o and --archive both say where the files go: give one");
	return a->keep ? keep_parse(a->keep, "--keep", &cfg->keep, e) : 0;
}

static int choose_targets(const struct record_args *a, char **command, struct run_config *cfg,
			  struct err *e)
{
	int given = !!a->pids + !!a->pattern + !!a->tid + a->all + !!a->containers + !!a->cgroups +
		    !!command;
	int n;

	if (given != 1)
		return err_set(
			e, -EINVAL,
			given ? "name one kind of target: -p, -n, -t, -c, -G, -a or -- CMD"
			      : "what should be profiled? -p PID, -n PATTERN, -t TID, -c CONTAINER, "
				"-G CGROUP, -a, or -- CMD "
				"(memscope --help)");
	if (a->no_children && (a->containers || a->cgroups))
		return err_set(
			e, -EINVAL,
			"--no-children is about -p: all that is in a control group belongs to it");
	if (a->containers && groups_check("-c", a->containers, e) < 0)
		return -EINVAL;
	if (a->cgroups && groups_check("-G", a->cgroups, e) < 0)
		return -EINVAL;
	if (a->all && a->census_s > 0)
		return err_set(e, -EINVAL, "--census is of one process: name it, not -a");
	cfg->all = a->all;
	cfg->command = command;
	cfg->tid = (pid_t)a->tid;
	if (a->pids) {
		n = target_parse_pids(a->pids, "-p", cfg->pids, MAX_PIDS, e);
		if (n < 0)
			return n;
		cfg->n_pids = (uint32_t)n;
	}
	return 0;
}

/* The groups, and who is in them now. */
static int find_groups(const struct record_args *a, struct run_config *cfg, struct err *e)
{
	static struct cgroup_mounts mounts;
	static struct group groups[GROUPS_MAX];
	int n = cgroup_mounts_read(&mounts, e);

	if (n < 0)
		return n;
	n = a->cgroups ? groups_of_cgroups(&mounts, a->cgroups, groups, e)
		       : groups_of_containers(&mounts, a->containers, groups, e);
	if (n < 0)
		return n;
	cfg->mounts = &mounts;
	cfg->groups = groups;
	cfg->n_groups = (uint32_t)n;
	cfg->n_pids = groups_processes(&mounts, groups, cfg->n_groups, cfg->pids, MAX_PIDS);
	return 0;
}

/* What needs /proc: a target that is not there is not a mistake of usage. */
static int find_targets(const struct record_args *a, struct run_config *cfg, struct err *e)
{
	int r = 0;

	if (a->containers || a->cgroups)
		return find_groups(a, cfg, e);
	if (a->pattern)
		r = target_find(a->pattern, cfg->pids, e);
	else if (a->tid)
		r = target_of_thread((pid_t)a->tid, cfg->pids, e);
	if (r < 0)
		return r;
	if (a->pattern || a->tid)
		cfg->n_pids = 1;
	for (uint32_t i = 0; i < cfg->n_pids; i++) {
		r = target_check(cfg->pids[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* "web+db" */
static void groups_word(const struct group *groups, uint32_t n, char *out, uint32_t cap)
{
	struct strbuf b = { 0 };

	for (uint32_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s%s", i ? "+" : "", group_title(&groups[i]));
	target_file_word(b.s ? b.s : "", out, cap);
	strbuf_free(&b);
}

/* What is profiled, in one word that is fit for a file name. */
static void target_name(const struct run_config *cfg, char *out, uint32_t cap)
{
	if (cfg->command) {
		const char *base = strrchr(cfg->command[0], '/');

		target_file_word(base ? base + 1 : cfg->command[0], out, cap);
	} else if (cfg->n_groups) {
		groups_word(cfg->groups, cfg->n_groups, out, cap);
	} else if (cfg->all) {
		snprintf(out, cap, "host");
	} else {
		target_file_name(cfg->pids[0], out, cap);
	}
}

/* DIR/NAME/STAMP of a single run in an archive, numbered if another run has the same second. */
static int make_run_dir(const char *of_target, const char *stamp, char *out, size_t cap,
			struct err *e)
{
	int nth = 1;

	if (mkdir(of_target, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "cannot make the directory '%s': %s", of_target,
			       strerror(errno));
	snprintf(out, cap, "%s/%s", of_target, stamp);
	while (mkdir(out, 0700) < 0) {
		if (errno != EEXIST || ++nth > 1000)
			return err_set(e, -errno, "cannot make the output directory '%s': %s", out,
				       strerror(errno));
		snprintf(out, cap, "%s/%s-%d", of_target, stamp, nth);
	}
	return 0;
}

/*
 * Where the files go: it is made, and can be written to. `stamp`: when the run began. `of_target`: in an
 * archive, the directory of all runs of this target.
 */
static int make_dir(const struct run_config *cfg, const struct record_args *a, const char *stamp,
		    char *of_target, char *out, size_t cap, struct err *e)
{
	char name[64];
	struct stat st;

	if (a->archive && cfg->n_pids && !cfg->n_groups && !cfg->command && !cfg->all)
		archive_name_of(cfg->pids[0], a->pattern, name, sizeof(name));
	else
		target_name(cfg, name, sizeof(name));
	if (a->archive && mkdir(a->archive, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "cannot make the directory '%s': %s", a->archive,
			       strerror(errno));
	if (a->archive)
		snprintf(of_target, cap, "%s/%s", a->archive, name);
	if (a->archive && !a->every_s)
		return make_run_dir(of_target, stamp, out, cap, e);
	if (a->dir)
		snprintf(out, cap, "%s", a->dir);
	else if (a->archive)
		snprintf(out, cap, "%s", of_target);
	else if (cfg->all || cfg->command || cfg->n_groups)
		snprintf(out, cap, "memscope-%s-%s", name, stamp);
	else
		snprintf(out, cap, "memscope-%s-%d-%s", name, (int)cfg->pids[0], stamp);
	if (mkdir(out, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return err_set(e, -errno, "cannot make the output directory '%s': %s", out,
			       strerror(errno));
	if (stat(out, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR,
			       "the output directory '%s' is a file: name another with -o", out);
	if (access(out, W_OK) < 0)
		return err_set(e, -errno, "cannot write to '%s': %s", out, strerror(errno));
	return 0;
}

/* A name that others chose, for the terminal. Until the next call. */
static const char *shown(const char *name)
{
	static struct strbuf b;

	strbuf_reset(&b);
	strbuf_add_clean(&b, name, strnlen(name, 64));
	return b.s ? b.s : "";
}

static void say_ready(const struct run *r)
{
	const struct run_config *cfg = r->cfg;
	uint32_t members = targets_count(r).members;

	if (cfg->quiet)
		return;
	if (cfg->all)
		fprintf(stderr, "memscope: profiling the whole host");
	else if (cfg->n_groups)
		fprintf(stderr, "memscope: profiling %s%s, %u process%s",
			shown(group_title(&cfg->groups[0])), cfg->n_groups > 1 ? " and others" : "",
			members, members == 1 ? "" : "es");
	else if (cfg->command)
		fprintf(stderr, "memscope: profiling '%s' (process %d)", shown(cfg->command[0]),
			(int)targets_command(r));
	else
		fprintf(stderr, "memscope: profiling process %d%s", (int)cfg->pids[0],
			cfg->n_pids > 1 ? " and others" : "");
	fprintf(stderr, " at %u Hz; Ctrl-C ends\n", cfg->hz);
	if (r->alloc.reason && *r->alloc.reason)
		err_print(r->alloc.reason);
	for (uint32_t i = 0; i < r->notes.n; i++)
		err_print(r->notes.text[i]);
}

/* Runs, and writes whatever was gathered, also after an error. */
static int record(struct run_config *cfg)
{
	const char **about;
	static struct run r;
	struct err e = {}, later = {};
	uint32_t said;
	int rc, rc2;

	rc = run_begin(&r, cfg, &e);
	if (rc < 0) {
		command_fail(EXIT_NOTHING, &e);
		run_end(&r, NULL);
		run_free(&r);
		uprobes_wait();
		return EXIT_NOTHING;
	}
	about = about_lines(cfg, cfg->command ? targets_command(&r) : 0);
	cfg->about = about;
	say_ready(&r);
	said = r.notes.n;
	rc = run_loop(&r, &e);
	rc2 = run_end(&r, &later);
	if (rc == 0 && rc2 < 0) {
		rc = rc2;
		e = later;
	}
	if (rc < 0) {
		r.end.why = RUN_END_ERROR;
		run_note(&r, true, "%s", e.msg);
	}
	rc2 = run_write(&r, &later);
	/* What is missing is named on stderr where no summary is there to read. */
	for (uint32_t i = said; i < r.notes.n && (cfg->quiet || cfg->json); i++)
		if (r.notes.missing[i])
			err_print(r.notes.text[i]);
	if (rc2 < 0)
		command_fail(EXIT_NOTHING, &later);
	rc = rc2 < 0 ? EXIT_NOTHING : r.notes.partial ? EXIT_PARTIAL : EXIT_DONE;
	run_free(&r);
	about_free(about);
	uprobes_wait();
	return rc;
}

/* Those of a run as a whole, which stay beside the windows with its stamp. */
static const char *const run_files[] = {
	"trend.csv",    "rss_breakdown.csv", "live_series.csv", "alloc_series.csv",
	"workload.csv", "sites.csv",         "sites.pb.gz",     "census.csv",
	"summary.txt",  "summary.json",      "report.html",     NULL,
};
static const char *const no_files[] = { NULL };

static void keep_command_line(int argc, char **argv, struct strbuf *out)
{
	strbuf_puts(out, "memscope");
	for (int i = 1; i < argc; i++)
		shell_word_add(out, argv[i]);
}

int cmd_record(int argc, char **argv)
{
	_cleanup_(strbuf_free) struct strbuf command_line = { 0 };
	struct record_args a = {
		.hz = 99,
		.mem_mb = 64,
		.interval_s = 1,
		.max_overhead = 5,
		.alloc = ALLOC_NOT_GIVEN,
		.rearm_s = -1,
	};
	static pid_t pids[MAX_PIDS];
	static bool cpus[MAX_CPUS];
	struct run_config cfg = { .pids = pids };
	char dir[4096], of_target[4096] = "", stamp[32], **command = NULL;
	_cleanup_(closep) int hold_fd = -1;
	time_t now = time(NULL);
	struct err e = {};
	struct tm tm;
	int first, r;

	keep_command_line(argc, argv,
			  &command_line); /* before options and operands are put apart */
	if (opt_parse(&record_options, argc, argv, &a, &first, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (first < argc) {
		if (strcmp(argv[first - 1], "--") != 0) {
			const char *word = argv[first];

			if (!word[strspn(word, "0123456789.")])
				err_set(&e, -EINVAL,
					"\"%.64s\" is not understood: -d %.64s records so many seconds, "
					"-p %.64s that process",
					word, word, word);
			else
				err_set(&e, -EINVAL,
					"\"%.64s\" is not understood: to profile a command, put -- before it",
					word);
			return command_fail(EXIT_USAGE, &e);
		}
		command = &argv[first];
	}
	for (uint32_t i = 0; i < a.labels.n; i++)
		if (about_check_label(a.labels.items[i], &e) < 0)
			return command_fail(EXIT_USAGE, &e);
	if (a.user_only && a.kernel_only) {
		err_set(&e, -EINVAL,
			"-U and -K exclude each other: without either, both stacks are kept");
		return command_fail(EXIT_USAGE, &e);
	}
	if (choose_targets(&a, command, &cfg, &e) < 0 || choose_sources(&a, &cfg, &e) < 0 ||
	    choose_langs(&a, &cfg, &e) < 0 || choose_rate(&a, &cfg, &e) < 0 ||
	    choose_windows(&a, &cfg, &e) < 0 ||
	    (a.pattern && target_check_pattern(a.pattern, &e) < 0))
		return command_fail(EXIT_USAGE, &e);
	if (a.cpus) {
		if (target_parse_cpus(a.cpus, cpus, MAX_CPUS, &e) < 0)
			return command_fail(EXIT_USAGE, &e);
		if (target_check_cpus(cpus, MAX_CPUS, &e) < 0)
			return command_fail(EXIT_USAGE, &e);
		cfg.cpus = cpus;
		cfg.n_cpus = MAX_CPUS;
	}
	if (a.max_block_us > 0 && a.min_block_us > a.max_block_us) {
		err_set(&e, -EINVAL, "--min-block %g is more than --max-block %g: no wait is both",
			a.min_block_us, a.max_block_us);
		return command_fail(EXIT_USAGE, &e);
	}
	cfg.waits = (enum waits_mode)a.offcpu;
	cfg.wait_min_ns = (uint64_t)(a.min_block_us * 1000);
	cfg.wait_max_ns = (uint64_t)(a.max_block_us * 1000);
	cfg.duration_s = a.duration_s;
	cfg.delay_s = a.delay_s;
	cfg.hz = a.hz;
	cfg.fine = a.fine;
	cfg.file_scope |= a.alloc_scope == 1;
	cfg.max_overhead = a.max_overhead;
	cfg.children = !a.no_children && !a.tid;
	cfg.user_stacks = !a.kernel_only;
	cfg.kernel_stacks = !a.user_only;
	cfg.interval_s = a.interval_s;
	cfg.census_s = a.census_s;
	cfg.mem_mb = a.mem_mb;
	cfg.by = a.by == BY_THREAD ? "thread" : a.by == BY_CONTAINER ? "container" : NULL;
	cfg.no_comm = a.by == BY_NONE;
	cfg.command_line = command_line.s;
	cfg.title = a.title;
	cfg.labels = a.labels.items;
	cfg.n_labels = a.labels.n;
	cfg.quiet = a.quiet;
	cfg.verbose = a.verbose;
	cfg.json = a.json;
	cfg.no_demangle = a.no_demangle;
	cfg.no_source = a.no_source;
	if (geteuid() != 0) {
		err_set(&e, -EPERM,
			"profiling needs root, to load BPF programs and to read other processes: run it with sudo");
		return command_fail(EXIT_NOTHING, &e);
	}
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	if (find_targets(&a, &cfg, &e) < 0 ||
	    make_dir(&cfg, &a, stamp, of_target, dir, sizeof(dir), &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	cfg.dir = dir;
	if (a.every_s > 0 &&
	    archive_open(dir, stamp, a.archive ? run_files : no_files, &cfg.archive, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (a.archive && cfg.archive)
		cfg.stamp = archive_stamp(cfg.archive);
	if (archive_hold_run(dir, &hold_fd, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	target_raise_files();
	r = record(&cfg);
	archive_close(cfg.archive);
	if (r != EXIT_NOTHING && a.archive && a.keep && !a.every_s &&
	    archive_prune(of_target, &cfg.keep, &(struct pruned){ 0 }, &e) < 0)
		r = command_fail(EXIT_PARTIAL, &e);
	if (r == EXIT_NOTHING)
		rmdir(dir); /* if it is still empty */
	return r;
}
