/*
 * /proc/PID/smaps, in which paths are the target's choice: every mapping has an extent, a path that lies in its line, and sizes that
 * are not negative, or not known. A reader that stops is not called again.
 */
#include "proc/smaps.h"

#include <stdlib.h>
#include <string.h>

struct seen {
	size_t size;
	uint32_t n, stop_at;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_entry(void *ctx, const struct smaps_entry *entry)
{
	const int64_t kb[] = { entry->size_kb,      entry->rss_kb,     entry->pss_kb,
			       entry->shared_kb,    entry->private_kb, entry->dirty_kb,
			       entry->anonymous_kb, entry->swap_kb };
	struct seen *seen = ctx;

	if (entry->map.start >= entry->map.end || strlen(entry->map.path) > seen->size ||
	    (seen->stop_at && seen->n == seen->stop_at))
		abort();
	for (size_t i = 0; i < sizeof(kb) / sizeof(*kb); i++)
		if (kb[i] < MEM_UNKNOWN)
			abort();
	seen->n++;
	return seen->n == seen->stop_at;
}

static uint32_t read_up_to(const uint8_t *data, size_t size, uint32_t stop_at)
{
	struct seen seen = { .size = size, .stop_at = stop_at };
	FILE *f = fmemopen((void *)data, size, "r");

	if (!f)
		abort();
	if (smaps_read(f, on_entry, &seen) != (stop_at && seen.n == stop_at))
		abort();
	fclose(f);
	return seen.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t n;

	if (!size)
		return 0;
	n = read_up_to(data, size, 0);
	if (n && read_up_to(data, size, 1) != 1)
		abort();
	return 0;
}
