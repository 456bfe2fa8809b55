/*
 * --when: looks at memory and CPU time a few times a second, and asks for a window when a condition is met.
 *
 *   processes        the sum of them (/proc)
 *   control groups   what the groups say of themselves; the sum of their processes where they say nothing
 *   the host         /proc/meminfo, /proc/stat
 *
 * oom: a target that the kernel picked to be killed; and before that, when the part of a control group's
 * memory, or of the host's, that cannot be dropped is 95 % of its limit. In a killed process nothing is left
 * to look at: what the window has of it was gathered before.
 */
#include "base/clock.h"
#include "base/units.h"
#include "proc/cgroup_use.h"
#include "proc/proc_mem.h"
#include "run/component.h"
#include "run/targets.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS 250000000ULL /* a look takes 0.1 ms for a process */
#define SAID    12           /* windows that notes name           */

/* How it is now; NAN: not known. */
struct figures {
	double rss, cpu_s, allocated; /* bytes, seconds, bytes    */
	double used_part;             /* of a limit of memory     */
};

struct condition {
	const struct trigger *trigger;
	struct trigger_state state, kills; /* kills: of oom */
	struct trigger_rise rise;
	bool known; /* it could be looked at once */
};

struct triggers {
	struct run *run;
	struct condition *all; /* cfg->n_when */
	struct proc_mem *mem;
	struct cgroup_mounts mounts; /* of oom, for processes */
	uint64_t next_ns;
	uint64_t victims; /* targets that were killed for want of memory */
	uint32_t said;
};

/* --- figures --- */

/* Bytes of "NAME:   123 kB". */
static double meminfo(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	long long kb;

	return at && sscanf(at + strlen(name), ": %lld", &kb) == 1 ? (double)kb * 1024 : NAN;
}

static bool read_text(const char *path, char *buf, size_t cap)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	size_t n = f ? fread(buf, 1, cap - 1, f) : 0;

	buf[n] = '\0';
	return n > 0;
}

static void of_host(struct figures *to)
{
	char text[4096];
	unsigned long long user, nice, system, idle, wait, irq, softirq;

	if (read_text("/proc/meminfo", text, sizeof(text))) {
		double total = meminfo(text, "MemTotal"), free = meminfo(text, "MemAvailable");

		to->rss = total - free;
		to->used_part = (total - free) / total;
	}
	if (read_text("/proc/stat", text, sizeof(text)) &&
	    sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
		   &wait, &irq, &softirq) == 7)
		to->cpu_s = (double)(user + nice + system + irq + softirq) /
			    (double)sysconf(_SC_CLK_TCK);
}

/* What is not known of groups; of many processes it takes long. */
static void of_processes(struct triggers *ts, struct figures *to)
{
	struct mem_sample s;

	if ((!isnan(to->rss) && !isnan(to->cpu_s)) || proc_mem_sample(ts->mem, &s) < 0)
		return;
	if (isnan(to->rss) && s.rss_kb >= 0)
		to->rss = (double)s.rss_kb * 1024;
	if (isnan(to->cpu_s))
		to->cpu_s = (double)s.cpu_ns / 1e9;
}

/* What they say of themselves; a figure that one of them does not have stays the sum of processes. */
static void of_groups(const struct triggers *ts, struct figures *to)
{
	const struct run_config *cfg = ts->run->cfg;
	double rss = 0, cpu_s = 0;

	for (uint32_t i = 0; i < cfg->n_groups; i++) {
		const struct group *g = &cfg->groups[i];
		struct mem_group use;

		if (g->gone_ns)
			continue;
		cgroup_use(cfg->mounts, g->at.path, &use);
		rss += use.charged_kb >= 0 && use.file_kb >= 0
			       ? (double)(use.charged_kb - use.file_kb) * 1024
			       : NAN;
		cpu_s += use.cpu_ns >= 0 ? (double)use.cpu_ns / 1e9 : NAN;
		to->used_part = fmax(to->used_part, cgroup_fixed_part(cfg->mounts, g->at.path));
	}
	if (!isnan(rss))
		to->rss = rss;
	if (!isnan(cpu_s))
		to->cpu_s = cpu_s;
}

