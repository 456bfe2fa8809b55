#include "run/monitors.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define LOOK_NS    50000000ULL /* at least, between two looks … */
#define LOOK_SHARE 400         /* … and so many times what one takes */

/* Names of threads are those that Java has given them, up to 15 characters. */
static bool read_comm(pid_t pid, uint32_t tid, char comm[16])
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)pid, tid);
	f = fopen(path, "re");
	if (!f || !fgets(comm, 16, f))
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	return true;
}

static void on_wait(void *ctx, pid_t pid, uint32_t tid, uint32_t owner_tid)
{
	struct monitors *m = ctx;
	struct monitor_owner *h;
	uint32_t i = 0;

	(void)tid;
	m->waits++;
	while (i < m->n_owners && (m->owners[i].pid != pid || m->owners[i].tid != owner_tid))
		i++;
	h = &m->owners[i];
	if (!owner_tid || i == MONITOR_OWNERS ||
	    (i == m->n_owners && !read_comm(pid, owner_tid, h->comm))) {
		m->unowned++;
		return;
	}
	if (i == m->n_owners) {
		h->pid = pid;
		h->tid = owner_tid;
		h->waits = 0;
		m->n_owners++;
	}
	h->waits++;
}

void monitors_tick(struct monitors *m, struct user_stacks *st, uint64_t now)
{
	uint64_t began, took;

	if (now < m->next_ns)
		return;
	/* Of this thread: what else runs on a busy machine is no part of what a look takes. */
	began = thread_cpu_ns();
	user_stacks_monitors(st, on_wait, m);
	took = (thread_cpu_ns() - began) * LOOK_SHARE;
	m->next_ns = now + (took > LOOK_NS ? took : LOOK_NS);
}

void monitors_report(const struct monitors *m, struct run_summary *to)
{
	const struct monitor_owner *most = NULL;

	for (uint32_t i = 0; i < m->n_owners; i++)
		if (!most || m->owners[i].waits > most->waits)
			most = &m->owners[i];
	to->monitors.waits = m->waits;
	to->monitors.unowned = m->unowned;
	if (!most)
		return;
	to->monitors.owner = most->comm;
	to->monitors.tid = most->tid;
	to->monitors.held = most->waits;
}
