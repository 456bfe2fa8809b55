#include "analyse/ledger.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *title, *how;
} parts[N_LEDGER_PARTS] = {
	[LEDGER_TRACED] = { "live_traced", "live, traced", "allocated in the run" },
	[LEDGER_BEFORE] = { "live_preexisting", "live, pre-existing",
			    "in use since before the run" },
	[LEDGER_LIVE] = { "live", "live", "in use" },
	[LEDGER_FREE] = { "free_retained", "free, retained", "by the allocator" },
	[LEDGER_METADATA] = { "metadata", "allocator metadata", "headers, arenas, caches" },
	[LEDGER_HELD] = { "heap_unwalked", "heap, not walked", "in use or free" },
	[LEDGER_ANONYMOUS] = { "other_anonymous", "other anonymous", "smaps minus the above" },
	[LEDGER_STACKS] = { "stacks", "stacks", "smaps; by stack pointers and guard pages" },
	[LEDGER_DATA] = { "file_modified", "file-backed, modified",
			  "smaps; variables of programs" },
	[LEDGER_FILE] = { "file", "file-backed", "smaps" },
	[LEDGER_SHARED] = { "shared_memory", "shared memory", "smaps" },
};

const char *ledger_name(enum ledger_part part)
{
	return parts[part].name;
}

const char *ledger_title(enum ledger_part part)
{
	return parts[part].title;
}

const char *ledger_how(enum ledger_part part)
{
	return parts[part].how;
}

bool ledger_of_heap(enum ledger_part part)
{
	return part < N_LEDGER_HEAP_PARTS;
}

/* "glibc" and "glibc, jemalloc" are "glibc, jemalloc". */
static void add_allocators(struct ledger *sum, const char *names)
{
	char copy[sizeof(sum->allocators)], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
		size_t len = strlen(sum->allocators);

		if (!strstr(sum->allocators, name))
			snprintf(sum->allocators + len, sizeof(sum->allocators) - len, "%s%s",
				 len ? ", " : "", name);
	}
}

static void add_row(struct ledger_row *sum, const struct ledger_row *one)
{
	sum->resident += one->resident;
	sum->bytes += one->bytes;
	sum->blocks += one->blocks;
}

void ledger_add(struct ledger *sum, const struct ledger *one)
{
	sum->processes += one->processes;
	sum->rss += one->rss;
	for (int i = 0; i < N_LEDGER_PARTS; i++)
		add_row(&sum->parts[i], &one->parts[i]);
	for (int i = 0; i < N_LEDGER_HEAP_PARTS; i++)
		add_row(&sum->objects[i], &one->objects[i]);
	sum->object_arenas += one->object_arenas;
	sum->objects_traced |= one->objects_traced;
	sum->objects_by = sum->objects_by ? sum->objects_by : one->objects_by;
	add_allocators(sum, one->allocators);
	sum->caveat = sum->caveat ? sum->caveat : one->caveat;
	sum->unsupported_allocator = sum->unsupported_allocator ? sum->unsupported_allocator
								: one->unsupported_allocator;
	sum->took_ns += one->took_ns;
}

int64_t ledger_unexplained(const struct ledger *l)
{
	int64_t rest = l->rss;

	for (int i = 0; i < N_LEDGER_PARTS; i++)
		rest -= l->parts[i].resident;
	return rest;
}
