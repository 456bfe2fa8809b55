/*
 * Who is watched, as user space knows it: what was asked for, its descendants, and what the
 * kernel's records say of them.
 */
#include "cmd/run_parts.h"
#include "proc/proc_maps.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define LAST_SWITCH_NS 1000000000ULL /* after the record of its end, a thread leaves its CPU */

struct watched *run_target_find(struct run *r, pid_t pid)
{
	struct watched *t;

	HASH_FIND_INT(r->targets, &pid, t);
	return t;
}

/* `newborn`: a child of a target, or the command. In the kernel it is watched already, if it is
 * a child. */
static int target_add(struct run *r, pid_t pid, bool asked, bool newborn, struct err *e)
{
	struct watched *t = run_target_find(r, pid);

	if (t) {
		t->ended_ns = 0; /* a new process with an old pid */
		return 0;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->pid = pid;
	t->asked = asked;
	t->pid_fd = -1;
	HASH_ADD_INT(r->targets, pid, t);
	if (!hash_added(t)) {
		free(t);
		return err_set(e, -ENOMEM, "out of memory");
	}
	if (asked) {
		t->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (t->pid_fd < 0)
			return err_set(e, -errno, "there is no process %d", (int)pid);
		run_watch_fd(r, t->pid_fd, TAG_PID + (uint64_t)pid);
		r->live_targets++;
		ingest_keep(r->ingest, pid);
	}
	if (r->mem)
		proc_mem_add(r->mem, pid, newborn, NULL);
	if (!asked)
		run_ledger_member(r, pid);
	return 0;
}

void run_target_member(struct run *r, pid_t pid)
{
	struct watched *t = run_target_find(r, pid);
	bool begun = session_start_ns(r->session) != 0;

	if ((t && !t->ended_ns) || target_add(r, pid, false, begun, NULL) < 0)
		return;
	t = run_target_find(r, pid);
	session_is_target(r->session, pid, &t->ns_pid);
	r->n_members++;
	if (!begun)
		return;
	proc_table_scan(r->procs, pid, 0, run_now_ns(), NULL);
	if (run_tracing_allocs(r))
		alloc_probes_add(r->probes, pid, NULL);
	run_sampled_look(r, pid);
}

void run_targets_left(struct run *r)
{
	struct watched *t, *next;
	pid_t ns_pid;

	HASH_ITER (hh, r->targets, t, next) {
		if (t->ended_ns || session_is_target(r->session, t->pid, &ns_pid))
			continue;
		t->ended_ns = run_now_ns();
		if (r->probes && !r->cfg->file_scope)
			alloc_probes_drop(r->probes, t->pid);
	}
}

void run_target_ended(struct run *r, pid_t pid)
{
	struct watched *t = run_target_find(r, pid);

	if (!t || t->pid_fd < 0)
		return;
	close(TAKE_FD(t->pid_fd));
	if (--r->live_targets > 0)
		return;
	r->ended = RUN_END_TARGET;
	snprintf(r->end_detail, sizeof(r->end_detail),
		 session_ran_out_of_memory(r->session, pid)
			 ? "the kernel killed process %d because memory ran out"
			 : "process %d ended",
		 (int)pid);
}

static void add_children(struct run *r, pid_t pid, int depth);

/* A child's parent is the thread that forked it. */
static void add_children_of_thread(struct run *r, pid_t pid, const char *tid, int depth)
{
	char path[64];
	_cleanup_(fclosep) FILE *f = NULL;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)pid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1) {
		if (run_target_find(r, child) || session_target(r->session, child, NULL) < 0 ||
		    target_add(r, child, false, false, NULL) < 0)
			continue;
		proc_table_scan(r->procs, child, 0, run_now_ns(), NULL);
		if (depth < 64)
			add_children(r, child, depth + 1);
	}
}

/* Descendants that are there already. */
static void add_children(struct run *r, pid_t pid, int depth)
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir));)
		if (d->d_name[0] != '.')
			add_children_of_thread(r, pid, d->d_name, depth);
	if (dir)
		closedir(dir);
}

