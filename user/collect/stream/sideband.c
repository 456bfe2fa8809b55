#include "collect/stream/sideband.h"

#include "base/grow.h"
#include "collect/session/kernel_perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#define PROMPT_PAGES 64 /* 256 KiB a CPU: some 2,500 mmap records */
#define CALM_PAGES   32 /* 128 KiB a CPU: 2,340 forks and ends, half of which wake us */
#define LEAST_PAGES  4
#define ALL_BYTES                                                                                  \
	(16U << 20) /* of all CPUs together: a host with more than 42 of them has smaller ones */

/*
 * When threads come and go by the hundred, nobody is woken for each: that interrupts the target, which took
 * 11 % of a CPU from a server of 700 threads a second (2026-11-23, an emulated APIC), and wakes us. An event
 * that has mmap records has those of tasks as well (perf_event_task_match), so all go to another ring then.
 */
#define RATE_NS 1000000000ULL /* over which is counted … */
#define BUSY    200           /* … reads that had nothing but threads: calm from here on … */
#define QUIET   100           /* … fewer records of threads than this: prompt again      */
#define CALM_NS 20000000ULL   /* between two reads while calm                             */

struct ring {
	int fd;
	void *base; /* one control page, then the data */
	uint32_t n_pages;
};

/* An event has no ring of its own: it writes to one of two. */
struct source {
	int fd;
	struct ring prompt, calm;
};

/* A record copied out of its ring, waiting for its turn. */
struct held {
	uint64_t ns;
	uint32_t off, len; /* in `bytes` */
	uint32_t order;    /* of arrival: keeps equal times stable */
};

struct sideband {
	struct source *sources;
	uint32_t n_sources;
	uint32_t page;
	struct sideband_pages pages;
	bool calm;
	uint64_t rest_ns;    /* it stays calm, and is read so rarely; 0: as paced */
	uint64_t counted_ns; /* since when … */
	uint32_t n_reads, n_thread_reads, n_threads; /* … there were so many of each */
	uint64_t read_ns;
	loop_fn fn;
	void *ctx;
	char *bytes;
	uint32_t n_bytes, cap_bytes;
	struct held *held;
	uint32_t n_held, cap_held;
	uint64_t lost;
};

/* sample_id_all appends this to each record, in the order of linux/perf_event.h for our
 * sample_type. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
};

struct mmap2_body {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

struct task_body {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

static int event_open(uint32_t cpu, bool records, uint32_t wake)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY, /* counts nothing: only the records are wanted */
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.disabled = !records,
		.mmap = records,
		.mmap2 = records,
		.comm = records,
		.comm_exec = records,
		.task = records,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = wake,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int ring_open(struct sideband *s, struct ring *ring, uint32_t cpu, uint32_t n_pages,
		     uint32_t wake)
{
	int fd = event_open(cpu, false, wake), r;

	ring->fd = -1;
	if (fd < 0)
		return fd;
	ring->base = mmap(NULL, (size_t)(1 + n_pages) * s->page, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);
	if (ring->base == MAP_FAILED) {
		r = -errno;
		close(fd);
		return r;
	}
	ring->n_pages = n_pages;
	ring->fd = fd;
	return 0;
}

static void ring_close(const struct sideband *s, struct ring *ring)
{
	if (ring->fd < 0)
		return;
	munmap(ring->base, (size_t)(1 + ring->n_pages) * s->page);
	close(ring->fd);
}

static void source_close(const struct sideband *s, struct source *from)
{
	closep(&from->fd);
	ring_close(s, &from->prompt);
	ring_close(s, &from->calm);
}

/* Which ring its records go to from now on. */
static int source_direct(const struct source *from, bool calm)
{
	const struct ring *to = calm ? &from->calm : &from->prompt;

	return ioctl(from->fd, PERF_EVENT_IOC_SET_OUTPUT, to->fd) < 0 ? -errno : 0;
}

static int source_open(struct sideband *s, uint32_t cpu)
{
	struct source from = { .fd = -1, .calm.fd = -1 };
	int r = ring_open(s, &from.prompt, cpu, s->pages.prompt, 1);

	if (r == 0)
		r = ring_open(s, &from.calm, cpu, s->pages.calm, s->pages.calm / 2 * s->page);
	if (r == 0)
		from.fd = r = event_open(cpu, true, 1);
	if (r >= 0)
		r = source_direct(&from, false);
	if (r < 0)
		source_close(s, &from);
	else
		s->sources[s->n_sources++] = from;
	return r;
}

struct sideband_pages sideband_pages(uint32_t n_cpus, uint32_t page)
{
	struct sideband_pages p = { PROMPT_PAGES, CALM_PAGES };

	while (p.prompt > LEAST_PAGES &&
	       (uint64_t)n_cpus * (p.prompt + p.calm) * page > ALL_BYTES) {
		p.prompt /= 2;
		p.calm = p.calm / 2 < LEAST_PAGES ? LEAST_PAGES : p.calm / 2;
	}
	return p;
}

