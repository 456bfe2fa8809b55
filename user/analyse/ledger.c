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
	sum->pss += one->pss;
}

bool ledger_known(const struct ledger *l)
{
	return l->processes || l->not_read;
}

void ledger_apportion(struct ledger *l)
{
	for (int i = 0; i < N_LEDGER_HEAP_PARTS; i++) {
		l->parts[i].pss = (int64_t)((double)l->parts[i].resident * l->heap_pss);
		l->objects[i].pss = (int64_t)((double)l->objects[i].resident * l->heap_pss);
	}
}

void ledger_add(struct ledger *sum, const struct ledger *one)
{
	sum->processes += one->processes;
	sum->rss += one->rss;
	sum->pss += one->pss;
	sum->by_pss |= one->by_pss;
	sum->not_read += one->not_read;
	sum->not_read_rss += one->not_read_rss;
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

int64_t ledger_total(const struct ledger *l)
{
	return l->by_pss ? l->pss : l->rss;
}

int64_t ledger_part_bytes(const struct ledger *l, const struct ledger_row *row)
{
	return l->by_pss ? row->pss : row->resident;
}

int64_t ledger_unexplained(const struct ledger *l)
{
	int64_t rest = ledger_total(l);

	for (int i = 0; i < N_LEDGER_PARTS; i++)
		rest -= ledger_part_bytes(l, &l->parts[i]);
	return rest;
}