int run_add_targets(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	int rc;

	if (cfg->n_groups)
		return run_groups_begin(r, e);
	for (uint32_t i = 0; i < cfg->n_pids; i++) {
		rc = target_add(r, cfg->pids[i], true, false, e);
		if (rc == 0)
			rc = session_target(r->session, cfg->pids[i], e);
		if (rc == 0)
			rc = proc_table_scan(r->procs, cfg->pids[i], 0, run_now_ns(), e);
		if (rc < 0)
			return rc;
		if (cfg->children && !cfg->tid)
			add_children(r, cfg->pids[i], 0);
	}
	if (!cfg->command)
		return 0;
	rc = r->launch ? 0 : launch_start(cfg->command, &r->launch, e);
	if (rc == 0)
		rc = target_add(r, launch_pid(r->launch), true, cfg->delay_s <= 0, e);
	if (rc == 0)
		rc = session_target(r->session, launch_pid(r->launch), e);
	if (rc < 0 || cfg->delay_s <= 0)
		return rc;
	rc = proc_table_scan(r->procs, launch_pid(r->launch), 0, run_now_ns(), e);
	if (rc == 0 && cfg->children)
		add_children(r, launch_pid(r->launch), 0);
	return rc;
}

void run_on_task(void *ctx, const struct ms_task *task)
{
	struct run *r = ctx;

	run_read_sideband(r);
	/* One that is known already still learns its exec id: guessed from the first total, it
	 * would be wrong for a process that has gone through an exec by then. */
	if (task->tid == task->proc.tgid)
		proc_table_scan(r->procs, (pid_t)task->proc.tgid, task->proc.exec_id, task->seen_ns,
				NULL);
	if (task->tid == task->proc.tgid && r->cfg->all && run_probing_allocs(r))
		alloc_probes_add(r->probes, (pid_t)task->proc.tgid, NULL);
	if (task->tid == task->proc.tgid && r->cfg->all)
		run_sampled_look(r, (pid_t)task->proc.tgid);
}

/* Gone, or a zombie: short-lived children often are before their record is read. */
static bool is_over(pid_t pid)
{
	char path[64], line[512], *paren;
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	return !f || !fgets(line, sizeof(line), f) || !(paren = strrchr(line, ')')) ||
	       strchr("ZX", paren[2]);
}

/* A thread of a target has ended; with the last one, the process. */
static void thread_ended(struct run *r, const struct sideband_record *rec)
{
	struct watched *t = run_target_find(r, rec->pid);

	if ((t || r->cfg->all) && !proc_table_live(r->procs, rec->pid))
		run_unwind_ended(r, rec->pid);
	if (!t)
		return;
	if (proc_table_live(r->procs, rec->pid)) {
		t->leader_gone |= rec->pid == rec->tid;
		return;
	}
	t->ended_ns = rec->ns;
	if (r->cfg->n_groups && session_ran_out_of_memory(r->session, rec->pid))
		run_groups_oom(r, rec->pid);
	r->ended_since_sweep = true;
	if (r->probes && !r->cfg->file_scope)
		alloc_probes_drop(r->probes, rec->pid);
}

/* An exec begins a new address space. Probes follow it, but for those that hang on a leader who
 * has gone. */
static void image_replaced(struct run *r, pid_t pid)
{
	struct watched *t = run_target_find(r, pid);

	if (!t)
		return;
	session_set_gen(r->session, pid, 0);
	r->ended_since_sweep = true;
	if (t->leader_gone && run_probing_allocs(r) && !r->cfg->file_scope) {
		alloc_probes_drop(r->probes, pid);
		alloc_probes_add(r->probes, pid, NULL);
	}
	t->leader_gone = false;
}

/* A child of a target: in the kernel it is watched since its fork; its probes come now. */
static void child_forked(struct run *r, const struct sideband_record *rec)
{
	struct watched *t;
	pid_t ns_pid = 0;

	if (!r->cfg->children || rec->pid == rec->ppid)
		return;
	/* In a control group or out of it, whoever its parent is. */
	if (r->cfg->n_groups ? !session_is_target(r->session, rec->pid, &ns_pid)
			     : !run_target_find(r, rec->ppid))
		return;
	t = run_target_find(r, rec->pid);
	r->n_members += r->cfg->n_groups && (!t || t->ended_ns);
	if (target_add(r, rec->pid, false, true, NULL) < 0)
		return;
	run_target_find(r, rec->pid)->ns_pid = ns_pid;
	if (r->cfg->n_groups && !run_target_find(r, rec->ppid))
		r->members_due = true;
	r->children++;
	if (!run_probing_allocs(r) || r->cfg->file_scope)
		return;
	if (!is_over(rec->pid) && alloc_probes_add(r->probes, rec->pid, NULL) > 0 &&
	    run_tracing_allocs(r)) {
		r->gap_ns += run_now_ns() - rec->ns;
		r->gap_children++;
	} else if (run_tracing_allocs(r) && is_over(rec->pid)) {
		r->gap_ended++;
	}
}