/* The group of a process that limits its memory. */
static bool memory_group(const struct triggers *ts, pid_t pid, char *out, size_t cap)
{
	char name[64], line[PATH_MAX + 256];
	_cleanup_(fclosep) FILE *f = NULL;
	bool found = false;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const struct cgroup_hierarchy *h;
		const char *controllers, *path;
		uint32_t id;

		line[strcspn(line, "\n")] = '\0';
		if (!cgroup_parse_line(line, &id, &controllers, &path))
			continue;
		h = cgroup_hierarchy_find(&ts->mounts, id);
		/* A controller is in one hierarchy: memory's own, or the unified one. */
		if (!h || (id && !cgroup_has_controller(h, "memory")) || (!id && found))
			continue;
		snprintf(out, cap, "%s", path);
		found = true;
	}
	return found;
}

struct look {
	struct triggers *ts;
	struct figures *to;
	char last[PATH_MAX];
};

static void look_at_target(void *ctx, const struct target *t)
{
	struct look *look = ctx;
	char path[PATH_MAX];

	if (t->ended_ns || !memory_group(look->ts, t->pid, path, sizeof(path)) ||
	    strcmp(path, look->last) == 0)
		return;
	snprintf(look->last, sizeof(look->last), "%s", path);
	look->to->used_part = fmax(look->to->used_part, cgroup_fixed_part(&look->ts->mounts, path));
}

static struct figures figures_now(struct triggers *ts)
{
	struct figures now = { NAN, NAN, NAN, NAN };
	const struct run *r = ts->run;

	if (r->cfg->n_groups)
		of_groups(ts, &now);
	if (r->cfg->all)
		of_host(&now);
	else
		of_processes(ts, &now);
	if (!r->cfg->n_groups && !r->cfg->all && ts->mounts.n)
		targets_each(r, look_at_target, &(struct look){ ts, &now, "" });
	if (r->alloc.total_bytes)
		now.allocated = r->alloc.total_bytes(r->alloc.live_ctx);
	return now;
}

/* --- conditions --- */

static void fire(struct triggers *ts, const struct condition *c, const char *why)
{
	const struct trigger *t = c->trigger;
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	if (!ts->run->cfg->quiet)
		fprintf(stderr, "memscope: %s at %s: %s\n", t->text, when, why);
	if (ts->said++ < SAID)
		run_note(ts->run, false, "--when '%s' was met at %s (%s): profiles SOURCE_%s-*",
			 t->text, when, why, t->word);
	run_ask(ts->run, t->word);
}

static double value_of(struct condition *c, const struct figures *now, uint64_t ns)
{
	const struct trigger *t = c->trigger;

	switch (t->what) {
	case TRIGGER_RSS:
		return now->rss;
	case TRIGGER_GROWTH:
		return trigger_rise(&c->rise, now->rss, ns, t->span_s);
	case TRIGGER_ALLOCATED:
		return now->allocated;
	case TRIGGER_CPU:
		return trigger_rise(&c->rise, now->cpu_s, ns, t->span_s) * 100;
	default:
		return now->used_part;
	}
}

static void say_value(const struct trigger *t, double value, char *buf, size_t cap)
{
	switch (t->what) {
	case TRIGGER_RSS:
		snprintf(buf, cap, "%s resident", unit_bytes(llround(value)).s);
		break;
	case TRIGGER_GROWTH:
		snprintf(buf, cap, "by %s in %g s", unit_bytes(llround(value * t->span_s)).s,
			 t->span_s);
		break;
	case TRIGGER_ALLOCATED:
		snprintf(buf, cap, "%s allocated", unit_bytes(llround(value)).s);
		break;
	case TRIGGER_CPU:
		snprintf(buf, cap, "%.0f %% of a CPU", value);
		break;
	default:
		snprintf(buf, cap, "%.0f %% of the limit is in use", value * 100);
		break;
	}
}

