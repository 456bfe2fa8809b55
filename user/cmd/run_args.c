#include "cmd/run_args.h"
#include "collect/stacks/user_stacks.h"
#include "run/about.h"
#include "run/target.h"

#include <errno.h>
#include <string.h>

#define MAX_CPUS 4096

enum { BY_PROCESS, BY_THREAD, BY_CONTAINER, BY_NONE };

const struct run_args run_args_default = {
	.hz = 99,
	.mem_mb = 64,
	.interval_s = 1,
	.max_overhead = 5,
	.alloc = ALLOC_NOT_GIVEN,
	.rearm_s = -1,
};

/* "python,java" → languages; 0: all. */
static int choose_langs(const struct run_args *a, struct run_config *cfg, struct err *e)
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

/* Before sources: those that -e names. */
static int choose_events(const struct run_args *a, struct run_config *cfg, struct err *e)
{
	static struct event_spec specs[EVENT_SPECS_MAX];
	int r = 0;

	cfg->n_events = 0;
	cfg->events = specs;
	for (uint32_t i = 0; i < a->events.n && r == 0; i++)
		r = events_parse(a->events.items[i], specs, &cfg->n_events, e);
	for (uint32_t i = 0; i < a->counts.n && r == 0; i++)
		r = counts_parse(a->counts.items[i], specs, &cfg->n_events, e);
	return r < 0 ? -EINVAL : 0;
}

/* "oncpu,alloc" → sources; without --only all, but under -a no allocations. */
static int choose_sources(const struct run_args *a, struct run_config *cfg, struct err *e)
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
		cfg->sources[i] = !s && i != SOURCE_SYSCALLS && i != SOURCE_EVENTS &&
				  (!cfg->n_events || a->events_too);
	while (s && *s) {
		size_t len = strcspn(s, ",");
		int i = 0;

		while (i < N_SOURCES &&
		       (strlen(source_names[i]) != len || strncmp(source_names[i], s, len) != 0))
			i++;
		if (i == N_SOURCES || (i == SOURCE_EVENTS && !cfg->n_events))
			return err_set(
				e, -EINVAL,
				"--only takes oncpu, offcpu, alloc, growth and syscalls, not \"%.*s\"%s",
				(int)len, s, i < N_SOURCES ? ": -e says which events" : "");
		cfg->sources[i] = true;
		s += len + (s[len] == ',');
	}
	cfg->sources[SOURCE_EVENTS] = cfg->n_events > 0;
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
static int choose_rate(const struct run_args *a, struct run_config *cfg, struct err *e)
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

static int choose_triggers(const struct run_args *a, struct run_config *cfg, struct err *e)
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

static int choose_windows(const struct run_args *a, struct run_config *cfg, struct err *e)
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

static int choose_targets(const struct run_args *a, char **command, struct run_config *cfg,
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
		n = target_parse_pids(a->pids, "-p", cfg->pids, RUN_MAX_PIDS, e);
		if (n < 0)
			return n;
		cfg->n_pids = (uint32_t)n;
	}
	return 0;
}

static int choose_cpus(const struct run_args *a, struct run_config *cfg, struct err *e)
{
	static bool cpus[MAX_CPUS];

	if (!a->cpus)
		return 0;
	memset(cpus, 0, sizeof(cpus));
	if (target_parse_cpus(a->cpus, cpus, MAX_CPUS, e) < 0 ||
	    target_check_cpus(cpus, MAX_CPUS, e) < 0)
		return -EINVAL;
	cfg->cpus = cpus;
	cfg->n_cpus = MAX_CPUS;
	return 0;
}

/* What needs no choice. */
static void take_over(const struct run_args *a, struct run_config *cfg)
{
	cfg->waits = (enum waits_mode)a->offcpu;
	cfg->wait_min_ns = (uint64_t)(a->min_block_us * 1000);
	cfg->wait_max_ns = (uint64_t)(a->max_block_us * 1000);
	cfg->duration_s = a->duration_s;
	cfg->delay_s = a->delay_s;
	cfg->hz = a->hz;
	cfg->fine = a->fine;
	cfg->file_scope |= a->alloc_scope == 1;
	cfg->max_overhead = a->max_overhead;
	cfg->children = !a->no_children && !a->tid;
	cfg->user_stacks = !a->kernel_only;
	cfg->kernel_stacks = !a->user_only;
	cfg->interval_s = a->interval_s;
	cfg->census_s = a->census_s;
	cfg->mem_mb = a->mem_mb;
	cfg->by = a->by == BY_THREAD ? "thread" : a->by == BY_CONTAINER ? "container" : NULL;
	cfg->no_comm = a->by == BY_NONE;
	cfg->title = a->title;
	cfg->labels = a->labels.items;
	cfg->n_labels = a->labels.n;
	cfg->quiet = a->quiet;
	cfg->verbose = a->verbose;
	cfg->json = a->json;
	cfg->no_demangle = a->no_demangle;
	cfg->no_source = a->no_source;
	cfg->no_wakers = a->no_wakers;
}

/* Options that exclude each other. */
static int check_together(const struct run_args *a, struct err *e)
{
	for (uint32_t i = 0; i < a->labels.n; i++)
		if (about_check_label(a->labels.items[i], e) < 0)
			return -EINVAL;
	if (a->user_only && a->kernel_only)
		return err_set(
			e, -EINVAL,
			"-U and -K exclude each other: without either, both stacks are kept");
	return 0;
}

/* The shortest wait that is kept is no longer than the longest. */
static int check_blocks(const struct run_args *a, struct err *e)
{
	if (a->max_block_us > 0 && a->min_block_us > a->max_block_us)
		return err_set(e, -EINVAL,
			       "--min-block %g is more than --max-block %g: no wait is both",
			       a->min_block_us, a->max_block_us);
	return 0;
}

int run_args_config(const struct run_args *a, char **command, struct run_config *cfg, struct err *e)
{
	if (check_together(a, e) < 0 || choose_targets(a, command, cfg, e) < 0 ||
	    choose_events(a, cfg, e) < 0 || choose_sources(a, cfg, e) < 0 ||
	    choose_langs(a, cfg, e) < 0 || choose_rate(a, cfg, e) < 0 ||
	    choose_windows(a, cfg, e) < 0 ||
	    (a->pattern && target_check_pattern(a->pattern, e) < 0) || choose_cpus(a, cfg, e) < 0 ||
	    check_blocks(a, e) < 0)
		return -EINVAL;
	take_over(a, cfg);
	return 0;
}
