/*
 * Control groups that are watched (-c, -G): who is in them is known to the kernel's programs at once, and
 * here soon after; whether they are there, and what takes their place when they are not.
 *
 *   made by a member   the record of its fork (run_targets.c)
 *   moved there        its next exec, or the next tick: all targets are looked through
 *   the group is gone  a group that is made at its path is watched before anyone is in it; a container
 *                      that gets its name is looked for, and where that one will be
 */
#include "base/clock.h"
#include "run/component.h"
#include "run/pipeline.h"
#include "run/targets_parts.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define GONE_NS  10000000000ULL /* a run without -d ends when nothing has been there for so long */
#define LOOK_NS  100000000ULL   /* between two looks at groups and members                       */
#define OOM_SAID 5              /* of those that were killed because memory ran out */
#define REST     20 /* what all engines are asked for a name takes a share of the time: 1 in so many */

static void on_member(void *ctx, const struct session_task *task)
{
	struct run *r = ctx;

	pipeline_processes(r);
	target_member(r, (pid_t)task->id.pid);
	proc_table_scan(r->procs, (pid_t)task->id.pid, task->id.exec_id, task->seen_ns, NULL);
	targets_tell(r, &(struct process_event){ .kind = PROCESS_LISTED,
						 .pid = (pid_t)task->id.pid,
						 .ns = task->seen_ns,
						 .target = target_of(r, (pid_t)task->id.pid),
						 .listed = target_of(r, (pid_t)task->id.pid) });
}

int groups_begin(struct run *r, struct err *e)
{
	const struct run_config *cfg = r->cfg;
	int rc = 0;

	for (uint32_t i = 0; i < cfg->n_groups && rc == 0; i++) {
		session_cgroup_path(r->session, cfg->groups[i].at.hierarchy,
				    cfg->groups[i].at.path);
		rc = session_cgroup(r->session, cfg->groups[i].at.hierarchy, cfg->groups[i].at.id,
				    e);
	}
	return rc == 0 && cfg->n_groups ? session_members(r->session, on_member, r, e) : rc;
}

bool groups_met(struct run *r, pid_t pid)
{
	pid_t ns_pid;

	if (!r->cfg->n_groups || target_of(r, pid) || !session_is_target(r->session, pid, &ns_pid))
		return false;
	r->targets->members_due = true;
	return true;
}

void groups_look(struct run *r)
{
	if (!r->targets->members_due)
		return;
	r->targets->members_due = false;
	session_members(r->session, on_member, r, NULL);
}

pid_t target_ns_pid(const struct run *r, pid_t pid)
{
	const struct target *t = target_of(r, pid);

	return t && t->ns_pid != pid ? t->ns_pid : 0;
}

void groups_oom(struct run *r, pid_t pid)
{
	pid_t ns_pid = target_ns_pid(r, pid);
	char inside[32] = "";

	if (r->targets->oom_kills++ >= OOM_SAID)
		return;
	if (ns_pid)
		snprintf(inside, sizeof(inside), " (%d there)", (int)ns_pid);
	run_note(r, false, "the kernel killed process %d%s because memory ran out", (int)pid,
		 inside);
}

static void meet(void *ctx, pid_t pid)
{
	groups_met(ctx, pid);
}

/* It has another directory than before: its id is another one. */
static void renew(struct run *r, struct group *g, uint64_t id)
{
	struct err e = { 0 };

	session_cgroup_gone(r->session, g->at.hierarchy, g->at.id);
	g->at.id = id;
	g->gone_ns = 0;
	g->restarts++;
	/* There is room for as many as may be named: what has gone has given its place back. */
	if (session_cgroup(r->session, g->at.hierarchy, id, &e) < 0)
		run_note(r, true, "%s is there again: %s", group_title(g), e.msg);
	r->targets->members_due = true;
	run_say(r, "%s is there again", group_title(g));
}

static void look_at(struct run *r, struct group *g, uint64_t now)
{
	struct cgroup at, was;
	uint64_t id, begin_ns;
	int rc;

	if (cgroup_id_of(r->cfg->mounts, g->at.hierarchy, g->at.path, &id) == 0) {
		if (id != g->at.id)
			renew(r, g, id);
		return;
	}
	if (!g->gone_ns)
		g->gone_ns = now;
	g->was_gone = true;
	if (now < r->targets->next_renew_ns)
		return;
	begin_ns = thread_cpu_ns();
	was = g->at;
	rc = group_renewed(r->cfg->mounts, g, &at);
	r->targets->next_renew_ns = now + REST * (thread_cpu_ns() - begin_ns);
	if (rc < 0)
		return;
	session_cgroup_gone(r->session, was.hierarchy, was.id);
	session_cgroup_path_gone(r->session, was.hierarchy, was.path);
	/* Its group may be made before we look again: then the programs have seen it. */
	session_cgroup_path(r->session, at.hierarchy, at.path);
	g->gone_ns = now;
	g->was_gone = true;
	id = at.id;
	g->at.id = 0;
	if (id)
		renew(r, g, id);
}

/* Nobody is left, and nobody has come for some time. */
static void check_end(struct run *r, uint64_t now)
{
	for (uint32_t i = 0; i < r->cfg->n_groups; i++) {
		const struct group *g = &r->cfg->groups[i];

		if (!g->gone_ns || now - g->gone_ns < GONE_NS)
			return;
	}
	if (r->cfg->duration_s > 0 || r->cfg->serve || r->end.why != RUN_END_UNKNOWN)
		return;
	run_ends(r, RUN_END_TARGET, "%.48s has been gone for %llu s",
		 group_title(&r->cfg->groups[0]), GONE_NS / 1000000000);
}

void groups_tick(struct run *r, uint64_t now)
{
	if (!r->cfg->n_groups || now < r->targets->next_look_ns)
		return;
	r->targets->next_look_ns = now + LOOK_NS;
	for (uint32_t i = 0; i < r->cfg->n_groups; i++)
		look_at(r, &r->cfg->groups[i], now);
	session_each_target(r->session, meet, r);
	targets_left(r);
	groups_look(r);
	check_end(r, now);
}
