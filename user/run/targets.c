/*
 * Who is profiled, as user space knows it: what was asked for, its descendants, and what the
 * kernel's records say of them.
 */
#include "base/clock.h"
#include "proc/proc_maps.h"
#include "run/component.h"
#include "run/own_share.h"
#include "run/pipeline.h"
#include "run/target.h"
#include "run/targets_parts.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define SERVE_REST_NS  200000000ULL /* between two reads of records about processes, of a service */
#define SAVING_REST_NS 1000000000ULL /* … that is to cost less */
#define LAST_SWITCH_NS 1000000000ULL /* after the record of its end, a thread leaves its CPU */
#define LISTED_NS      20000000ULL   /* between two reads of them while tasks are listed */

void targets_tell(struct run *r, const struct process_event *event)
{
	EACH_COMPONENT(r, c, self)
	if (c->process)
		c->process(self, event);
}

struct target *target_of(const struct run *r, pid_t pid)
{
	struct target *t;

	HASH_FIND_INT(r->targets->all, &pid, t);
	return t;
}

void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx)
{
	struct target *t, *next;

	HASH_ITER (hh, r->targets->all, t, next)
		fn(ctx, t);
}

struct target_counts targets_count(const struct run *r)
{
	return r->targets->count;
}

pid_t targets_command(const struct run *r)
{
	return r->targets->launch ? launch_pid(r->targets->launch) : 0;
}

uint64_t targets_lost(const struct run *r)
{
	return sideband_lost(r->targets->sideband);
}

/* --- opening --- */

/* A target that has ended by then has no command line to print. Without memory, there is just none. */
static void note_cmdlines(struct run *r)
{
	struct targets *ts = r->targets;
	char line[4096];

	if (r->cfg->n_groups || !r->cfg->n_pids)
		return;
	ts->cmdlines = calloc(r->cfg->n_pids, sizeof(*ts->cmdlines));
	for (uint32_t i = 0; ts->cmdlines && i < r->cfg->n_pids; i++)
		if (target_cmdline(r->cfg->pids[i], line, sizeof(line)))
			ts->cmdlines[i] = strdup(line);
}

char *targets_cmdline(const struct run *r, uint32_t i)
{
	const struct targets *ts = r->targets;
	char line[4096];

	if (target_cmdline(r->cfg->pids[i], line, sizeof(line)))
		return strdup(line);
	return ts->cmdlines && ts->cmdlines[i] ? strdup(ts->cmdlines[i]) : NULL;
}

int targets_open(struct run *r, struct err *e)
{
	r->targets = calloc(1, sizeof(*r->targets));
	if (!r->targets)
		return err_set(e, -ENOMEM, "out of memory");
	note_cmdlines(r);
	return 0;
}

int targets_listen(struct run *r, struct err *e)
{
	int rc = sideband_open(&r->targets->sideband, e);

	if (rc == 0 && r->cfg->serve)
		sideband_rest(r->targets->sideband, SERVE_REST_NS);
	return rc;
}

int targets_start_early(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	int rc = 0;

	if (cfg->command)
		rc = launch_start(cfg->command, &r->targets->launch, e);
	if (rc == 0 && cfg->command && cfg->delay_s > 0)
		rc = launch_go(r->targets->launch, NULL, NULL, 0, e);
	return rc;
}

void targets_free(struct run *r)
{
	struct targets *ts = r->targets;
	struct target *t, *next;

	if (!ts)
		return;
	for (uint32_t i = 0; ts->cmdlines && i < r->cfg->n_pids; i++)
		free(ts->cmdlines[i]);
	free(ts->cmdlines);
	launch_free(ts->launch);
	sideband_close(ts->sideband);
	HASH_ITER (hh, ts->all, t, next) {
		HASH_DEL(ts->all, t);
		closep(&t->pid_fd);
		free(t);
	}
	free(TAKE_PTR(r->targets));
}

/* --- who is a target --- */

static int on_pid_fd(void *ctx, struct err *e);

/* `newborn`: a child of a target, or the command. In the kernel it is a target already, if it is
 * a child. */
static int target_add(struct run *r, pid_t pid, bool asked, bool newborn, struct err *e)
{
	struct target *t = target_of(r, pid);

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
	t->run = r;
	HASH_ADD_INT(r->targets->all, pid, t);
	if (!hash_added(t)) {
		free(t);
		return err_set(e, -ENOMEM, "out of memory");
	}
	if (asked) {
		t->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (t->pid_fd < 0)
			return err_set(e, -errno, "there is no process %d", (int)pid);
		loop_fd(r->loop, t->pid_fd, on_pid_fd, t);
		r->targets->count.live++;
		ingest_keep(r->ingest, pid);
	}
	targets_tell(r, &(struct process_event){ .kind = PROCESS_ADDED,
						 .pid = pid,
						 .ns = now_ns(),
						 .target = true,
						 .listed = true,
						 .asked = asked,
						 .newborn = newborn });
	return 0;
}

