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

/* Memory of a process may say anything. No runtime has counted less than nothing, half a year of pauses or 16 PiB. */
static int64_t counted(int64_t value)
{
	return value < 0 || value > GC_COUNTED_MAX ? GC_UNKNOWN : value;
}

static uint64_t at_most(uint64_t count)
{
	return count < (uint64_t)GC_COUNTED_MAX ? count : (uint64_t)GC_COUNTED_MAX;
}

static void keep_counted(struct gc_counters *c)
{
	c->count = at_most(c->count);
	c->major = at_most(c->major);
	for (uint32_t i = 0; i < c->n_kinds; i++)
		c->kinds[i].count = at_most(c->kinds[i].count);
	c->time_ns = counted(c->time_ns);
	c->longest_ns = counted(c->longest_ns);
	c->last_ns = counted(c->last_ns);
	c->live_bytes = counted(c->live_bytes);
	c->heap_bytes = counted(c->heap_bytes);
}

int gc_reader_read(struct gc_reader *r, struct gc_counters *ret_counters)
{
	struct gc_counters c = { .time_ns = GC_UNKNOWN,
				 .longest_ns = GC_UNKNOWN,
				 .last_ns = GC_UNKNOWN,
				 .live_bytes = GC_UNKNOWN,
				 .heap_bytes = GC_UNKNOWN };
	int rc = r->runtime->read(r->state, &c);

	if (rc < 0)
		return rc;
	keep_counted(&c);
	*ret_counters = c;
	return 0;
}

bool gc_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	return peek(pid, addr, buf, len);
}