int sideband_open(struct sideband **ret_sideband, struct err *e)
{
	_cleanup_(sideband_closep) struct sideband *s = calloc(1, sizeof(*s));
	long n_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	if (!s || n_cpus <= 0)
		return err_set(e, -ENOMEM, "out of memory");
	s->page = (uint32_t)sysconf(_SC_PAGESIZE);
	s->pages = sideband_pages((uint32_t)n_cpus, s->page);
	s->sources = calloc((size_t)n_cpus, sizeof(*s->sources));
	if (!s->sources)
		return err_set(e, -ENOMEM, "out of memory");
	/* An offline CPU fails with -ENODEV, and has no records. */
	for (uint32_t cpu = 0; cpu < (uint32_t)n_cpus && (r == 0 || r == -ENODEV); cpu++)
		r = source_open(s, cpu);
	if (r < 0 && r != -ENODEV)
		return err_set(e, r, "cannot follow mappings: %s",
			       r == -EACCES || r == -EPERM ? kernel_perf_refused() : strerror(-r));
	if (!s->n_sources)
		return err_set(e, -ENODEV, "cannot follow mappings: no CPU gives perf events");
	*ret_sideband = TAKE_PTR(s);
	return 0;
}

void sideband_close(struct sideband *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_sources; i++)
		source_close(s, &s->sources[i]);
	free(s->sources);
	free(s->bytes);
	free(s->held);
	free(s);
}

static uint64_t due_ns(void *ctx)
{
	const struct sideband *s = ctx;

	return s->calm ? s->read_ns + (s->rest_ns ?: CALM_NS) : LOOP_NEVER;
}

static int on_due(void *ctx, struct err *e)
{
	const struct sideband *s = ctx;

	return s->fn(s->ctx, e);
}

int sideband_watch(struct sideband *s, struct loop *loop, loop_fn fn, void *ctx)
{
	int rc = 0;

	s->fn = fn;
	s->ctx = ctx;
	for (uint32_t i = 0; i < s->n_sources && rc == 0; i++) {
		rc = loop_fd(loop, s->sources[i].prompt.fd, fn, ctx);
		if (rc == 0)
			rc = loop_fd(loop, s->sources[i].calm.fd, fn, ctx);
	}
	return rc < 0 ? rc : loop_at(loop, due_ns, on_due, s);
}

/* Room for a record of `len` bytes; NULL when out of memory (it then counts as lost). */
static char *hold(struct sideband *s, uint32_t len, uint64_t **ret_ns)
{
	struct held *h;

	if (!GROW(s->held, s->n_held, s->cap_held))
		return NULL;
	if (s->cap_bytes - s->n_bytes < len) {
		uint32_t cap = (s->cap_bytes ? s->cap_bytes * 2 : 65536) + len;
		char *more = realloc(s->bytes, cap);

		if (!more)
			return NULL;
		s->bytes = more;
		s->cap_bytes = cap;
	}
	h = &s->held[s->n_held];
	*h = (struct held){ .off = s->n_bytes, .len = len, .order = s->n_held };
	s->n_held++;
	s->n_bytes += len;
	*ret_ns = &h->ns;
	return s->bytes + h->off;
}

static void ring_copy(const struct sideband *s, const struct ring *ring, uint64_t pos, void *out,
		      uint32_t len)
{
	const char *data = (const char *)ring->base + s->page;
	uint32_t size = ring->n_pages * s->page, at = (uint32_t)(pos & (size - 1));
	uint32_t first = len < size - at ? len : size - at;

	memcpy(out, data + at, first);
	memcpy((char *)out + first, data, len - first);
}

static void ring_take(struct sideband *s, struct ring *ring)
{
	struct perf_event_mmap_page *page = ring->base;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;

	/* linux/perf_event.h: the acquire above keeps reads of records behind that of data_head, the
	 * release below keeps them before the kernel may overwrite them. Positions only grow. */
	while (tail < head) {
		struct perf_event_header header;
		struct sample_id id;
		uint64_t *ns;
		char *copy;

		ring_copy(s, ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) + sizeof(id))
			break; /* the kernel does not write such a record */
		copy = hold(s, header.size, &ns);
		if (copy) {
			ring_copy(s, ring, tail, copy, header.size);
			memcpy(&id, copy + header.size - sizeof(id), sizeof(id));
			*ns = id.time;
		} else {
			s->lost++;
		}
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void deliver(struct sideband *s, const struct held *h, sideband_fn fn, void *ctx)
{
	const char *rec = s->bytes + h->off, *body = rec + sizeof(struct perf_event_header);
	struct sideband_record out = { .ns = h->ns };
	struct perf_event_header header;
	struct mmap2_body mm;
	struct task_body task;
	uint32_t ids[2];
	uint64_t lost;

	memcpy(&header, rec, sizeof(header));
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		memcpy(&mm, body, sizeof(mm));
		out.kind = SIDEBAND_MMAP;
		out.pid = (pid_t)mm.pid;
		out.tid = (pid_t)mm.tid;
		out.addr = mm.addr;
		out.len = mm.len;
		out.off = mm.pgoff;
		out.dev = makedev(mm.maj, mm.min);
		out.ino = mm.ino;
		out.name = body + sizeof(mm);
		break;
	case PERF_RECORD_COMM:
		memcpy(ids, body, sizeof(ids));
		out.kind = SIDEBAND_COMM;
		out.pid = (pid_t)ids[0];
		out.tid = (pid_t)ids[1];
		out.exec = header.misc & PERF_RECORD_MISC_COMM_EXEC;
		out.name = body + sizeof(ids);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		memcpy(&task, body, sizeof(task));
		out.kind = header.type == PERF_RECORD_FORK ? SIDEBAND_FORK : SIDEBAND_EXIT;
		out.pid = (pid_t)task.pid;
		out.tid = (pid_t)task.tid;
		out.ppid = (pid_t)task.ppid;
		break;
	case PERF_RECORD_LOST:
		memcpy(&lost, body + sizeof(uint64_t), sizeof(lost));
		s->lost += lost;
		return;
	default:
		return;
	}
	fn(ctx, &out);
}

