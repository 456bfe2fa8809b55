/*
 * Monitors of Java: the threads of a JVM that wait to enter one, and who holds it.
 *
 * A thread that waits has the monitor in its JavaThread (_current_pending_monitor, from objectMonitor.cpp's
 * CurrentPendingMonitor), whoever has inflated it. The monitor's owner is a JavaThread; where its owner had locked the
 * object without a monitor before, up to JDK 20, an address on that one's stack (BasicLock); from JDK 24 on a thread's number.
 */
#include "lang/hotspot.h"

#include <string.h>

enum {
	THREADS_MAX = 2048, /* of more, the first */
	PART = 256,         /* pointers that are read at once */
};

struct threads {
	const struct hotspot_rt *rt;
	const struct lang_memory *mem;
	uint64_t at[THREADS_MAX];
	uint32_t n;
};

static bool word(const struct threads *t, uint64_t at, uint64_t *ret_word)
{
	return lang_read(t->mem, at, ret_word, sizeof(*ret_word));
}

static bool list_threads(struct threads *t)
{
	uint64_t list, first;
	uint32_t n;

	if (!word(t, t->rt->threads.list, &list) || !list ||
	    !lang_read(t->mem, list + t->rt->threads.list_length, &n, sizeof(n)) ||
	    !word(t, list + t->rt->threads.list_threads, &first))
		return false;
	n = n < THREADS_MAX ? n : THREADS_MAX;
	for (t->n = 0; t->n < n;) {
		uint32_t part = n - t->n < PART ? n - t->n : PART;

		if (!lang_read(t->mem, first + 8ULL * t->n, &t->at[t->n], 8ULL * part))
			return false;
		t->n += part;
	}
	return true;
}

/* As the kernel numbers it; 0: it has none. */
static uint32_t tid_of(const struct threads *t, uint64_t thread)
{
	uint64_t os;
	uint32_t tid;

	if (!word(t, thread + t->rt->threads.os_thread, &os) || !os ||
	    !lang_read(t->mem, os + t->rt->threads.os_tid, &tid, sizeof(tid)))
		return 0;
	return tid;
}

/* Is `owner`, of a monitor, this thread? */
static bool owns(const struct threads *t, uint64_t thread, uint64_t owner)
{
	uint64_t id, base, size;

	if (t->rt->threads.by_id)
		return word(t, thread + t->rt->threads.id, &id) && id == owner;
	if (thread == owner)
		return true;
	return word(t, thread + t->rt->threads.stack_base, &base) && owner < base &&
	       word(t, thread + t->rt->threads.stack_size, &size) && base - owner <= size;
}

static uint32_t owner_of(const struct threads *t, uint64_t monitor)
{
	uint64_t owner;

	if (!word(t, monitor + t->rt->threads.owner, &owner) || !owner)
		return 0;
	for (uint32_t i = 0; i < t->n; i++)
		if (owns(t, t->at[i], owner))
			return tid_of(t, t->at[i]);
	return 0;
}

uint32_t hotspot_monitors(const struct lang_runtime *runtime, const struct lang_memory *mem,
			  struct hotspot_waiter *out, uint32_t cap, uint32_t *ret_threads)
{
	static struct threads t;
	uint64_t monitor, last = 0;
	uint32_t n = 0, owner = 0;

	*ret_threads = 0;
	t = (struct threads){ .rt = &runtime->hotspot, .mem = mem };
	if (runtime->lang != MS_LANG_HOTSPOT || !t.rt->threads.known || !list_threads(&t))
		return 0;
	*ret_threads = t.n;
	for (uint32_t i = 0; i < t.n && n < cap; i++) {
		if (!word(&t, t.at[i] + t.rt->threads.pending, &monitor) || !monitor)
			continue;
		/* Most wait for the same one. */
		if (monitor != last)
			owner = owner_of(&t, monitor);
		last = monitor;
		out[n] = (struct hotspot_waiter){ tid_of(&t, t.at[i]), owner };
		n += out[n].tid && out[n].tid != owner;
	}
	return n;
}
