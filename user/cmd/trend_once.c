/* memscope trend --once: one look at the memory of processes, nothing attached. */
#include "base/cleanup.h"
#include "cmd/target.h"
#include "cmd/trend_parts.h"
#include "proc/namespace.h"
#include "proc/proc_mem.h"
#include "proc/smaps.h"
#include "render/mem_table.h"

#include <errno.h>

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

/* "redis-server", and in a container its number there. */
static void name_of(pid_t pid, char *out, size_t cap)
{
	pid_t ns_pid = proc_ns_pid(pid);
	char name[64];

	target_file_name(pid, name, sizeof(name));
	if (ns_pid && ns_pid != pid)
		snprintf(out, cap, "%s (%d there)", name, (int)ns_pid);
	else
		snprintf(out, cap, "%s", name);
}

static int look(struct mem_table *table, pid_t pid, bool maps, struct err *e)
{
	_cleanup_(proc_mem_freep) struct proc_mem *mem = proc_mem_new();
	struct mem_sample s;
	char name[128];
	int r;

	if (!mem)
		return err_set(e, -ENOMEM, "out of memory for process %d", (int)pid);
	r = proc_mem_add(mem, pid, false, e);
	if (r < 0)
		return r;
	if (proc_mem_sample(mem, &s) < 0)
		return err_set(e, -ESRCH, "process %d has ended", (int)pid);
	name_of(pid, name, sizeof(name));
	mem_table_process(table, pid, name, &s);
	return maps ? smaps_each(pid, add_mapping, table, e) : 0;
}

/* Who is in them, all together, and what they are charged. */
static int look_at_groups(struct mem_table *table, struct trend_groups *groups, bool maps,
			  struct err *e)
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
		r = look(table, pids[i], maps, e);
		proc_mem_add(mem, pids[i], false, NULL);
		if (r == -ESRCH)
			r = 0;
	}
	if (r == 0 && proc_mem_sample(mem, &sum) == 0)
		mem_table_total(table, &sum);
	for (uint32_t i = 0; r == 0 && i < trend_groups_count(groups); i++) {
		const struct group *g = trend_groups_at(groups, i);
		struct mem_table_group row = {
			.name = group_title(g),
			.path = g->at.path,
			.id = g->id,
			.engine = g->engine,
		};

		trend_groups_use(groups, i, &row.use);
		mem_table_group(table, &row);
	}
	return r;
}

int trend_once(const struct trend_target *target, bool maps, bool json, struct err *e)
{
	_cleanup_(mem_table_freep) struct mem_table *table = NULL;
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r = sink_open_file("-", &out, e);

	if (r == 0)
		r = mem_table_open(out, maps, json, &table, e);
	if (r == 0 && target->groups)
		r = look_at_groups(table, target->groups, maps, e);
	for (uint32_t i = 0; r == 0 && i < target->n; i++)
		r = look(table, target->pids[i], maps, e);
	if (r == 0)
		r = mem_table_end(table, e);
	return r < 0 ? r : sink_commit(out, e);
}
