#include "heap/snapshot/copy.h"

#include "base/clock.h"
#include "heap/process.h"
#include "heap/snapshot/twin.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum {
	THREADS_MAX = 1 << 14,
	MAPS_MAX = 1 << 18,
	RUNS_MAX = 1 << 20,
	PAGES = 4096,           /* words of pagemap that are read together: 16 MiB of memory */
	PIECE = 2 << 20,        /* is copied at once                                       */
	PATIENCE_MS = 1000,     /* for threads to stop                                     */
	STORED_PIECE = 1 << 20, /* of a file is loaded at once                           */
	PAUSE_US = 5000,
	TRIES = 3, /* of which each has more room than the one before         */
};

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_THERE (3ULL << 62)

/* What the child writes and its parent reads: untouched pages of it cost nothing. */
struct shared {
	int error;
	char sentence[256];
	struct copy_facts facts;
	uint64_t wanted; /* bytes that it would have taken              */
	uint32_t n_threads, n_maps, n_runs;
	struct stopped_thread threads[THREADS_MAX];
	struct heap_map maps[MAPS_MAX];
	struct copy_run runs[RUNS_MAX];
};

struct copy {
	struct heap_memory mem;
	struct shared *shared;
	uint8_t *bytes;
	uint64_t room;
	const struct copy_run *last; /* that was read: most reads are behind each other */

	/* Of a file: struct copy_parts. */
	bool is_stored, has_bytes;
	bool (*load)(void *ctx, uint64_t at, uint64_t len);
	void *ctx;
};

/* --- room --- */

static bool is_wanted(const struct heap_map *m)
{
	return m->kind != HEAP_MAP_OTHER;
}

int copy_predict(pid_t pid, uint64_t *ret_bytes, struct err *e)
{
	_cleanup_(heap_process_closep) struct heap_process *p = NULL;
	const struct heap_memory *mem;
	int r = heap_process_open(pid, INT64_MAX / 2, &p, e);

	mem = r == 0 ? heap_process_memory(p) : NULL;
	/* Linux 5.10 lists none, newer kernels refuse. */
	if (r == -ESRCH || (mem && !mem->n_maps))
		return err_set(
			e, -ESRCH,
			"process %d has no memory of its own: it has ended, or is a kernel thread",
			(int)pid);
	if (r < 0)
		return r;
	*ret_bytes = 0;
	for (uint32_t i = 0; i < mem->n_maps; i++) {
		const struct heap_map *m = &mem->maps[i];

		if (is_wanted(m))
			*ret_bytes += m->kind == HEAP_MAP_DATA ? m->end - m->start : m->rss;
	}
	return 0;
}

