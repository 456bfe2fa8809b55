/*
 * Who else had the CPUs of the targets, and what quotas kept from them: whether a program that waits for a CPU is
 * short of it depends on that.
 */
#include "proc/cgroup_use.h"
#include "proc/cpu_use.h"
#include "run/component.h"
#include "run/targets.h"

#include <limits.h>
#include <string.h>

enum { QUOTA_GROUPS_MAX = 16 };

struct cpus {
	struct run *run;
	struct cgroup_mounts mounts;
	cpu_set_t of;
	bool known; /* `first` and `last` are */
	struct cpu_use first, last;
	struct {
		char path[PATH_MAX];
		struct cgroup_throttled before;
	} groups[QUOTA_GROUPS_MAX];
	uint32_t n_groups;
	struct cgroup_throttled
		throttled; /* of the one that was held back most; periods -1: unknown */
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU];
}

static void add_group(struct cpus *c, const char *path)
{
	struct cgroup_throttled now;

	for (uint32_t i = 0; i < c->n_groups; i++)
		if (strcmp(c->groups[i].path, path) == 0)
			return;
	if (c->n_groups == QUOTA_GROUPS_MAX || !cgroup_throttled(&c->mounts, path, &now))
		return;
	snprintf(c->groups[c->n_groups].path, PATH_MAX, "%s", path);
	c->groups[c->n_groups++].before = now;
}

/* The group that limits CPU time: in the hierarchy of that controller, or in the unified one. */
static void add_groups_of(struct cpus *c, pid_t pid)
{
	char path[PATH_MAX];

	for (uint32_t i = 0; i < c->mounts.n; i++) {
		const struct cgroup_hierarchy *h = &c->mounts.list[i];

		if ((!h->id || cgroup_has_controller(h, "cpu")) &&
		    cgroup_path_in(pid, h->id, path, sizeof(path)) == 0)
			add_group(c, path);
	}
}

static void add_target(void *ctx, const struct target *t)
{
	struct cpus *c = ctx;
	cpu_set_t of;

	if (t->ended_ns)
		return;
	if (sched_getaffinity(t->pid, sizeof(of), &of) == 0)
		CPU_OR(&c->of, &c->of, &of);
	add_groups_of(c, t->pid);
}

static int start(void *self, struct err *e)
{
	struct cpus *c = self;

	(void)e;
	c->throttled = (struct cgroup_throttled){ -1, -1, -1 };
	if (cgroup_mounts_read(&c->mounts, NULL) < 0)
		c->mounts = (struct cgroup_mounts){ 0 };
	if (!c->run->cfg->all)
		targets_each(c->run, add_target, c);
	if (CPU_COUNT(&c->of) == 0)
		memset(&c->of, 0xff, sizeof(c->of));
	c->known = cpu_use_read(&c->of, &c->first);
	return 0;
}

static void closing(void *self)
{
	struct cpus *c = self;

	c->known = c->known && cpu_use_read(&c->of, &c->last) && c->last.n == c->first.n;
	for (uint32_t i = 0; i < c->n_groups; i++) {
		const struct cgroup_throttled *before = &c->groups[i].before;
		struct cgroup_throttled now;

		if (cgroup_throttled(&c->mounts, c->groups[i].path, &now) &&
		    now.used_up - before->used_up > c->throttled.used_up)
			c->throttled = (struct cgroup_throttled){
				.periods = now.periods - before->periods,
				.used_up = now.used_up - before->used_up,
				.ns = now.ns - before->ns,
			};
	}
}

static void report(void *self, struct run_summary *to)
{
	const struct cpus *c = self;

	to->cpus.throttled_ns = c->throttled.ns;
	if (c->throttled.periods > 0)
		to->cpus.used_up = (double)c->throttled.used_up / (double)c->throttled.periods;
	if (!c->known)
		return;
	to->cpus.known = true;
	to->cpus.n = c->first.n;
	to->cpus.busy_ns = c->last.busy_ns - c->first.busy_ns;
	to->cpus.idle_ns = c->last.idle_ns - c->first.idle_ns;
}

static void free_cpus(void *self)
{
	cgroup_mounts_fini(&((struct cpus *)self)->mounts);
}

const struct component cpus_component = {
	.name = "CPUs",
	.size = sizeof(struct cpus),
	.wanted = wanted,
	.start = start,
	.closing = closing,
	.report = report,
	.free = free_cpus,
};
