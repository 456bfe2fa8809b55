/* memscope trend --once: what processes use now, once or every few seconds; nothing is attached. */
#include "base/cleanup.h"
#include "cmd/trend_parts.h"
#include "proc/cgroup_use.h"
#include "proc/namespace.h"
#include "proc/proc_mem.h"
#include "proc/smaps.h"
#include "render/tables/mem_table.h"
#include "run/target.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int add_mapping(void *ctx, const struct smaps_entry *m)
{
	struct mem_mapping row = {
		.start = m->map.start,
		.size_kb = m->size_kb,
		.rss_kb = m->rss_kb,
		.pss_kb = m->pss_kb,
		.dirty_kb = m->dirty_kb,
		.anonymous_kb = m->anonymous_kb,
		.swap_kb = m->swap_kb,
		.name = m->map.path,
		.deleted = m->map.deleted,
		.mode = { m->map.perms & PROC_MAP_READ ? 'r' : '-',
			  m->map.perms & PROC_MAP_WRITE ? 'w' : '-',
			  m->map.perms & PROC_MAP_EXEC ? 'x' : '-',
			  m->map.perms & PROC_MAP_SHARED ? 's' : '-' },
	};

	mem_table_mapping(ctx, &row);
	return 0;
}

/* What 100 % of its memory is: the least limit of its control groups, else the machine's. */
static void find_base(const struct cgroup_mounts *mounts, struct mem_table_process *p)
{
	int64_t machine_kb = (int64_t)sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 1024);
	int64_t limit_kb = MEM_UNKNOWN;
	char path[PATH_MAX];
	uint32_t hierarchy;

	if (mounts && cgroup_of_process(p->pid, &hierarchy, path, sizeof(path)) == 0)
		limit_kb = cgroup_limit_kb(mounts, path);
	p->is_limit = limit_kb > 0 && limit_kb < machine_kb;
	p->of_kb = p->is_limit ? limit_kb : machine_kb;
}

/* The table of one look, and what is needed for it. */
struct look {
	struct mem_table *table;
	const struct cgroup_mounts *mounts; /* NULL: there are none */
	bool maps;
};

static int look(const struct look *l, pid_t pid, struct err *e)
{
	_cleanup_(proc_mem_freep) struct proc_mem *mem = proc_mem_new();
	struct mem_table_process p = { .pid = pid };
	char name[64], command[TARGET_CMDLINE_MAX];
	int r;

	if (!mem)
		return err_set(e, -ENOMEM, "out of memory for process %d", (int)pid);
	r = proc_mem_add(mem, pid, false, e);
	if (r < 0)
		return r;
	if (proc_mem_sample(mem, &p.use) < 0)
		return err_set(e, -ESRCH, "process %d has ended", (int)pid);
	target_file_name(pid, name, sizeof(name));
	p.name = name;
	p.command = target_cmdline(pid, command, sizeof(command)) ? command : "";
	p.ns_pid = proc_ns_pid(pid);
	if (p.ns_pid == pid)
		p.ns_pid = 0;
	find_base(l->mounts, &p);
	mem_table_process(l->table, &p);
	return l->maps ? smaps_each(pid, add_mapping, l->table, e) : 0;
}

/* Who is in them, all together, and what they are charged. */
static int look_at_groups(const struct look *l, struct trend_groups *groups, struct err *e)
{
	_cleanup_(proc_mem_freep) struct proc_mem *mem = proc_mem_new();
	struct mem_sample sum;
	const pid_t *pids;
	uint32_t n;
	int r = 0;

	if (!mem)
		return err_set(e, -ENOMEM, "out of memory");
	pids = trend_groups_pids(groups, &n);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		r = look(l, pids[i], e);
		proc_mem_add(mem, pids[i], false, NULL);
		if (r == -ESRCH)
			r = 0;
	}
	if (r == 0 && proc_mem_sample(mem, &sum) == 0)
		mem_table_total(l->table, &sum);
	for (uint32_t i = 0; r == 0 && i < trend_groups_count(groups); i++) {
		const struct group *g = trend_groups_at(groups, i);
		struct mem_table_group row = {
			.name = group_title(g),
			.path = g->at.path,
			.id = g->id,
			.engine = g->engine,
		};

		trend_groups_use(groups, i, &row.use);
		mem_table_group(l->table, &row);
	}
	return r;
}

/* "2026-10-01 12:00:00" above the table */
static void put_time(struct sink *out, bool again)
{
	time_t now = time(NULL);
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", localtime_r(&now, &tm));
	sink_printf(out, "%s%s\n", again ? "\n" : "", text);
}

/* Of all that are left; -ESRCH: of those that were named none is. */
static int look_once(const struct trend_target *target, const struct cgroup_mounts *mounts,
		     const struct trend_look *how, bool again, struct err *e)
{
	_cleanup_(mem_table_freep) struct mem_table *table = NULL;
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct look l = { .mounts = mounts, .maps = how->maps };
	uint32_t n = 0;
	int r = sink_open_file("-", &out, e);

	if (r == 0)
		r = mem_table_open(out, how->maps, how->json, &table, e);
	l.table = table;
	if (r == 0 && how->interval_s > 0 && !how->json)
		put_time(out, again);
	if (r == 0 && target->groups)
		r = look_at_groups(&l, target->groups, e);
	for (uint32_t i = 0; r == 0 && i < target->n; i++) {
		r = look(&l, target->pids[i], e);
		n += r == 0;
		if (r == -ESRCH && how->interval_s > 0)
			r = 0;
	}
	if (r == 0 && target->n && !n)
		return -ESRCH;
	if (r == 0)
		r = mem_table_end(table, e);
	return r < 0 ? r : sink_commit(out, e);
}

static void on_group(void *ctx, const struct group *group, bool there)
{
}

/* Again and again; that all have ended is no failure once they were seen. */
static int look_on(const struct trend_target *target, const struct cgroup_mounts *mounts,
		   const struct trend_look *how, struct err *e)
{
	double begin = trend_now_s(), left;
	sigset_t mask;
	int r;

	trend_take_signals(&mask);
	for (uint64_t nth = 0;; nth++) {
		if (target->groups)
			trend_groups_check(target->groups, on_group, NULL);
		r = look_once(target, mounts, how, nth > 0, e);
		if (r < 0)
			return r == -ESRCH && nth ? 0 : r;
		while (!trend_is_stopped() &&
		       (left = begin + (double)(nth + 1) * how->interval_s - trend_now_s()) > 0) {
			struct timespec ts = { (time_t)left, (long)((left - floor(left)) * 1e9) };

			if (ppoll(NULL, 0, &ts, &mask) < 0 && errno != EINTR)
				return err_set(e, -errno, "cannot wait: %s", strerror(errno));
		}
		if (trend_is_stopped() ||
		    (how->duration_s > 0 && trend_now_s() - begin >= how->duration_s))
			return 0;
	}
}

int trend_once(const struct trend_target *target, const struct trend_look *how, struct err *e)
{
	_cleanup_(cgroup_mounts_fini) struct cgroup_mounts mounts = { 0 };
	bool known = cgroup_mounts_read(&mounts, NULL) == 0;

	return how->interval_s > 0 ? look_on(target, known ? &mounts : NULL, how, e)
				   : look_once(target, known ? &mounts : NULL, how, false, e);
}