/* A file without a name; one that loses its name at once where the file system has no such files. */
static int open_nameless(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[4096];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (snprintf(path, sizeof(path), "%s/memscope-heap-XXXXXX", folder) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static int make_room(struct copy *c, uint64_t bytes, const char *folder, struct err *e)
{
	_cleanup_(closep) int fd = open_nameless(folder);
	struct statvfs fs;
	void *at;
	int r;

	if (fd < 0)
		return err_set(e, -errno, "%s: %s", folder, strerror(errno));
	if (fstatvfs(fd, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < bytes)
		return err_set(
			e, -ENOSPC,
			"%s: a copy of %llu MiB does not fit into the %llu MiB that are free there",
			folder, (unsigned long long)(bytes >> 20),
			(unsigned long long)((uint64_t)fs.f_bavail * fs.f_frsize >> 20));
	r = posix_fallocate(fd, 0, (off_t)bytes);
	if (r != 0)
		return err_set(e, -r, "%s: no room for a copy of %llu MiB: %s", folder,
			       (unsigned long long)(bytes >> 20), strerror(r));
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED)
		return err_set(e, -errno, "%s: %s", folder, strerror(errno));
	c->bytes = at;
	c->room = bytes;
	return 0;
}

static int make_shared(struct copy *c, struct err *e)
{
	void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return err_set(e, -ENOMEM, "out of memory");
	c->shared = at;
	return 0;
}

static void drop(struct copy *c)
{
	if (c->bytes && !c->is_stored)
		munmap(c->bytes, c->room);
	if (c->shared)
		munmap(c->shared, sizeof(*c->shared));
	c->bytes = NULL;
	c->shared = NULL;
}

/* --- the child --- */

struct copier {
	struct copy *c;
	pid_t pid; /* whose memory is read: the process, or its twin */
	bool wants_twin;
	uint64_t predicted;
	int pagemap_fd;
	uint64_t at; /* what is copied so far */
	uint64_t words[PAGES];
};

/* All of [addr, addr + len) that can be read. */
static void copy_run(struct copier *k, uint64_t addr, uint64_t len)
{
	struct shared *s = k->c->shared;

	s->wanted += len;
	if (s->n_runs == RUNS_MAX || k->at + len > k->c->room)
		return;
	s->runs[s->n_runs++] = (struct copy_run){ addr, len, k->at };
	for (uint64_t done = 0, piece; done < len; done += piece) {
		struct iovec to, from;
		ssize_t n;

		piece = len - done < PIECE ? len - done : PIECE;
		to = (struct iovec){ k->c->bytes + k->at + done, piece };
		from = (struct iovec){ (void *)(uintptr_t)(addr + done), piece };
		n = process_vm_readv(k->pid, &to, 1, &from, 1, 0);
		if (n == (ssize_t)piece)
			continue;
		/* A page that cannot be read: zeros, and on behind it. */
		n = n > 0 ? n - n % HEAP_PAGE : 0;
		memset(k->c->bytes + k->at + done + n, 0, HEAP_PAGE);
		s->facts.unreadable += HEAP_PAGE;
		piece = (uint64_t)n + HEAP_PAGE;
	}
	k->at += len;
}

/* Those pages of a mapping that were ever touched. */
static void copy_touched(struct copier *k, const struct heap_map *m)
{
	uint64_t from = 0; /* of the run; 0: none */

	for (uint64_t addr = m->start; addr < m->end;) {
		ssize_t n = pread(k->pagemap_fd, k->words, sizeof(k->words),
				  (off_t)(addr / HEAP_PAGE * 8));

		if (n < 8)
			break;
		for (ssize_t i = 0; i < n / 8 && addr < m->end; i++, addr += HEAP_PAGE) {
			bool there = k->words[i] & PM_THERE;

			if (there && !from)
				from = addr;
			if (!there && from) {
				copy_run(k, from, addr - from);
				from = 0;
			}
		}
	}
	if (from)
		copy_run(k, from, m->end - from);
}

static int copy_maps(struct copier *k, struct err *e)
{
	_cleanup_(heap_process_closep) struct heap_process *p = NULL;
	struct shared *s = k->c->shared;
	const struct heap_memory *mem;
	int r = heap_process_open(k->pid, INT64_MAX / 2, &p, e);

	if (r < 0)
		return r;
	mem = heap_process_memory(p);
	if (mem->n_maps > MAPS_MAX)
		return err_set(e, -E2BIG, "process %d: %u mappings are too many", (int)k->pid,
			       mem->n_maps);
	memcpy(s->maps, mem->maps, mem->n_maps * sizeof(*s->maps));
	s->n_maps = mem->n_maps;
	for (uint32_t i = 0; i < s->n_maps; i++)
		if (s->maps[i].kind == HEAP_MAP_DATA)
			copy_run(k, s->maps[i].start, s->maps[i].end - s->maps[i].start);
		else if (is_wanted(&s->maps[i]))
			copy_touched(k, &s->maps[i]);
	s->facts.bytes = k->at;
	return 0;
}

/*
 * What competes for the CPUs makes the pause longer, threads that have been let go among it: as long as the process is stopped,
 * this one comes first, where it may. Of a realtime process the kernel takes 5 % for others (sched_rt_runtime_us).
 */
static void set_urgent(bool is_urgent)
{
	struct sched_param param = { .sched_priority = is_urgent ? 1 : 0 };

	if (sched_setscheduler(0, is_urgent ? SCHED_FIFO : SCHED_OTHER, &param) < 0 && is_urgent)
		setpriority(PRIO_PROCESS, 0, -20);
}

/* A twin has one thread: which mappings are stacks of others, their registers say. */
static void mark_stacks(struct shared *s, const struct stopped *stopped)
{
	for (uint32_t t = 0; t < stopped->n; t++)
		for (uint32_t i = 0; i < s->n_maps; i++)
			if (stopped->threads[t].sp >= s->maps[i].start &&
			    stopped->threads[t].sp < s->maps[i].end &&
			    s->maps[i].kind == HEAP_MAP_ANON)
				s->maps[i].kind = HEAP_MAP_STACK;
}

static int open_pagemap(struct copier *k, struct err *e)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)k->pid);
	k->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (k->pagemap_fd < 0 && (errno == ESRCH || errno == ENOENT))
		return err_set(e, -ESRCH, "process %d has ended", (int)k->pid);
	return k->pagemap_fd < 0 ? err_set(e, -errno, "%s: %s", path, strerror(errno)) : 0;
}

static int copy_all(struct copier *k, struct err *e)
{
	uint64_t began = now_ns();
	int r = open_pagemap(k, e);

	if (r == 0)
		r = copy_maps(k, e);
	k->c->shared->facts.copy_ns = now_ns() - began;
	return r;
}

static int copy_stopped(struct copier *k, struct stopped *stopped, struct err *e)
{
	int r = copy_all(k, e);

	stop_release(stopped);
	return r;
}