/* Moves records left for the next read to a new buffer: few, of the last microseconds. */
static void keep_rest(struct sideband *s, uint32_t done)
{
	uint32_t left = s->n_held - done, n_bytes = 0, at = 0;
	char *rest = NULL;

	for (uint32_t i = done; i < s->n_held; i++)
		n_bytes += s->held[i].len;
	if (left && !(rest = malloc(n_bytes))) {
		s->lost += left;
		left = n_bytes = 0;
	}
	for (uint32_t i = 0; i < left; i++) {
		struct held h = s->held[done + i];

		memcpy(rest + at, s->bytes + h.off, h.len);
		h.off = at;
		h.order = i;
		s->held[i] = h;
		at += h.len;
	}
	s->n_held = left;
	s->n_bytes = n_bytes;
	if (left) {
		free(s->bytes);
		s->bytes = rest;
		s->cap_bytes = n_bytes;
	}
}

/* --- prompt or calm --- */

static void direct(struct sideband *s, bool calm)
{
	int r = 0;

	for (uint32_t i = 0; i < s->n_sources && r == 0; i++)
		r = source_direct(&s->sources[i], calm);
	/* What fails is a CPU that went offline: the others may be where they are. */
	s->calm = calm;
}

void sideband_rest(struct sideband *s, uint64_t rest_ns)
{
	s->rest_ns = rest_ns;
	if (!s->calm)
		direct(s, true);
}

/* A read at `ns` had so many records, and of them so many of threads. */
static void pace(struct sideband *s, uint64_t ns, uint32_t n, uint32_t n_threads)
{
	s->read_ns = ns;
	if (s->rest_ns)
		return;
	s->n_reads += n > 0;
	s->n_thread_reads += n > 0 && n == n_threads;
	s->n_threads += n_threads;
	if (!s->calm && s->n_thread_reads > BUSY && s->n_thread_reads > s->n_reads / 4 * 3)
		direct(s, true);
	else if (ns < s->counted_ns + RATE_NS)
		return;
	else if (s->calm && s->n_threads < QUIET)
		direct(s, false);
	s->counted_ns = ns;
	s->n_reads = s->n_thread_reads = s->n_threads = 0;
}

/* A thread began, ended, or took a name: nothing of its process has changed. */
static bool is_of_thread(const struct sideband *s, const struct held *h)
{
	const char *rec = s->bytes + h->off;
	struct perf_event_header header;
	struct task_body task;

	memcpy(&header, rec, sizeof(header));
	if (header.type == PERF_RECORD_COMM)
		return !(header.misc & PERF_RECORD_MISC_COMM_EXEC);
	if (header.type != PERF_RECORD_FORK && header.type != PERF_RECORD_EXIT)
		return false;
	memcpy(&task, rec + sizeof(header), sizeof(task));
	return header.type == PERF_RECORD_FORK ? task.pid == task.ppid : task.pid != task.tid;
}

uint32_t sideband_read(struct sideband *s, sideband_fn fn, void *ctx)
{
	uint32_t done = 0, n_threads = 0;
	struct timespec ts;
	uint64_t cut;

	/* Before the rings are read: records that a ring gains meanwhile are younger, and wait. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	cut = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	for (uint32_t i = 0; i < s->n_sources; i++) {
		ring_take(s, &s->sources[i].prompt);
		ring_take(s, &s->sources[i].calm);
	}
	if (s->n_held)
		qsort(s->held, s->n_held, sizeof(*s->held), by_time);
	for (; done < s->n_held && s->held[done].ns <= cut; done++) {
		n_threads += is_of_thread(s, &s->held[done]);
		deliver(s, &s->held[done], fn, ctx);
	}
	keep_rest(s, done);
	pace(s, cut, done, n_threads);
	return s->n_held;
}

uint64_t sideband_lost(const struct sideband *s)
{
	return s->lost;
}
