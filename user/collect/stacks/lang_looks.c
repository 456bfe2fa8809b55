/*
 * What runtimes say of threads and tasks that wait, looked at from outside while the run goes on: monitors of Java, tasks of asyncio.
 */
#include "collect/stacks/stacks_parts.h"

enum {
	WAITERS_MAX = 1024, /* threads of a process that wait for monitors */
	TASKS_MAX = 4096,   /* of a process, at one time                   */
};

struct monitor_look {
	void (*waits)(void *ctx, pid_t pid, uint32_t tid, uint32_t owner_tid);
	void *ctx;
	uint32_t threads;
};

static void look_at_monitors(void *ctx, const struct proc_id *id, const struct lang_runtime *rt,
			     struct python_tasks *tasks)
{
	static struct hotspot_waiter found[WAITERS_MAX];
	struct monitor_look *look = ctx;
	pid_t pid = (pid_t)id->pid;
	struct lang_memory mem = { langs_read_process, &pid };
	uint32_t threads, n = hotspot_monitors(rt, &mem, found, WAITERS_MAX, &threads);

	(void)tasks;
	for (uint32_t i = 0; i < n; i++)
		look->waits(look->ctx, pid, found[i].tid, found[i].owner_tid);
	look->threads += threads;
}

uint32_t user_stacks_monitors(struct user_stacks *st,
			      void (*waits)(void *ctx, pid_t pid, uint32_t tid, uint32_t owner_tid),
			      void *ctx)
{
	struct monitor_look look = { waits, ctx, 0 };

	langs_each(st, MS_LANG_HOTSPOT, look_at_monitors, &look);
	return look.threads;
}

/* --- tasks of asyncio --- */

struct task_look {
	struct user_stacks *st;
	const struct proc_id *id;
	struct user_stacks_tasks *to;
};

static void on_task(void *ctx, const struct python_task *task)
{
	const struct task_look *look = ctx;
	struct user_stacks_task found = { .pid = (pid_t)look->id->pid,
					  .at = task->at,
					  .waits_for = task->waits_for,
					  .of_task = task->of_task };
	location_id leaf_first[PYTHON_TASK_FRAMES];

	for (uint32_t i = 0; i < task->n; i++)
		leaf_first[task->n - 1 - i] = langs_named(look->st, look->id, task->words[i]);
	found.stack = dict_stack(look->st->env.dict, leaf_first, task->n);
	look->to->task(look->to->ctx, &found);
}

static void look_at_tasks(void *ctx, const struct proc_id *id, const struct lang_runtime *rt,
			  struct python_tasks *tasks)
{
	struct task_look *look = ctx;
	pid_t pid = (pid_t)id->pid;
	struct lang_memory mem = { langs_read_process, &pid };
	struct python_task_fn fn = { .task = on_task, .ctx = look, .max = TASKS_MAX };

	look->id = id;
	if (python_tasks(rt, &mem, tasks, &fn) < 0)
		return;
	look->to->processes++;
	look->to->seen += fn.seen;
	look->to->ready += fn.ready;
	look->to->changed += fn.changed;
	look->to->more |= fn.more;
}

void user_stacks_tasks(struct user_stacks *st, struct user_stacks_tasks *to)
{
	struct task_look look = { .st = st, .to = to };

	langs_each(st, MS_LANG_PYTHON, look_at_tasks, &look);
}