/* The process goes on as soon as its twin is there. */
static int copy_twin(struct copier *k, struct twin *twin, struct stopped *stopped, struct err *e)
{
	uint64_t began = now_ns();
	int r = twin_make(twin, stopped, e);

	k->c->shared->facts.twin_ns = now_ns() - began;
	stop_release(stopped);
	set_urgent(false);
	if (r == 0) {
		k->pid = twin_pid(twin);
		r = copy_all(k, e);
		mark_stacks(k->c->shared, stopped);
	}
	k->c->shared->facts.twin_stays = twin_end(twin, stopped) < 0;
	return r;
}

static int child_work(struct copier *k, struct err *e)
{
	_cleanup_(stop_fini) struct stopped stopped = { 0 };
	_cleanup_(twin_freep) struct twin *twin = NULL;
	struct shared *s = k->c->shared;
	int r = k->wants_twin ? twin_prepare(k->pid, k->predicted, &twin, e) : 0;

	if (r < 0)
		return r;
	set_urgent(true);
	r = stop_all(k->pid, PATIENCE_MS, &stopped, e);
	if (r < 0)
		return r;
	r = twin ? copy_twin(k, twin, &stopped, e) : copy_stopped(k, &stopped, e);
	s->facts.pause_ns = stopped.ended_ns - stopped.began_ns;
	s->facts.stop_ns = stopped.stopped_ns - stopped.began_ns;
	s->facts.release_ns = stopped.ended_ns - stopped.releases_ns;
	s->facts.at_ns = stopped.stopped_ns;
	s->facts.n_missed = stopped.n_missed;
	s->n_threads = stopped.n < THREADS_MAX ? stopped.n : THREADS_MAX;
	memcpy(s->threads, stopped.threads, s->n_threads * sizeof(*s->threads));
	return r;
}

static _Noreturn void child(struct copy *c, const struct copier *how, pid_t parent)
{
	static struct copier k;
	struct err e = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	k = *how;
	k.c = c;
	c->shared->error = child_work(&k, &e);
	memcpy(c->shared->sentence, e.msg, sizeof(c->shared->sentence) - 1);
	_exit(0);
}

/* --- its parent --- */

