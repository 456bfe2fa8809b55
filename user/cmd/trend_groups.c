#include "cmd/trend_groups.h"

#include "proc/cgroup_use.h"

#include <errno.h>
#include <string.h>

struct trend_groups {
	struct cgroup_mounts mounts;
	struct group all[GROUPS_MAX];
	int64_t cpu_seen_ns[GROUPS_MAX]; /* of the group that is there, counted already */
	uint32_t n;
	pid_t pids[TREND_GROUP_PIDS];
};

int trend_groups_open(const char *containers, const char *cgroups, struct trend_groups **ret_groups,
		      struct err *e)
{
	_cleanup_(trend_groups_freep) struct trend_groups *g = calloc(1, sizeof(*g));
	struct mem_group sum;
	int64_t cpu_ns;
	int n;

	if (!g)
		return err_set(e, -ENOMEM, "out of memory");
	n = cgroup_mounts_read(&g->mounts, e);
	if (n == 0)
		n = containers ? groups_of_containers(&g->mounts, containers, g->all, e)
			       : groups_of_cgroups(&g->mounts, cgroups, g->all, e);
	if (n < 0)
		return n;
	g->n = (uint32_t)n;
	trend_groups_sum(g, &sum, &cpu_ns); /* from now on */
	*ret_groups = TAKE_PTR(g);
	return 0;
}

void trend_groups_free(struct trend_groups *g)
{
	if (!g)
		return;
	groups_free(g->all, g->n);
	cgroup_mounts_fini(&g->mounts);
	free(g);
}

uint32_t trend_groups_count(const struct trend_groups *g)
{
	return g->n;
}

const struct group *trend_groups_at(const struct trend_groups *g, uint32_t i)
{
	return &g->all[i];
}

static int compare_pids(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

const pid_t *trend_groups_pids(struct trend_groups *g, uint32_t *ret_n)
{
	*ret_n = groups_processes(&g->mounts, g->all, g->n, g->pids, TREND_GROUP_PIDS);
	qsort(g->pids, *ret_n, sizeof(*g->pids), compare_pids);
	return g->pids;
}

void trend_groups_use(const struct trend_groups *g, uint32_t i, struct mem_group *ret_use)
{
	static pid_t pids[TREND_GROUP_PIDS];

	cgroup_use(&g->mounts, g->all[i].at.path, ret_use);
	ret_use->processes = cgroup_processes(&g->mounts, &g->all[i].at, pids, TREND_GROUP_PIDS);
}

/* What is charged to a group is charged to those above it. */
static bool is_in_another(const struct trend_groups *g, uint32_t i)
{
	const char *path = g->all[i].at.path;

	for (uint32_t j = 0; j < g->n; j++) {
		const char *other = g->all[j].at.path;
		size_t len = strlen(other);

		if (j != i && !g->all[j].gone_ns && strncmp(path, other, len) == 0 &&
		    (path[len] == '/' || (!path[len] && j < i) || len == 1))
			return true;
	}
	return false;
}

static int64_t add(int64_t sum, int64_t value)
{
	return sum < 0 || value < 0 ? MEM_UNKNOWN : sum + value;
}

void trend_groups_sum(struct trend_groups *g, struct mem_group *ret_sum, int64_t *ret_cpu_ns)
{
	struct mem_group sum = { .limit_kb = MEM_UNKNOWN };
	int64_t cpu_ns = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		struct mem_group use;
		int64_t fresh_ns;

		if (g->all[i].gone_ns || is_in_another(g, i))
			continue;
		trend_groups_use(g, i, &use);
		fresh_ns = use.cpu_ns < 0 ? MEM_UNKNOWN : use.cpu_ns - g->cpu_seen_ns[i];
		/* Made anew, and not seen to be: it began at 0. */
		if (use.cpu_ns >= 0 && fresh_ns < 0)
			fresh_ns = use.cpu_ns;
		cpu_ns = add(cpu_ns, fresh_ns);
		g->cpu_seen_ns[i] = use.cpu_ns < 0 ? 0 : use.cpu_ns;
		sum.processes += use.processes;
		sum.charged_kb = add(sum.charged_kb, use.charged_kb);
		sum.anonymous_kb = add(sum.anonymous_kb, use.anonymous_kb);
		sum.file_kb = add(sum.file_kb, use.file_kb);
		sum.kernel_kb = add(sum.kernel_kb, use.kernel_kb);
		sum.cpu_ns = add(sum.cpu_ns, use.cpu_ns);
		sum.limit_kb = g->n == 1 ? use.limit_kb : MEM_UNKNOWN;
	}
	*ret_sum = sum;
	*ret_cpu_ns = cpu_ns;
}

static void began(struct trend_groups *g, uint32_t i, trend_groups_fn fn, void *ctx)
{
	g->all[i].gone_ns = 0;
	g->all[i].restarts++;
	g->cpu_seen_ns[i] = 0;
	fn(ctx, &g->all[i], true);
}

void trend_groups_check(struct trend_groups *g, trend_groups_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct group *one = &g->all[i];
		struct cgroup at;
		uint64_t id;

		if (cgroup_id_of(&g->mounts, one->at.hierarchy, one->at.path, &id) == 0) {
			if (one->gone_ns || id != one->at.id) {
				one->at.id = id;
				began(g, i, fn, ctx);
			}
			continue;
		}
		if (!one->gone_ns) {
			one->gone_ns = 1;
			fn(ctx, one, false);
		}
		if (group_renewed(&g->mounts, one, &at) < 0)
			continue;
		one->gone_ns = 1; /* until its directory is there: it may be soon */
		if (at.id)
			began(g, i, fn, ctx);
	}
}
