/* Table: runtimes whose collections are counted. */
#include "heap/gc/gc.h"
#include "proc/peek.h"

#include <errno.h>
#include <stdlib.h>

static const struct gc_source *const runtimes[] = { &gc_ghc, &gc_python, &gc_hotspot };

struct gc_reader {
	const struct gc_source *runtime;
	void *state;
	bool untested;
};

int gc_reader_open(pid_t pid, struct gc_reader **ret_reader)
{
	struct gc_reader *r = calloc(1, sizeof(*r));
	int rc = -ENOENT;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; rc == -ENOENT && i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		r->runtime = runtimes[i];
		rc = r->runtime->open(pid, &r->state, &r->untested);
	}
	if (rc < 0) {
		free(r);
		return rc;
	}
	*ret_reader = r;
	return 0;
}

void gc_reader_close(struct gc_reader *r)
{
	if (!r)
		return;
	r->runtime->close(r->state);
	free(r);
}

const char *gc_reader_runtime(const struct gc_reader *r)
{
	return r->runtime->name;
}

const char *gc_reader_missing(const struct gc_reader *r)
{
	return r->runtime->missing(r->state);
}

bool gc_reader_untested(const struct gc_reader *r)
{
	return r->untested;
}

int gc_reader_read(struct gc_reader *r, struct gc_counters *ret_counters)
{
	struct gc_counters c = { .time_ns = GC_UNKNOWN,
				 .longest_ns = GC_UNKNOWN,
				 .last_ns = GC_UNKNOWN,
				 .live_bytes = GC_UNKNOWN,
				 .heap_bytes = GC_UNKNOWN };
	int rc = r->runtime->read(r->state, &c);

	if (rc == 0)
		*ret_counters = c;
	return rc;
}

bool gc_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	return peek(pid, addr, buf, len);
}