static int run_child(struct copy *c, const struct copier *how, struct err *e)
{
	pid_t parent = getpid(), kid = fork();
	int status;

	if (kid < 0)
		return err_set(e, -errno, "no process can be started: %s", strerror(errno));
	if (kid == 0)
		child(c, how, parent);
	while (waitpid(kid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, -errno, "%s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(
			e, -EIO,
			"the process that copies memory ended by itself; the target runs on");
	if (c->shared->error < 0)
		return err_set(e, c->shared->error, "%s", c->shared->sentence);
	return 0;
}

/* No thread may be at a place where it can be borrowed for a twin: mostly the next moment is better. */
static int run_again(struct copy *c, const struct copier *how, struct err *e)
{
	int r = run_child(c, how, e);

	for (int i = 1; how->wants_twin && r == -EAGAIN && i < TRIES; i++) {
		usleep(PAUSE_US);
		r = run_child(c, how, e);
	}
	return r;
}

/* The first run that ends behind `addr`. */
static uint32_t find_run(const struct shared *s, uint64_t addr)
{
	uint32_t low = 0, high = s->n_runs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->runs[mid].addr + s->runs[mid].len <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool load(const struct copy *c, uint64_t at, uint64_t len)
{
	return !c->load || c->load(c->ctx, at, len);
}

static bool read_copy(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct copy *c = ctx;
	const struct shared *s = c->shared;
	const struct heap_map *m = heap_map_of(&c->mem, addr);
	uint8_t *to = buf;

	if (!m || !is_wanted(m) || len > m->end - addr || (c->is_stored && !c->has_bytes))
		return false;
	for (uint32_t i = find_run(s, addr); len; i++) {
		const struct copy_run *r = &s->runs[i];
		uint64_t gap = i == s->n_runs || r->addr >= addr + len ? len
			       : r->addr > addr                        ? r->addr - addr
								       : 0,
			 part;

		memset(to, 0, gap);
		to += gap;
		addr += gap;
		len -= gap;
		if (!len)
			return true;
		part = r->addr + r->len - addr < len ? r->addr + r->len - addr : len;
		if (!load(c, r->at + (addr - r->addr), part))
			return false;
		memcpy(to, c->bytes + r->at + (addr - r->addr), part);
		to += part;
		addr += part;
		len -= part;
	}
	return true;
}

static uint64_t resident_copy(void *ctx, uint64_t addr, uint64_t len)
{
	const struct copy *c = ctx;
	const struct shared *s = c->shared;
	uint64_t sum = 0, end = addr + len;

	for (uint32_t i = find_run(s, addr); i < s->n_runs && s->runs[i].addr < end; i++) {
		uint64_t from = s->runs[i].addr > addr ? s->runs[i].addr : addr;
		uint64_t to = s->runs[i].addr + s->runs[i].len < end
				      ? s->runs[i].addr + s->runs[i].len
				      : end;

		sum += to - from;
	}
	return sum;
}

int copy_take(pid_t pid, const char *folder, bool twin, struct copy **ret_copy, struct err *e)
{
	_cleanup_(copy_closep) struct copy *c = calloc(1, sizeof(*c));
	struct copier how = { .pid = pid, .wants_twin = twin };
	uint64_t bytes = 0;
	int r = c ? copy_predict(pid, &bytes, e) : err_set(e, -ENOMEM, "out of memory");

	how.predicted = bytes;
	for (int i = 0; r == 0 && i < TRIES; i++) {
		bytes += bytes / 8 + (8 << 20);
		r = make_shared(c, e);
		if (r == 0)
			r = make_room(c, bytes - bytes % HEAP_PAGE, folder, e);
		if (r == 0)
			r = run_again(c, &how, e);
		if (r < 0)
			return r;
		if (c->shared->wanted == c->shared->facts.bytes) {
			c->mem = (struct heap_memory){ c->shared->maps,
						       c->shared->n_maps,
						       read_copy,
						       resident_copy,
						       c,
						       NULL };
			*ret_copy = TAKE_PTR(c);
			return 0;
		}
		bytes = c->shared->wanted;
		drop(c);
	}
	return r < 0 ? r
		     : err_set(e, -EAGAIN,
			       "process %d: its memory grows faster than it can be copied",
			       (int)pid);
}

void copy_close(struct copy *c)
{
	if (!c)
		return;
	drop(c);
	free(c);
}

const struct heap_memory *copy_memory(const struct copy *c)
{
	return &c->mem;
}

const uint8_t *copy_bytes(struct copy *c, uint64_t addr, uint64_t *ret_len)
{
	const struct shared *s = c->shared;
	const struct copy_run *r = c->last;

	if (!r || addr < r->addr || addr >= r->addr + r->len) {
		uint32_t i = find_run(s, addr);

		r = i < s->n_runs ? &s->runs[i] : NULL;
		c->last = r;
	}
	if (!r || addr < r->addr) {
		*ret_len = r ? r->addr - addr : 0;
		return NULL;
	}
	*ret_len = r->addr + r->len - addr;
	if (c->load) {
		uint64_t piece = STORED_PIECE - (r->at + (addr - r->addr)) % STORED_PIECE;

		if (*ret_len > piece)
			*ret_len = piece;
		if (!load(c, r->at + (addr - r->addr), *ret_len))
			return NULL;
	}
	return c->bytes + r->at + (addr - r->addr);
}

const struct stopped_thread *copy_threads(const struct copy *c, uint32_t *ret_n)
{
	*ret_n = c->shared->n_threads;
	return c->shared->threads;
}

struct copy_facts copy_facts(const struct copy *c)
{
	return c->shared->facts;
}

/* --- of a file --- */

const struct copy_run *copy_runs(const struct copy *c, uint32_t *ret_n)
{
	*ret_n = c->shared->n_runs;
	return c->shared->runs;
}

const uint8_t *copy_stored(const struct copy *c, uint64_t at, uint64_t len)
{
	return load(c, at, len) ? c->bytes + at : NULL;
}

int copy_of_parts(const struct copy_parts *parts, struct copy **ret_copy)
{
	_cleanup_(copy_closep) struct copy *c = calloc(1, sizeof(*c));
	struct shared *s;

	if (parts->n_maps > MAPS_MAX || parts->n_threads > THREADS_MAX || parts->n_runs > RUNS_MAX)
		return -E2BIG;
	if (!c || make_shared(c, NULL) < 0)
		return -ENOMEM;
	s = c->shared;
	c->is_stored = true;
	c->has_bytes = parts->has_bytes;
	c->bytes = parts->bytes;
	c->load = parts->load;
	c->ctx = parts->ctx;
	s->facts = parts->facts;
	s->n_maps = parts->n_maps;
	s->n_threads = parts->n_threads;
	s->n_runs = parts->n_runs;
	if (s->n_maps)
		memcpy(s->maps, parts->maps, s->n_maps * sizeof(*s->maps));
	if (s->n_threads)
		memcpy(s->threads, parts->threads, s->n_threads * sizeof(*s->threads));
	if (s->n_runs)
		memcpy(s->runs, parts->runs, s->n_runs * sizeof(*s->runs));
	c->mem = (struct heap_memory){ s->maps, s->n_maps, read_copy, resident_copy, c, NULL };
	*ret_copy = TAKE_PTR(c);
	return 0;
}
