#include "heap/snapshot/snapshot.h"

#include "base/large.h"
#include "heap/python/python_heap.h"
#include "heap/snapshot/exact.h"
#include "heap/snapshot/file.h"
#include "heap/snapshot/mappings.h"
#include "heap/snapshot/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

enum { TRIES = 4, PAUSE_US = 3000, EXACT_TRIES = 16, EXACT_PAUSE_US = 1000 };

/* Reads through, and notes which mappings were read: where a walker finds its way, and no block is, its allocator keeps notes. */
struct watched {
	const struct heap_memory *mem;
	bool *read;
};

static bool read_watched(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct watched *w = ctx;
	const struct heap_map *m = heap_map_of(w->mem, addr);

	if (m)
		w->read[m - w->mem->maps] = true;
	return w->mem->read(w->mem->ctx, addr, buf, len);
}

static uint64_t resident_watched(void *ctx, uint64_t addr, uint64_t len)
{
	struct watched *w = ctx;

	return w->mem->resident(w->mem->ctx, addr, len);
}

/* All blocks. What does not add up has been in the middle of a change: -EAGAIN. */
static int walk(struct snapshot *s, bool *read)
{
	struct watched w = { copy_memory(s->copy), read };
	struct heap_found found = { 0 };
	struct heap_memory mem = *w.mem;
	uint64_t unknown = 0;

	python_interpreters(s->exact, &found);
	mem.found = &found;
	mem.read = read_watched;
	mem.resident = resident_watched;
	mem.ctx = &w;
	/* Twice: the first looks for where to begin, in places that are nobody's. */
	for (int i = 0; i < 2; i++) {
		int r;

		heap_blocks_clear(&s->blocks);
		memset(read, 0, mem.n_maps * sizeof(*read));
		s->blocks.max = UINT32_MAX - 1;
		s->blocks.objects = s->blocks.wants_parts = true;
		s->census = (struct heap_census){ .blocks = &s->blocks };
		r = heap_census_take(&mem, &s->census);
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < s->census.n; i++)
		unknown += s->census.use[i].unknown.bytes;
	return unknown || s->blocks.n_unknown ? -EAGAIN : 0;
}

/* --- which process that is --- */

static void read_comm(pid_t pid, struct snapshot_facts *f)
{
	_cleanup_(closep) int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, f->comm, sizeof(f->comm) - 1);
	f->comm[n > 0 ? n - (f->comm[n - 1] == '\n') : 0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, f->exe, sizeof(f->exe) - 1);
	f->exe[n > 0 ? n : 0] = '\0';
}

static void find_facts(struct snapshot *s, pid_t pid)
{
	struct snapshot_facts *f = &s->facts;
	struct timespec now;
	struct utsname host;

	f->pid = pid;
	f->contents = FILE_CONTENTS_ALL;
	read_comm(pid, f);
	clock_gettime(CLOCK_REALTIME, &now);
	f->taken_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (uname(&host) == 0) {
		snprintf(f->kernel, sizeof(f->kernel), "%.30s %.60s", host.sysname, host.release);
		snprintf(f->machine, sizeof(f->machine), "%.31s", host.machine);
	}
	for (uint32_t i = 0; i < s->census.n; i++)
		s->unknown += s->census.use[i].unknown.bytes;
}

static int build_types(struct snapshot *s, pid_t pid, bool *owned)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	_cleanup_(large_freep) uint32_t *known = NULL;
	int r;

	for (uint32_t i = 0; i < mem->n_maps; i++)
		owned[i] |= exact_owns(s->exact, &mem->maps[i]);
	r = mappings_add(s, owned);
	if (r == 0)
		r = types_init(&s->types);
	if (r == 0)
		r = exact_objects(s->exact, s, &known);
	if (r == 0)
		r = types_find(&s->types, s->copy, &s->blocks, known, pid);
	return r;
}

static int link_blocks(struct snapshot *s, pid_t pid, bool *owned)
{
	int r;

	s->index = block_index_new(s->blocks.rows, s->blocks.n);
	r = s->index ? exact_prepare(s->exact, s) : -ENOMEM;
	if (r == 0)
		r = scan_references(s);
	if (r == 0)
		r = scan_roots(s, owned);
	if (r == 0)
		r = types_find_linked(s, pid);
	if (s->collections.cut)
		snapshot_say(s, "too many words look like a collection: some were not looked at");
	return r;
}

static int build(struct snapshot *s, pid_t pid, bool *owned)
{
	int r = build_types(s, pid, owned);

	return r < 0 ? r : link_blocks(s, pid, owned);
}

/* With references only where they are few. */
static int build_some(struct snapshot *s, pid_t pid, bool *owned)
{
	uint64_t bytes = 0;
	int r = build_types(s, pid, owned);

	for (uint32_t i = 0; i < s->blocks.n; i++)
		bytes += 8 * (uint64_t)s->blocks.rows[i].words;
	return r < 0 || bytes > s->link_max ? r : link_blocks(s, pid, owned);
}

/* The copy, and its blocks; with what does not add up if that is so each time. */
static int look(pid_t pid, const struct snapshot_how *how, struct snapshot *s, bool **ret_read,
		struct err *e)
{
	int exact_tries = 0;