static void check(struct triggers *ts, struct condition *c, const struct figures *now, uint64_t ns)
{
	static const struct trigger kill = { .what = TRIGGER_ALLOCATED, .each = true, .bound = 1 };
	uint64_t rearm_ns = (uint64_t)(ts->run->cfg->rearm_s * 1e9);
	double value = value_of(c, now, ns);
	char why[100];

	c->known |= !isnan(value) || c->trigger->what == TRIGGER_OOM;
	if (trigger_step(c->trigger, &c->state, value, ns, rearm_ns)) {
		say_value(c->trigger, value, why, sizeof(why));
		fire(ts, c, why);
	}
	if (c->trigger->what == TRIGGER_OOM &&
	    trigger_step(&kill, &c->kills, (double)ts->victims, ns, rearm_ns))
		fire(ts, c, "the kernel killed a process");
}

static void check_all(struct triggers *ts, uint64_t ns)
{
	struct figures now = figures_now(ts);

	for (uint32_t i = 0; i < ts->run->cfg->n_when; i++)
		check(ts, &ts->all[i], &now, ns);
}

/* --- the component --- */

static bool wanted(const struct run_config *cfg)
{
	return cfg->n_when > 0 && cfg->dir;
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct triggers *ts = self;
	const struct run_config *cfg = ts->run->cfg;

	(void)opts;
	ts->all = calloc(cfg->n_when, sizeof(*ts->all));
	ts->mem = proc_mem_new();
	if (!ts->all || !ts->mem)
		return err_set(e, -ENOMEM, "out of memory for --when");
	proc_mem_quick(ts->mem);
	for (uint32_t i = 0; i < cfg->n_when; i++) {
		ts->all[i].trigger = &cfg->when[i];
		if (cfg->when[i].what == TRIGGER_OOM && !ts->mounts.n)
			cgroup_mounts_read(&ts->mounts, NULL); /* none: there are no limits */
	}
	return 0;
}

static void process(void *self, const struct process_event *event)
{
	struct triggers *ts = self;

	if (ts->run->cfg->all)
		return;
	if (event->kind == PROCESS_ADDED || event->kind == PROCESS_MEMBER)
		proc_mem_add(ts->mem, event->pid, event->newborn, NULL);
	else if (event->kind == PROCESS_ENDED && event->target)
		ts->victims += session_ran_out_of_memory(ts->run->session, event->pid);
}

static void tick(void *self, uint64_t ns)
{
	struct triggers *ts = self;

	if (ns < ts->next_ns)
		return;
	check_all(ts, ns);
	ts->next_ns = ns + LOOK_NS;
}

static void closing(void *self)
{
	check_all(self, now_ns());
}

static void report(void *self, struct run_summary *s)
{
	struct triggers *ts = self;

	(void)s;
	if (ts->said > SAID)
		run_note(ts->run, false, "%u more times a condition of --when was met",
			 ts->said - SAID);
	for (uint32_t i = 0; i < ts->run->cfg->n_when; i++) {
		const struct condition *c = &ts->all[i];
		uint64_t fired = c->state.fired + c->kills.fired;
		uint64_t suppressed = c->state.suppressed + c->kills.suppressed;

		if (!c->known)
			run_note(ts->run, true,
				 "--when '%s' could not be looked at: not known here",
				 c->trigger->text);
		else if (!fired)
			run_note(ts->run, false, "--when '%s' was never met", c->trigger->text);
		if (suppressed)
			run_note(ts->run, false,
				 "--when '%s' was met %llu more times within %g s of the last: "
				 "suppressed (--rearm)",
				 c->trigger->text, (unsigned long long)suppressed,
				 ts->run->cfg->rearm_s);
	}
}

static void free_triggers(void *self)
{
	struct triggers *ts = self;

	cgroup_mounts_fini(&ts->mounts);
	proc_mem_free(ts->mem);
	free(ts->all);
}

const struct component triggers_component = {
	.name = "triggers",
	.size = sizeof(struct triggers),
	.wanted = wanted,
	.prepare = prepare,
	.process = process,
	.tick = tick,
	.closing = closing,
	.report = report,
	.free = free_triggers,
};