/* What `rec` maps may be an allocator that was not there before. */
static void file_mapped(struct run *r, const struct sideband_record *rec)
{
	if (alloc_probes_add(r->probes, rec->pid, NULL) > 0 && !r->holding &&
	    run_tracing_allocs(r)) {
		r->late_ns += run_now_ns() - rec->ns;
		r->late_files++;
	}
}

static void on_sideband(void *ctx, const struct sideband_record *rec)
{
	struct run *r = ctx;
	uint32_t gen;

	switch (rec->kind) {
	case SIDEBAND_MMAP:
		if (proc_table_meets(r->procs, rec->pid, rec->addr, rec->len))
			run_finish_before(r, rec->pid, rec->ns);
		gen = proc_table_mmap(r->procs, rec->ns, rec->pid,
				      &(struct proc_mmap){ .addr = rec->addr,
							   .len = rec->len,
							   .file_off = rec->off,
							   .dev = rec->dev,
							   .ino = rec->ino,
							   .path = rec->name });
		if (gen && (r->cfg->all || run_target_find(r, rec->pid)))
			session_set_gen(r->session, rec->pid, gen);
		if (run_probing_allocs(r) && (r->cfg->all || run_target_find(r, rec->pid)))
			file_mapped(r, rec);
		if (r->cfg->all || run_target_find(r, rec->pid))
			run_sampled_look(r, rec->pid);
		run_unwind_changed(r, rec->pid);
		break;
	case SIDEBAND_COMM:
		proc_table_comm(r->procs, rec->ns, rec->pid, rec->tid, rec->name, rec->exec);
		if (rec->exec) {
			if (run_groups_met(r, rec->pid))
				run_target_member(r, rec->pid);
			image_replaced(r, rec->pid);
			run_unwind_changed(r, rec->pid);
		}
		break;
	case SIDEBAND_FORK:
		proc_table_fork(r->procs, rec->ns, rec->pid, rec->ppid, rec->tid);
		child_forked(r, rec);
		if (rec->pid != rec->ppid)
			run_unwind_forked(r, rec->pid);
		break;
	case SIDEBAND_EXIT:
		proc_table_exit(r->procs, rec->ns, rec->pid, rec->tid);
		thread_ended(r, rec);
		break;
	}
}

struct missed {
	struct run *r;
	pid_t pid;
	uint64_t ns;
};

static int map_missed(void *ctx, const struct proc_map *map)
{
	struct missed *m = ctx;
	const struct sideband_record rec = { .kind = SIDEBAND_MMAP,
					     .ns = m->ns,
					     .pid = m->pid,
					     .tid = m->pid,
					     .name = map->path,
					     .addr = map->start,
					     .len = map->end - map->start,
					     .off = map->file_off,
					     .dev = map->dev,
					     .ino = map->ino };

	if ((map->perms & PROC_MAP_EXEC) &&
	    !proc_table_meets(m->r->procs, m->pid, rec.addr, rec.len))
		on_sideband(m->r, &rec);
	return 0;
}

/* Records were lost: what the targets have mapped where nothing is known of is taken up now. All records up
 * to `ns` have been read. */
static void take_up_missed(struct run *r, uint64_t ns)
{
	struct watched *t, *next;

	HASH_ITER (hh, r->targets, t, next) {
		struct missed m = { r, t->pid, ns };

		if (!t->ended_ns)
			proc_maps_each(t->pid, map_missed, &m, NULL);
	}
}

void run_read_sideband(struct run *r)
{
	uint64_t now = run_now_ns(), lost;

	/* What stacks there are so far, are of before the records that come now, or between them. */
	if (r->drain)
		drain_events(r->drain);
	sideband_read(r->sideband, on_sideband, r);
	lost = sideband_lost(r->sideband);
	if (lost != r->records_lost) {
		r->records_lost = lost;
		take_up_missed(r, now);
	}
	run_unwind_read(r, now);
}

/* A pid is free for others when its process has ended, and its last switch has been seen. */
void run_untarget_the_dead(struct run *r)
{
	uint64_t now = run_now_ns();
	struct watched *t, *next;

	HASH_ITER (hh, r->targets, t, next) {
		if (!t->ended_ns || t->asked || now < t->ended_ns + LAST_SWITCH_NS)
			continue;
		session_untarget(r->session, t->pid);
		HASH_DEL(r->targets, t);
		free(t);
	}
}