	for (int i = 0;;) {
		int r = copy_take(pid, how->folder, how->twin, &s->copy, e);
		struct copy_facts facts;

		if (r < 0)
			return r;
		facts = copy_facts(s->copy);
		s->paused_ns += facts.pause_ns;
		r = how->copied ? how->copied(how->ctx, &facts, e) : 0;
		if (r < 0)
			return r;
		r = exact_runtimes_open(s->exact, exact_runtimes, s->copy, pid, e);
		if (r == -EAGAIN && ++exact_tries < EXACT_TRIES) {
			copy_close(s->copy);
			s->copy = NULL;
			s->n_changing++;
			usleep(EXACT_PAUSE_US);
			continue;
		}
		if (r < 0)
			return r == -EAGAIN ? r : err_set(e, r, "%s", strerror(-r));
		free(*ret_read);
		*ret_read = calloc(copy_memory(s->copy)->n_maps + 1, sizeof(**ret_read));
		r = *ret_read ? walk(s, *ret_read) : -ENOMEM;
		if (r == 0 || (r == -EAGAIN && ++i == TRIES))
			return 0;
		if (r != -EAGAIN)
			return err_set(e, r, "%s", strerror(-r));
		exact_runtimes_close(s->exact);
		copy_close(s->copy);
		s->copy = NULL;
		s->n_changing++;
		usleep(PAUSE_US);
	}
}

static int take(pid_t pid, const struct snapshot_how *how, uint64_t link_max,
		int (*make)(struct snapshot *s, pid_t pid, bool *owned),
		struct snapshot **ret_snapshot, struct err *e)
{
	_cleanup_(snapshot_freep) struct snapshot *s = calloc(1, sizeof(*s));
	_cleanup_(freep) bool *read = NULL;
	int r;

	if (s)
		s->link_max = link_max;
	if (s)
		s->exact = calloc(1, sizeof(*s->exact));
	r = s && s->exact ? look(pid, how, s, &read, e) : err_set(e, -ENOMEM, "out of memory");
	if (r < 0)
		return r;
	if (!s->blocks.n && !exact_brings(s->exact))
		return err_set(
			e, -ENOENT,
			"process %d: none of its allocators is known, so its blocks cannot be listed (glibc, jemalloc, mimalloc, tcmalloc, musl, CPython's and GHC's are)",
			(int)pid);
	find_facts(s, pid);
	r = make(s, pid, read);
	if (r < 0)
		return err_set(e, r, "process %d: no memory for the graph of %llu blocks", (int)pid,
			       (unsigned long long)s->blocks.n);
	*ret_snapshot = TAKE_PTR(s);
	return 0;
}

int snapshot_take(pid_t pid, const struct snapshot_how *how, struct snapshot **ret_snapshot,
		  struct err *e)
{
	return take(pid, how, UINT64_MAX, build, ret_snapshot, e);
}

int snapshot_take_types(pid_t pid, const char *folder, uint64_t link_max,
			struct snapshot **ret_snapshot, struct err *e)
{
	const struct snapshot_how how = { .folder = folder };

	return take(pid, &how, link_max, build_some, ret_snapshot, e);
}

void snapshot_say(struct snapshot *s, const char *sentence)
{
	for (uint32_t i = 0; i < s->n_said; i++)
		if (strcmp(s->said[i], sentence) == 0)
			return;
	if (s->n_said < SNAPSHOT_SAID_MAX) {
		s->said[s->n_said] = strdup(sentence);
		s->n_said += s->said[s->n_said] != NULL;
	}
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_said; i++)
		free(s->said[i]);
	if (s->stored) {
		s->blocks.rows = NULL;
		s->types.of = NULL;
		s->types.object = NULL;
		s->blocks.parts = NULL;
		s->blocks.unknown = NULL;
		s->collections.of = NULL;
		s->lengths = NULL;
		if (s->exact)
			s->exact->brought_by = NULL;
	}
	if (s->exact)
		exact_runtimes_close(s->exact);
	free(s->exact);
	large_free(s->lengths);
	copy_close(s->copy);
	heap_blocks_free(&s->blocks);
	types_fini(&s->types);
	collections_fini(&s->collections);
	sites_free(s->sites);
	block_index_free(s->index);
	graph_free(s->graph);
	graph_free(s->reverse);
	large_free(s->roots);
	large_free(s->graph_roots);
	snapshot_stored_free(s->stored);
	free(s);
}

const char *snapshot_root_words(uint8_t kind)
{
	static const char *const kinds[SNAPSHOT_ROOT_KINDS] = {
		[SNAPSHOT_ROOT_ANCHOR] = "the anchor",
		[SNAPSHOT_ROOT_MODULE] = "the module",
		[SNAPSHOT_ROOT_FRAME] = "the running function",
		[SNAPSHOT_ROOT_CAF] = "the CAF",
		[SNAPSHOT_ROOT_GLOBAL] = "the variable",
		[SNAPSHOT_ROOT_TLS] = "a thread's own variable",
		[SNAPSHOT_ROOT_STACK] = "the stack",
		[SNAPSHOT_ROOT_REGISTER] = "a register",
		[SNAPSHOT_ROOT_GREEN] = "the thread",
		[SNAPSHOT_ROOT_STABLE] = "the stable pointer",
		[SNAPSHOT_ROOT_MAPPING] = "memory of no known allocator",
	};

	return kinds[kind];
}