void target_member(struct run *r, pid_t pid)
{
	struct target *t = target_of(r, pid);
	bool begun = session_start_ns(r->session) != 0;

	if ((t && !t->ended_ns) || target_add(r, pid, false, begun, NULL) < 0)
		return;
	t = target_of(r, pid);
	session_is_target(r->session, pid, &t->ns_pid);
	r->targets->count.members++;
	if (!begun)
		return;
	proc_table_scan(r->procs, pid, 0, now_ns(), NULL);
	targets_tell(r, &(struct process_event){ .kind = PROCESS_MEMBER,
						 .pid = pid,
						 .ns = now_ns(),
						 .target = true,
						 .listed = true });
}

void targets_left(struct run *r)
{
	struct target *t, *next;
	pid_t ns_pid;

	HASH_ITER (hh, r->targets->all, t, next) {
		if (t->ended_ns || session_is_target(r->session, t->pid, &ns_pid))
			continue;
		t->ended_ns = now_ns();
		targets_tell(r, &(struct process_event){ .kind = PROCESS_LEFT,
							 .pid = t->pid,
							 .ns = t->ended_ns,
							 .listed = true });
	}
}

/* A process that was asked for has ended; with the last of them the run does. */
static int on_pid_fd(void *ctx, struct err *e)
{
	struct target *t = ctx;
	struct run *r = t->run;

	(void)e;
	if (t->pid_fd < 0)
		return 0;
	loop_fd_forget(r->loop, t->pid_fd);
	close(TAKE_FD(t->pid_fd));
	if (--r->targets->count.live > 0)
		return 0;
	run_ends(r, RUN_END_TARGET,
		 session_ran_out_of_memory(r->session, t->pid)
			 ? "the kernel killed process %d because memory ran out"
			 : "process %d ended",
		 (int)t->pid);
	return 0;
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
		if (target_of(r, child) || session_target(r->session, child, NULL) < 0 ||
		    target_add(r, child, false, false, NULL) < 0)
			continue;
		proc_table_scan(r->procs, child, 0, now_ns(), NULL);
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

static int add_command(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	struct targets *ts = r->targets;
	int rc = target_add(r, launch_pid(ts->launch), true, cfg->delay_s <= 0, e);

	if (rc == 0)
		rc = session_target(r->session, launch_pid(ts->launch), e);
	if (rc < 0 || cfg->delay_s <= 0)
		return rc;
	rc = proc_table_scan(r->procs, launch_pid(ts->launch), 0, now_ns(), e);
	if (rc == 0 && cfg->children)
		add_children(r, launch_pid(ts->launch), 0);
	return rc;
}

int targets_add(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	int rc;

	if (cfg->n_groups)
		return groups_begin(r, e);
	for (uint32_t i = 0; i < cfg->n_pids; i++) {
		rc = target_add(r, cfg->pids[i], true, false, e);
		if (rc == 0)
			rc = session_target(r->session, cfg->pids[i], e);
		if (rc == 0)
			rc = proc_table_scan(r->procs, cfg->pids[i], 0, now_ns(), e);
		if (rc < 0)
			return rc;
		if (cfg->children && !cfg->tid)
			add_children(r, cfg->pids[i], 0);
	}
	return cfg->command ? add_command(r, e) : 0;
}

/* Between two tasks, but not after each: there may be thousands of them, and a ring full of stacks at each read. */
static void read_records(struct run *r)
{
	if (now_ns() < r->targets->next_records_ns)
		return;
	pipeline_processes(r);
	r->targets->next_records_ns = now_ns() + LISTED_NS;
}

/* The task iterator's callback. */
static void on_task(void *ctx, const struct session_task *task)
{
	pid_t pid = (pid_t)task->id.pid;
	struct run *r = ctx;

	read_records(r);
	if (task->tid != task->id.pid)
		return;
	/* One that is known already still learns its exec id: guessed from the first total, it
	 * would be wrong for a process that has gone through an exec by then. */
	proc_table_scan(r->procs, pid, task->id.exec_id, task->seen_ns, NULL);
	targets_tell(r, &(struct process_event){ .kind = PROCESS_LISTED,
						 .pid = pid,
						 .ns = task->seen_ns,
						 .target = r->cfg->all || target_of(r, pid),
						 .listed = target_of(r, pid) });
}

static int on_records(void *ctx, struct err *e)
{
	(void)e;
	pipeline_processes(ctx);
	return 0;
}

int targets_attach(struct run *r, struct err *e)
{
	int rc = sideband_watch(r->targets->sideband, r->loop, on_records, r);

	if (rc < 0)
		return err_set(e, rc, "cannot wait for records about processes: %s", strerror(-rc));
	return session_attach(r->session, on_task, r, e);
}

static void on_held(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	r->targets->holding = true;
	pipeline_processes(r);
	r->targets->holding = false;
	targets_tell(r, &(struct process_event){ .kind = PROCESS_HELD,
						 .pid = pid,
						 .ns = now_ns(),
						 .target = true,
						 .listed = true,
						 .held = true });
}

static int enter(struct run *r, pid_t pid, bool held, struct err *e)
{
	int rc = 0;

	EACH_COMPONENT(r, c, self)
	if (rc == 0 && c->entered)
		rc = c->entered(self, pid, held, e);
	return rc;
}

static int on_entered(void *ctx, pid_t pid, struct err *e)
{
	on_held(ctx, pid);
	return enter(ctx, pid, true, e);
}

/* Probes in files that a command maps are in place before it runs them. */
static bool holds_command(const struct run *r)
{
	bool holds = r->alloc.following || r->cfg->inject;

	for (uint32_t i = 0; i < r->cfg->n_events; i++)
		holds |= r->cfg->events[i].kind > EVENT_TRACEPOINT;
	return holds;
}

int targets_go(struct run *r, uint64_t until_ns, struct err *e)
{
	struct launch *l = r->targets->launch;
	int rc;

	if (!l || r->cfg->delay_s > 0)
		return 0;
	if (r->cfg->inject)
		launch_on_entry(l, on_entered, r);
	rc = launch_go(l, holds_command(r) ? on_held : NULL, r, until_ns, e);
	if (rc < 0 || !r->cfg->inject || launch_entered(l))
		return rc;
	pipeline_processes(r);
	return enter(r, launch_pid(l), false, e);
}

/* --- what the kernel recorded --- */

/* A thread of a target has ended; with the last one, the process. */
static void thread_ended(struct run *r, const struct sideband_record *rec)
{
	struct target *t = target_of(r, rec->pid);

	if (!t && !r->cfg->all)
		return;
	if (proc_table_live(r->procs, rec->pid)) {
		if (t)
			t->leader_gone |= rec->pid == rec->tid;
		return;
	}
	if (t)
		t->ended_ns = rec->ns;
	if (t && r->cfg->n_groups && session_ran_out_of_memory(r->session, rec->pid))
		groups_oom(r, rec->pid);
	targets_tell(r, &(struct process_event){ .kind = PROCESS_ENDED,
						 .pid = rec->pid,
						 .ns = rec->ns,
						 .target = true,
						 .listed = t });
}

/* An exec begins a new address space. */
static void image_replaced(struct run *r, const struct sideband_record *rec)
{
	struct target *t;

	if (groups_met(r, rec->pid))
		target_member(r, rec->pid);
	t = target_of(r, rec->pid);
	if (t)
		session_set_gen(r->session, rec->pid, 0);
	targets_tell(r, &(struct process_event){ .kind = PROCESS_EXEC,
						 .pid = rec->pid,
						 .ns = rec->ns,
						 .target = t || r->cfg->all,
						 .listed = t,
						 .leader_gone = t && t->leader_gone });
	if (t)
		t->leader_gone = false;
}

/* Is it a child of a target, which in the kernel is one since its fork? */
static bool child_added(struct run *r, const struct sideband_record *rec)
{
	struct target *t;
	pid_t ns_pid = 0;

	if (!r->cfg->children)
		return false;
	/* In a control group or out of it, whoever its parent is. */
	if (r->cfg->n_groups ? !session_is_target(r->session, rec->pid, &ns_pid)
			     : !target_of(r, rec->ppid))
		return false;
	t = target_of(r, rec->pid);
	r->targets->count.members += r->cfg->n_groups && (!t || t->ended_ns);
	if (target_add(r, rec->pid, false, true, NULL) < 0)
		return false;
	target_of(r, rec->pid)->ns_pid = ns_pid;
	if (r->cfg->n_groups && !target_of(r, rec->ppid))
		r->targets->members_due = true;
	r->targets->count.children++;
	return true;
}

static void process_forked(struct run *r, const struct sideband_record *rec)
{
	bool child;

	if (rec->pid == rec->ppid) /* a thread */
		return;
	child = child_added(r, rec);
	targets_tell(r, &(struct process_event){ .kind = PROCESS_FORKED,
						 .pid = rec->pid,
						 .ppid = rec->ppid,
						 .ns = rec->ns,
						 .target = child || r->cfg->all,
						 .listed = target_of(r, rec->pid),
						 .newborn = true,
						 .child = child });
}

static struct proc_mmap mapping_of(const struct sideband_record *rec)
{
	return (struct proc_mmap){ .addr = rec->addr,
				   .len = rec->len,
				   .file_off = rec->off,
				   .dev = rec->dev,
				   .ino = rec->ino,
				   .path = rec->name };
}

static void file_mapped(struct run *r, const struct sideband_record *rec)
{
	struct process_event event = { .kind = PROCESS_REMAPPING,
				       .pid = rec->pid,
				       .ns = rec->ns,
				       .listed = target_of(r, rec->pid),
				       .held = r->targets->holding };
	const struct proc_mmap map = mapping_of(rec);
	uint32_t gen;

	if (proc_table_knows(r->procs, rec->pid, &map))
		return;
	event.target = event.listed || r->cfg->all;
	if (proc_table_meets(r->procs, rec->pid, rec->addr, rec->len))
		targets_tell(r, &event);
	gen = proc_table_mmap(r->procs, rec->ns, rec->pid, &map);
	if (gen && event.target)
		session_set_gen(r->session, rec->pid, gen);
	event.kind = PROCESS_MAPPED;
	targets_tell(r, &event);
}

static void on_record(void *ctx, const struct sideband_record *rec)
{
	struct run *r = ctx;

	switch (rec->kind) {
	case SIDEBAND_MMAP:
		file_mapped(r, rec);
		break;
	case SIDEBAND_COMM:
		proc_table_comm(r->procs, rec->ns, rec->pid, rec->tid, rec->name, rec->exec);
		if (rec->exec)
			image_replaced(r, rec);
		break;
	case SIDEBAND_FORK:
		proc_table_fork(r->procs, rec->ns, rec->pid, rec->ppid, rec->tid);
		process_forked(r, rec);
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

	/* Memory without a file is one range here, of which a part may be known. */
	if ((map->perms & PROC_MAP_EXEC) &&
	    (proc_table_is_anon(map->path) ||
	     !proc_table_meets(m->r->procs, m->pid, rec.addr, rec.len)))
		on_record(m->r, &rec);
	return 0;
}

/* Records were lost: reads from /proc what the targets have mapped that is not known yet. All records up to
 * `ns` have been read. */
static void take_up_missed(struct run *r, uint64_t ns)
{
	struct target *t, *next;

	HASH_ITER (hh, r->targets->all, t, next) {
		struct missed m = { r, t->pid, ns };

		if (!t->ended_ns)
			proc_maps_each(t->pid, map_missed, &m, NULL);
	}
}

void targets_read(struct run *r, uint64_t now)
{
	struct targets *ts = r->targets;
	uint64_t lost;

	sideband_read(ts->sideband, on_record, r);
	lost = sideband_lost(ts->sideband);
	if (lost == ts->records_lost)
		return;
	ts->records_lost = lost;
	take_up_missed(r, now);
}

void targets_tick(struct run *r, uint64_t now)
{
	groups_tick(r, now);
	if (r->cfg->serve)
		sideband_rest(r->targets->sideband,
			      own_saves(r, SAVE_RECORDS) ? SAVING_REST_NS : SERVE_REST_NS);
}

void targets_look(struct run *r)
{
	groups_look(r);
}

/* A pid is free for others when its process has ended, and its last switch has been seen. */
void targets_drained(struct run *r, uint64_t now)
{
	struct target *t, *next;

	HASH_ITER (hh, r->targets->all, t, next) {
		if (!t->ended_ns || t->asked || now < t->ended_ns + LAST_SWITCH_NS)
			continue;
		session_untarget(r->session, t->pid);
		HASH_DEL(r->targets->all, t);
		free(t);
	}
}

void targets_end(struct run *r)
{
	struct launch *l = r->targets->launch;
	int status;

	if (!l)
		return;
	if (!launch_ended(l, &status)) {
		run_note(r, false, "the command is still running, as process %d",
			 (int)launch_pid(l));
		return;
	}
	r->end.child_ended = status != LAUNCH_STATUS_UNKNOWN;
	r->end.child_status = status;
	if (!r->end.child_ended)
		run_note(r, false, "the command has ended; its exit status is unknown");
}

const char *run_process_name(void *procs, pid_t pid)
{
	struct proc *p = proc_table_live(procs, pid);

	if (!p)
		p = proc_table_first(procs, pid);
	return p ? proc_comm(p) : NULL;
}
