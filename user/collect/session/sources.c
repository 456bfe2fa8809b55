#include "collect/session/sources.h"
#include "abi.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The model's numbers are the kernel programs' own. */
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is " #b)
SAME(SOURCE_ONCPU, MS_ONCPU);
SAME(SOURCE_OFFCPU, MS_OFFCPU);
SAME(SOURCE_ALLOC, MS_ALLOC);
SAME(SOURCE_GROWTH, MS_GROWTH);
SAME(SOURCE_SYSCALLS, MS_SYSCALLS);
SAME(SOURCE_EVENTS, MS_EVENTS);
SAME(N_SOURCES, MS_N_SOURCES);
SAME(STACK_COMPLETE, MS_COMPLETE);
SAME(STACK_TRUNCATED, MS_TRUNCATED);
SAME(STACK_NO_TABLE, MS_NO_TABLE);
SAME(STACK_UNREADABLE, MS_UNREADABLE);
SAME(STACK_GUESSED, MS_GUESSED);
SAME(STACK_LOST, MS_LOST);
SAME(N_STACK_VERDICTS, MS_N_VERDICTS);
SAME(MEMORY_FILE, MS_MEMORY_FILE);
SAME(MEMORY_ANON, MS_MEMORY_ANON);
SAME(MEMORY_SHARED, MS_MEMORY_SHARED);
SAME(N_MEMORY_KINDS, MS_N_MEMORY_KINDS);
SAME(GROWTH_SAMPLE_PAGES, MS_GROWTH_PAGES);

/* clang-format off */
static struct profile_row rows[N_PROFILE_KINDS] = {
	[PROFILE_ONCPU] = {
		.name = "oncpu", .source = SOURCE_ONCPU, .n_types = 2, .default_type = 1,
		.types = { { "samples", "count" }, { "cpu", "nanoseconds" } }, .times = { 1, 0 }, .n_times = 2,
		.period = { "cpu", "nanoseconds" },
	},
	[PROFILE_OFFCPU] = {
		.name = "offcpu", .source = SOURCE_OFFCPU, .n_types = 4, .default_type = 1,
		.types = { { "blocked", "count" }, { "blocked", "nanoseconds" },
			   { "runnable", "count" }, { "runnable", "nanoseconds" } }, .times = { 1, 3 }, .n_times = 2,
		.period = { "blocked", "nanoseconds" },
	},
	[PROFILE_ALLOC] = {
		.name = "alloc", .source = SOURCE_ALLOC, .n_types = 2, .default_type = 1,
		.types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" } }, .times = { 1, 0 }, .n_times = 2,
		.period = { "space", "bytes" },
	},
	[PROFILE_HEAP] = {
		.name = "heap", .source = SOURCE_ALLOC, .n_types = 4, .default_type = 3,
		.types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
			   { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.period = { "space", "bytes" },
	},
	[PROFILE_PEAK] = {
		.name = "peak", .source = SOURCE_ALLOC, .n_types = 2, .default_type = 1,
		.types = { { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.period = { "space", "bytes" },
	},
	[PROFILE_GROWTH] = {
		.name = "growth", .source = SOURCE_GROWTH, .n_types = 2, .default_type = 0,
		.types = { { "resident", "bytes" }, { "returned", "bytes" } }, .times = { 0, 1 }, .n_times = 2,
		.period = { "resident", "bytes" },
	},
	[PROFILE_MAPPINGS] = {
		.name = "mappings", .source = SOURCE_ALLOC, .n_types = 4, .default_type = 3,
		.types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
			   { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.period = { "space", "bytes" },
	},
	/* As runtime/pprof has it, at the end of the run; and how long goroutines waited in it. */
	[PROFILE_GOROUTINE] = {
		.name = "goroutine", .source = SOURCE_OFFCPU, .n_types = 3, .default_type = 0,
		.types = { { "goroutine", "count" }, { "stops", "count" }, { "time", "nanoseconds" } },
		.period = { "goroutine", "count" },
	},
	/* Waits that ended, by where they were and who ended them. */
	[PROFILE_WAKERS] = {
		.name = "wakers", .source = SOURCE_OFFCPU, .n_types = 2, .default_type = 1,
		.types = { { "wakeups", "count" }, { "blocked", "nanoseconds" } },
		.period = { "blocked", "nanoseconds" },
	},
	[PROFILE_SYSCALLS] = {
		.name = "syscalls", .source = SOURCE_SYSCALLS, .n_types = 2, .default_type = 1,
		.types = { { "calls", "count" }, { "time", "nanoseconds" } }, .times = { 1, 0 }, .n_times = 2,
		.period = { "time", "nanoseconds" },
	},
};
/* clang-format on */

const struct profile_row *const profile_rows = rows;
static int n_rows = PROFILE_NAMED;
static char names[N_PROFILE_KINDS - PROFILE_NAMED][64],
	types[N_PROFILE_KINDS - PROFILE_NAMED][4][64];

int profile_kinds(void)
{
	return n_rows;
}

int profile_kind_add(const struct profile_row *row)
{
	struct profile_row *to = &rows[n_rows];
	int i = 0, k = n_rows - PROFILE_NAMED;

	while (i < n_rows && strcmp(rows[i].name, row->name) != 0)
		i++;
	if (i < n_rows)
		return i;
	if (n_rows == N_PROFILE_KINDS)
		return -ENOSPC;
	*to = *row;
	snprintf(names[k], sizeof(names[k]), "%s", row->name);
	to->name = names[k];
	for (uint32_t t = 0; t < row->n_types; t++) {
		snprintf(types[k][t], sizeof(types[k][t]), "%s", row->types[t].name);
		to->types[t].name = types[k][t];
	}
	to->period = to->types[to->default_type];
	return n_rows++;
}

void profile_type_name(const char *name, char ret_type[64])
{
	size_t i = 0;

	for (; name[i] && i < 63; i++)
		ret_type[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
	ret_type[i] = '\0';
}
