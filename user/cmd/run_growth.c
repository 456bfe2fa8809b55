/*
 * Growth: the table of address spaces is kept free of those that have gone, and what the events came
 * to is set against the change of RSS that /proc tells.
 */
#include "cmd/run_parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define SWEEP_NS 5000000000ULL

/* A process that was there when the run began. */
struct grower {
	pid_t pid;
	int64_t first_kb, last_kb; /* RSS */
	UT_hash_handle hh;
};

/* VmRSS of /proc/PID/status, which newer kernels add up exactly; -1 when there is none. */
static int64_t rss_kb(pid_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256];
	long long kb = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %lld kB", &kb) == 1)
			break;
	return kb;
}

void run_growth_begin(struct run *r)
{
	struct watched *t, *next;

	if (!r->cfg->sources[MS_GROWTH] || r->cfg->all || r->cfg->tid)
		return;
	HASH_ITER (hh, r->targets, t, next) {
		struct grower *g = calloc(1, sizeof(*g));

		if (!g)
			return;
		g->pid = t->pid;
		g->first_kb = rss_kb(t->pid);
		if (g->first_kb >= 0)
			HASH_ADD(hh, r->growers, pid, sizeof(g->pid), g);
		if (g->first_kb < 0 || !hash_added(g))
			free(g);
	}
}

static bool has_ended(void *ctx, const struct ms_memory *memory, int64_t net_pages)
{
	(void)ctx;
	(void)net_pages;
	return kill((pid_t)memory->proc.tgid, 0) < 0 && errno == ESRCH;
}

void run_growth_sweep(struct run *r)
{
	uint64_t now = run_now_ns();

	if (!r->cfg->sources[MS_GROWTH] || now < r->next_memory_sweep_ns)
		return;
	r->next_memory_sweep_ns = now + SWEEP_NS;
	drain_memories(r->drain, has_ended, NULL);
}

/* A process that still has the memory it had when the run began. */
static bool compare(void *ctx, const struct ms_memory *memory, int64_t net_pages)
{
	pid_t pid = (pid_t)memory->proc.tgid;
	struct run *r = ctx;
	struct grower *g;

	HASH_FIND(hh, r->growers, &pid, sizeof(pid), g);
	if (!g || g->last_kb < 0 || memory->flags & MS_MEMORY_WHOLE)
		return false;
	r->growth.processes++;
	r->growth.told_bytes += net_pages * sysconf(_SC_PAGESIZE);
	r->growth.rss_bytes += (g->last_kb - g->first_kb) * 1024;
	return false;
}

void run_growth_end(struct run *r)
{
	struct grower *g, *next;

	HASH_ITER (hh, r->growers, g, next)
		g->last_kb = rss_kb(g->pid);
	if (r->growers)
		drain_memories(r->drain, compare, r);
}

void run_growth_free(struct run *r)
{
	hash_free(r->growers);
}
