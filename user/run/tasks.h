/*
 * What the tasks of asyncio await: looked at up to ten times a second while the run goes on, for the kernel sees one thread in epoll.
 */
#ifndef MEMSCOPE_RUN_TASKS_H
#define MEMSCOPE_RUN_TASKS_H

#include "analyse/summary.h"
#include "collect/stacks/user_stacks.h"

#define TASK_ROWS 10

struct tasks {
	uint64_t next_ns, now_ns;
	uint32_t looks; /* with asyncio there                                   */
	uint64_t seen, ready, changed, left_out;
	struct task_stack *stacks;
	struct task_age *ages;
	bool more;
	struct task_row rows[TASK_ROWS];
};

void tasks_tick(struct tasks *t, struct user_stacks *st, uint64_t now_ns);
void tasks_report(struct tasks *t, const struct dict *d, struct run_summary *to);
void tasks_free(struct tasks *t);

#endif
