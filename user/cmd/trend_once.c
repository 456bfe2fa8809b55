/* memscope trend --once: one look at the memory of processes, nothing attached. */
#include "base/cleanup.h"
#include "cmd/target.h"
#include "cmd/trend_parts.h"
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

static int look(struct mem_table *table, pid_t pid, bool maps, struct err *e)
{
	_cleanup_(proc_mem_freep) struct proc_mem *mem = proc_mem_new();
	struct mem_sample s;
	char name[64];
	int r;

	if (!mem)
		return err_set(e, -ENOMEM, "out of memory for process %d", (int)pid);
	r = proc_mem_add(mem, pid, false, e);
	if (r < 0)
		return r;
	if (proc_mem_sample(mem, &s) < 0)
		return err_set(e, -ESRCH, "process %d has ended", (int)pid);
	target_file_name(pid, name, sizeof(name));
	mem_table_process(table, pid, name, &s);
	return maps ? smaps_each(pid, add_mapping, table, e) : 0;
}

int trend_once(const struct trend_target *target, bool maps, bool json, struct err *e)
{
	_cleanup_(mem_table_freep) struct mem_table *table = NULL;
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r = sink_open_file("-", &out, e);

	if (r == 0)
		r = mem_table_open(out, maps, json, &table, e);
	for (uint32_t i = 0; r == 0 && i < target->n; i++)
		r = look(table, target->pids[i], maps, e);
	if (r == 0)
		r = mem_table_end(table, e);
	return r < 0 ? r : sink_commit(out, e);
}
