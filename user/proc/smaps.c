#include "proc/smaps.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Several rows may add up to one field. */
static const struct {
	const char *name;
	size_t field;
} fields[] = {
	{ "Size:", offsetof(struct smaps_entry, size_kb) },
	{ "Rss:", offsetof(struct smaps_entry, rss_kb) },
	{ "Pss:", offsetof(struct smaps_entry, pss_kb) },
	{ "Shared_Clean:", offsetof(struct smaps_entry, shared_kb) },
	{ "Shared_Dirty:", offsetof(struct smaps_entry, shared_kb) },
	{ "Private_Clean:", offsetof(struct smaps_entry, private_kb) },
	{ "Private_Dirty:", offsetof(struct smaps_entry, private_kb) },
	{ "Shared_Dirty:", offsetof(struct smaps_entry, dirty_kb) },
	{ "Private_Dirty:", offsetof(struct smaps_entry, dirty_kb) },
	{ "Anonymous:", offsetof(struct smaps_entry, anonymous_kb) },
	{ "Swap:", offsetof(struct smaps_entry, swap_kb) },
};

static void take_row(struct smaps_entry *entry, const char *line)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		size_t len = strlen(fields[i].name);
		int64_t *to = (int64_t *)((char *)entry + fields[i].field);
		int64_t kb, sum;

		if (strncmp(line, fields[i].name, len) != 0)
			continue;
		kb = strtoll(line + len, NULL, 10);
		if (kb >= 0 && !__builtin_add_overflow(*to < 0 ? 0 : *to, kb, &sum))
			*to = sum;
	}
}

static void begin(struct smaps_entry *entry, const struct proc_map *map)
{
	*entry = (struct smaps_entry){ .map = *map };
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		*(int64_t *)((char *)entry + fields[i].field) = MEM_UNKNOWN;
}

int smaps_read(FILE *f, smaps_fn fn, void *ctx)
{
	/* The line of the mapping in hand keeps its path while its rows are read. */
	_cleanup_(freep) char *head = NULL, *line = NULL;
	size_t head_cap = 0, cap = 0;
	struct smaps_entry entry;
	bool in_hand = false;
	ssize_t n;
	int r;

	while ((n = getline(&line, &cap, f)) > 0) {
		struct proc_map map;
		char *was = head;
		size_t was_cap = head_cap;

		if (line[n - 1] == '\n')
			n--;
		/* Rows begin with a capital letter, mappings with a hexadecimal digit. */
		if (line[0] >= 'A' && line[0] <= 'Z') {
			if (in_hand)
				take_row(&entry, line);
			continue;
		}
		if (cap < (size_t)n + 1 || proc_maps_parse(line, (size_t)n, &map) < 0)
			continue;
		if (in_hand) {
			r = fn(ctx, &entry);
			if (r)
				return r;
		}
		begin(&entry, &map);
		in_hand = true;
		head = line;
		head_cap = cap;
		line = was;
		cap = was_cap;
	}
	/* A process that has ended has fewer mappings; a line that there is no memory for is no end. */
	if (!feof(f) && !ferror(f))
		return -ENOMEM;
	return in_hand ? fn(ctx, &entry) : 0;
}

int smaps_each(pid_t pid, smaps_fn fn, void *ctx, struct err *e)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "re");
	if (!f && (errno == ENOENT || errno == ESRCH))
		return err_set(e, -ESRCH, "process %d is gone", (int)pid);
	if (!f)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	r = smaps_read(f, fn, ctx);
	return r == -ENOMEM
		       ? err_set(e, r, "out of memory for the mappings of process %d", (int)pid)
		       : r;
}
