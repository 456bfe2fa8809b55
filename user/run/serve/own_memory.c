/*
 * The memory of the service itself: its processes (window writers too) and the kernel's tables. What a run knows of names,
 * stacks and processes grows with what it has seen, so it is looked at, and where --own-memory is passed, the run ends with its window
 * and another one follows, which begins with nothing (service.c). One that has to end again too soon is followed by one that
 * gathers less (serve_past.level), and that is said. Children alone (writers, cells) end a run when they have passed it for half a minute.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "proc/own_children.h"
#include "run/component.h"
#include "run/serve/serve_config.h"

#include <string.h>

#define LOOK_NS 10000000000ULL
#define YOUNG_NS                                                                                   \
	60000000000ULL /* no run ends before, but for twice the limit: each end costs something, too */

/* A child that takes much for a while gives it back, and no sooner in another run. */
#define CHILD_LOOKS 3

struct own_memory {
	struct run *run;
	uint64_t next_ns;
	uint32_t by_children; /* looks in a row at which nothing but they passed the limit */
	bool said;            /* that the limit is passed, and nothing is left to be done */
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve && cfg->serve->own_memory_mb;
}

/* A figure of /proc/PID/…, kB; 0: it is gone. */
static uint64_t proc_kb(pid_t pid, const char *file, const char *name)
{
	char path[64], line[256];
	_cleanup_(fclosep) FILE *f = NULL;
	unsigned long long kb;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0 &&
		    sscanf(line + strlen(name), ": %llu", &kb) == 1)
			return kb;
	return 0;
}

/*
 * All processes of the service, bytes. What they share counts once: each page has to be looked at for that, so only if the
 * sum of all is above `enough`.
 */
static uint64_t processes_bytes(uint64_t enough)
{
	pid_t pids[OWN_CHILDREN_MAX + 1] = { getpid() };
	uint32_t n = 1 + own_children(pids + 1, OWN_CHILDREN_MAX);
	uint64_t rss_kb = 0, pss_kb = 0;

	for (uint32_t i = 0; i < n; i++)
		rss_kb += proc_kb(pids[i], "status", "VmRSS");
	if (rss_kb << 10 <= enough)
		return rss_kb << 10;
	for (uint32_t i = 0; i < n; i++)
		pss_kb += proc_kb(pids[i], "smaps_rollup", "Pss");
	return pss_kb << 10;
}

/* Writers of an earlier run are at work yet: another end would leave one more beside them, and free less than it takes. */
static bool earlier_ones_write(const struct serve_past *past)
{
	for (int i = 0; i < SERVE_WRITERS; i++)
		if (past->writers[i] && proc_kb(past->writers[i], "status", "VmRSS"))
			return true;
	return false;
}

static int ready(void *self, struct err *e)
{
	struct own_memory *m = self;

	(void)e;
	m->next_ns = now_ns() + LOOK_NS;
	return 0;
}

static void tick(void *self, uint64_t now)
{
	struct own_memory *m = self;
	const struct serve_config *serve = m->run->cfg->serve;
	uint64_t limit = (uint64_t)serve->own_memory_mb << 20, tables, all, age, own;

	if (now < m->next_ns)
		return;
	m->next_ns = now + LOOK_NS;
	tables = session_map_bytes(m->run->session);
	all = tables + processes_bytes(tables < limit ? limit - tables : 0);
	age = now - session_start_ns(m->run->session);
	own = tables + (all <= limit ? 0 : proc_kb(getpid(), "status", "VmRSS") << 10);
	m->by_children = all > limit && own <= limit ? m->by_children + 1 : 0;
	if (all <= limit || (age < YOUNG_NS && all < 2 * limit))
		return;
	if (m->by_children && (m->by_children < CHILD_LOOKS || earlier_ones_write(&serve->past)))
		return;
	if (serve->past.level < SERVE_LEVELS - 1 || age >= SERVE_SOON_NS) {
		run_ends(m->run, RUN_END_MEMORY, "%s of memory, --own-memory %u MiB",
			 unit_bytes((int64_t)all).s, serve->own_memory_mb);
		return;
	}
	if (!m->said) {
		char sentence[300];

		snprintf(
			sentence, sizeof(sentence),
			"%s of memory are in use, and --own-memory is %u MiB: the run is ended every "
			"%llu minutes for it; raise it, or lower --mem (now %u)",
			unit_bytes((int64_t)all).s, serve->own_memory_mb,
			SERVE_SOON_NS / 60000000000ULL, m->run->cfg->mem_mb);
		err_warn(sentence);
	}
	m->said = true;
}

const struct component own_memory_component = {
	.name = "own memory",
	.size = sizeof(struct own_memory),
	.wanted = wanted,
	.ready = ready,
	.tick = tick,
};
