/*
 * Growth: the table of address spaces is kept free of those that have gone, what the events came to is set
 * against the change of RSS that /proc tells, and what each stack has touched so far is kept over time.
 */
#include "analyse/leaks.h"
#include "analyse/sites.h"
#include "base/clock.h"
#include "base/hash.h"
#include "run/component.h"
#include "run/targets.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define SWEEP_NS     5000000000ULL
#define GROWTH_ROWS  10
#define SERIES_LEAST 262144 /* bytes that a stack must have touched to be followed over time */

/* What the events of memory came to, and what /proc says, of processes that were there all the time. */
struct growth_check {
	uint32_t processes;
	int64_t told_bytes, rss_bytes;
};

/* A process that was there when the run began. */
struct rss_baseline {
	pid_t pid;
	int64_t first_kb, last_kb; /* RSS */
	UT_hash_handle hh;
};

struct growth {
	struct run *run;
	struct rss_baseline *baselines;
	struct growth_check check;
	uint64_t next_sweep_ns;
	struct live_series *touched; /* bytes of each stack so far; NULL: of a host     */
	struct in_series {
		int64_t had, sum; /* what the series has of it; what the profile has */
	} * in_series;            /* of each stack, by its number                     */
	uint32_t n_in_series;
	struct site_row grown[GROWTH_ROWS], returned[GROWTH_ROWS];
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

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_GROWTH];
}

static void add_baseline(void *ctx, const struct target *t)
{
	struct rss_baseline *b = calloc(1, sizeof(*b));
	struct growth *g = ctx;

	if (!b)
		return;
	b->pid = t->pid;
	b->first_kb = rss_kb(t->pid);
	if (b->first_kb >= 0)
		HASH_ADD(hh, g->baselines, pid, sizeof(b->pid), b);
	if (b->first_kb < 0 || !hash_added(b))
		free(b);
}

static int start(void *self, struct err *e)
{
	struct growth *g = self;

	if (g->run->cfg->all)
		return 0;
	if (!g->run->cfg->tid)
		targets_each(g->run, add_baseline, g);
	g->touched = live_series_new();
	return g->touched ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int room_for(struct growth *g, uint32_t n)
{
	struct in_series *more;

	if (n <= g->n_in_series)
		return 0;
	n = n < 256 ? 256 : 2 * n;
	more = reallocarray(g->in_series, n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + g->n_in_series, 0, (n - g->n_in_series) * sizeof(*more));
	g->in_series = more;
	g->n_in_series = n;
	return 0;
}

/* By stack: samples of several labels may have one, and have other numbers when old ones are added up. */
static void row(void *self, uint64_t now)
{
	struct growth *g = self;
	const struct profile *p = g->run->profiles[PROFILE_GROWTH];
	uint64_t begin = session_start_ns(g->run->session);
	uint32_t n = p ? profile_n_samples(p) : 0;

	if (!p || !g->touched)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);

		if (room_for(g, s.stack.ix + 1) < 0) {
			g->run->oom = true;
			return;
		}
		g->in_series[s.stack.ix].sum = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);

		g->in_series[s.stack.ix].sum += s.values[0];
	}
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);
		struct in_series *in = &g->in_series[s.stack.ix];
		int64_t more = in->sum - in->had;

		if (more <= 0 || in->sum < SERIES_LEAST)
			continue;
		in->had = in->sum;
		g->run->oom |= live_series_add(g->touched, 0, s.stack, 1, more) < 0;
	}
	live_series_tick(g->touched, now > begin ? (double)(now - begin) / 1e9 : 0);
}

static void closing(void *self)
{
	row(self, now_ns());
}

static bool has_ended(void *ctx, const struct drain_memory *memory)
{
	(void)ctx;
	return kill(memory->pid, 0) < 0 && errno == ESRCH;
}

static void drained(void *self, uint64_t now)
{
	struct growth *g = self;

	if (now < g->next_sweep_ns)
		return;
	g->next_sweep_ns = now + SWEEP_NS;
	drain_memories(g->run->drain, has_ended, NULL);
}

/* A process that still has the memory it had when the run began. */
static bool compare(void *ctx, const struct drain_memory *memory)
{
	struct growth *g = ctx;
	struct rss_baseline *b;

	HASH_FIND(hh, g->baselines, &memory->pid, sizeof(memory->pid), b);
	if (!b || b->last_kb < 0 || memory->whole)
		return false;
	g->check.processes++;
	g->check.told_bytes += memory->net_pages * sysconf(_SC_PAGESIZE);
	g->check.rss_bytes += (b->last_kb - b->first_kb) * 1024;
	return false;
}

static void closed(void *self)
{
	struct growth *g = self;
	struct rss_baseline *b, *next;

	HASH_ITER (hh, g->baselines, b, next)
		b->last_kb = rss_kb(b->pid);
	if (g->baselines)
		drain_memories(g->run->drain, compare, g);
}

static void report(void *self, struct run_summary *s)
{
	struct growth *g = self;
	const struct profile *p = g->run->profiles[PROFILE_GROWTH];
	struct summary_growth *to = &s->growth;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), stats[N_STATS];
	int64_t collected[N_GC_RUNTIMES] = { 0 };
	struct ingest_stats in;
	const char *why;

	if (!p || !session_has(g->run->session, SOURCE_GROWTH, &why))
		return;
	drain_stats(g->run->drain, stats);
	ingest_stats(g->run->ingest, &in);
	to->known = true;
	for (int i = 0; i < N_MEMORY_KINDS; i++) {
		to->resident_bytes[i] = stats[STAT_RESIDENT_FILE + i] * page;
		to->returned_bytes[i] = stats[STAT_RETURNED_FILE + i] * page;
	}
	to->made_bytes = stats[STAT_MEMORY_MADE] * page;
	to->ended_bytes = (int64_t)(stats[STAT_MEMORY_ENDED] * page);
	to->on_stacks = in.resident_bytes;
	to->returned_on_stacks = in.returned_bytes;
	to->samples = stats[STAT_GROWTH_SAMPLES];
	gc_time(p, 0, collected);
	for (int i = 0; i < N_GC_RUNTIMES; i++)
		to->collector_bytes += (uint64_t)collected[i];
	to->check.processes = g->check.processes;
	to->check.reported_bytes = g->check.told_bytes;
	to->check.rss_bytes = g->check.rss_bytes;
	to->n_sites = row_count(sites_allocations(p, 0, -1, g->grown, GROWTH_ROWS));
	to->n_returned_sites = row_count(sites_allocations(p, 1, -1, g->returned, GROWTH_ROWS));
	if (g->touched)
		leaks_growing(g->touched, g->run->dict, to);
	to->sites = g->grown;
	to->returned_sites = g->returned;
}

static void free_growth(void *self)
{
	struct growth *g = self;

	hash_free(g->baselines);
	live_series_free(g->touched);
	free(g->in_series);
}

const struct component growth_component = {
	.name = "growth",
	.size = sizeof(struct growth),
	.wanted = wanted,
	.start = start,
	.drained = drained,
	.row = row,
	.closing = closing,
	.closed = closed,
	.report = report,
	.free = free_growth,
};
