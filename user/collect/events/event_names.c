#include "collect/events/event_names.h"

#include "base/opt.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SOFTWARE(event) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##event
#define HARDWARE(event) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##event

/* clang-format off */
const struct event_name event_names[] = {
	{ "page-faults", SOFTWARE(PAGE_FAULTS), "faults" },
	{ "minor-faults", SOFTWARE(PAGE_FAULTS_MIN), NULL },
	{ "major-faults", SOFTWARE(PAGE_FAULTS_MAJ), NULL },
	{ "context-switches", SOFTWARE(CONTEXT_SWITCHES), "cs" },
	{ "cpu-migrations", SOFTWARE(CPU_MIGRATIONS), "migrations" },
	{ "alignment-faults", SOFTWARE(ALIGNMENT_FAULTS), NULL },
	{ "emulation-faults", SOFTWARE(EMULATION_FAULTS), NULL },
	{ "cgroup-switches", SOFTWARE(CGROUP_SWITCHES), NULL },
	{ "cpu-clock", SOFTWARE(CPU_CLOCK), NULL },
	{ "task-clock", SOFTWARE(TASK_CLOCK), NULL },
	{ "cycles", HARDWARE(CPU_CYCLES), "cpu-cycles" },
	{ "instructions", HARDWARE(INSTRUCTIONS), NULL },
	{ "cache-references", HARDWARE(CACHE_REFERENCES), NULL },
	{ "cache-misses", HARDWARE(CACHE_MISSES), NULL },
	{ "branches", HARDWARE(BRANCH_INSTRUCTIONS), "branch-instructions" },
	{ "branch-misses", HARDWARE(BRANCH_MISSES), NULL },
	{ "bus-cycles", HARDWARE(BUS_CYCLES), NULL },
	{ "stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND), "idle-cycles-frontend" },
	{ "stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND), "idle-cycles-backend" },
	{ "ref-cycles", HARDWARE(REF_CPU_CYCLES), NULL },
	{ 0 },
};

/* By the numbers of PERF_COUNT_HW_CACHE_…; the first name of each is the one that is listed. */
static const char *const caches[][3] = {
	{ "L1-dcache", "l1-d", "L1-data" }, { "L1-icache", "l1-i", "L1-instruction" }, { "LLC", "L2", NULL },
	{ "dTLB", "d-tlb", NULL },          { "iTLB", "i-tlb", NULL },                 { "branch", "bpu", NULL },
	{ "node", NULL, NULL },
};
static const char *const ops[][2] = { { "load", "loads" }, { "store", "stores" }, { "prefetch", "prefetches" } };
/* clang-format on */
#define N(array) (sizeof(array) / sizeof(*(array)))

static bool is(const char *word, const char *name, size_t len)
{
	return word && strlen(word) == len && strncasecmp(word, name, len) == 0;
}

/* What kinds of access a cache has. */
static bool has_op(size_t cache, size_t op)
{
	if (cache == PERF_COUNT_HW_CACHE_L1I)
		return op != PERF_COUNT_HW_CACHE_OP_WRITE;
	return op == PERF_COUNT_HW_CACHE_OP_READ ||
	       (cache != PERF_COUNT_HW_CACHE_ITLB && cache != PERF_COUNT_HW_CACHE_BPU);
}

static void cache_name(const char *word, size_t op, bool misses, char *buf, size_t size)
{
	snprintf(buf, size, "%s-%s%s", word, ops[op][!misses], misses ? "-misses" : "");
}

static uint64_t cache_config(size_t cache, size_t op, bool misses)
{
	return cache | op << 8 | (uint64_t)misses << 16;
}

static bool find_cache(const char *name, size_t len, uint64_t *ret_config)
{
	char buf[64];

	for (size_t c = 0; c < N(caches); c++)
		for (size_t w = 0; w < N(caches[c]); w++)
			for (size_t i = 0; i < 2 * N(ops) && caches[c][w]; i++) {
				cache_name(caches[c][w], i / 2, i & 1, buf, sizeof(buf));
				if (!has_op(c, i / 2) || !is(buf, name, len))
					continue;
				*ret_config = cache_config(c, i / 2, i & 1);
				return true;
			}
	return false;
}

bool event_name_find(const char *name, size_t len, uint32_t *ret_type, uint64_t *ret_config)
{
	for (const struct event_name *row = event_names; row->name; row++)
		if (is(row->name, name, len) || is(row->synonym, name, len)) {
			*ret_type = row->type;
			*ret_config = row->config;
			return true;
		}
	if (!find_cache(name, len, ret_config))
		return false;
	*ret_type = PERF_TYPE_HW_CACHE;
	return true;
}

const char *event_name_near(const char *name)
{
	const char *words[2 * N(event_names)];
	size_t n = 0;

	for (const struct event_name *row = event_names; row->name; row++) {
		words[n++] = row->name;
		if (row->synonym)
			words[n++] = row->synonym;
	}
	return opt_nearest(name, words, n);
}

void event_names_of_caches(void (*each)(void *ctx, const char *name, uint64_t config), void *ctx)
{
	char buf[64];

	for (size_t c = 0; c < N(caches); c++)
		for (size_t i = 0; i < 2 * N(ops); i++) {
			cache_name(caches[c][0], i / 2, i & 1, buf, sizeof(buf));
			if (has_op(c, i / 2))
				each(ctx, buf, cache_config(c, i / 2, i & 1));
		}
}
