#include "samples.h"

#include "base/cleanup.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CPUS          64
#define RING_BYTES        (16u << 20)
#define SIDE_RING_BYTES   (1u << 20)
#define SAMPLES_BYTES_MAX (3ULL << 30)

/* In the order of their DWARF numbers. */
static const uint8_t perf_reg[SAMPLES_N_REGS] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,  PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,  PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
};

/* A perf event and its ring. */
struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t bytes;
};

struct taking {
	struct ring rings[2 * MAX_CPUS];
	uint32_t n_rings;
	pid_t child;
	int go; /* closed: the child may exec */
	struct samples s;
	uint32_t cap;
	uint64_t bytes;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static struct perf_event_attr attr_of(const struct sample_opts *o, bool side)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = PERF_TYPE_SOFTWARE,
		.config = side             ? PERF_COUNT_SW_DUMMY
			  : o->at_switches ? PERF_COUNT_SW_CONTEXT_SWITCHES
					   : PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1 << 16,
	};

	if (side) {
		a.mmap2 = a.mmap = a.comm = a.comm_exec = a.task = 1;
		return a;
	}
	a.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	for (int i = 0; i < SAMPLES_N_REGS; i++)
		a.sample_regs_user |= 1ULL << perf_reg[i];
	a.sample_stack_user = o->stack_bytes & ~7u;
	if (o->at_switches) {
		a.sample_period = 1;
	} else {
		a.freq = 1;
		a.sample_freq = o->hz;
	}
	return a;
}

static int ring_open(struct taking *t, struct perf_event_attr a, int cpu, size_t bytes,
		     struct err *e)
{
	struct ring *r = &t->rings[t->n_rings];
	int fd = (int)syscall(SYS_perf_event_open, &a, t->child, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	void *p;

	if (fd < 0 && errno == ENODEV)
		return 0; /* this CPU is not online */
	if (fd < 0)
		return err_set(e, -errno, "perf_event_open: %s", strerror(errno));
	p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return err_set(e, -errno, "perf ring of %zu bytes: %s", bytes, strerror(errno));
	}
	*r = (struct ring){ fd, p, bytes };
	t->n_rings++;
	return 0;
}

/* Keeps a copy of a record. */
static int keep(struct taking *t, const struct perf_event_header *h)
{
	struct perf_event_header *copy;
	uint64_t time_ns;

	if (t->s.n == t->cap) {
		uint32_t cap = t->cap ? 2 * t->cap : 4096;
		void *recs = realloc(t->s.recs, cap * sizeof(*t->s.recs));

		if (!recs)
			return -ENOMEM;
		t->s.recs = recs;
		t->cap = cap;
	}
	copy = malloc(h->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, h, h->size);
	/* PERF_SAMPLE_TID | PERF_SAMPLE_TIME: of a sample at the front, of all others at the end. */
	memcpy(&time_ns,
	       h->type == PERF_RECORD_SAMPLE ? (char *)copy + sizeof(*h) + 8
					     : (char *)copy + h->size - 8,
	       8);
	t->s.recs[t->s.n++] = (struct sample_rec){ time_ns, copy };
	t->s.n_samples += h->type == PERF_RECORD_SAMPLE;
	t->bytes += h->size;
	return 0;
}

static int ring_drain(struct taking *t, struct ring *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	const char *data = (const char *)r->page + 4096;
	static char whole[1 << 16];
	int err = 0;

	while (tail < head && err == 0) {
		const struct perf_event_header *h = (const void *)(data + tail % r->bytes);
		size_t first = r->bytes - tail % r->bytes, size = h->size;

		if (first < size) {
			memcpy(whole, h, first);
			memcpy(whole + first, data, size - first);
			h = (const void *)whole;
		}
		if (h->type == PERF_RECORD_LOST)
			t->s.lost += ((const uint64_t *)(h + 1))[1];
		else
			err = keep(t, h);
		tail += size;
	}
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}

static int drain(struct taking *t)
{
	int r = 0;

	for (uint32_t i = 0; i < t->n_rings && r == 0; i++)
		r = ring_drain(t, &t->rings[i]);
	return r;
}

static int start(struct taking *t, char *const argv[], struct err *e)
{
	int gate[2];
	char c;

	if (pipe2(gate, O_CLOEXEC) < 0)
		return err_set(e, -errno, "pipe: %s", strerror(errno));
	t->child = fork();
	if (t->child == 0) {
		close(gate[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		if (read(gate[0], &c, 1) < 0)
			_exit(126);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(gate[0]);
	t->go = gate[1];
	if (t->child < 0)
		return err_set(e, -errno, "fork: %s", strerror(errno));
	setpgid(t->child, t->child);
	return 0;
}

static int run(struct taking *t, const struct sample_opts *o, struct err *e)
{
	uint64_t end_ns = now_ns() + (uint64_t)(o->seconds * 1e9);
	struct pollfd polled[2 * MAX_CPUS];
	int r = 0;

	for (uint32_t i = 0; i < t->n_rings; i++)
		polled[i] = (struct pollfd){ .fd = t->rings[i].fd, .events = POLLIN };
	close(t->go);
	t->go = -1;
	while (r == 0 && t->s.n_samples < o->max && now_ns() < end_ns &&
	       t->bytes < SAMPLES_BYTES_MAX) {
		siginfo_t info = { 0 };

		if (poll(polled, t->n_rings, 50) < 0 && errno != EINTR)
			break;
		r = drain(t);
		if (waitid(P_PID, (id_t)t->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid == t->child)
			break;
	}
	if (r == 0)
		r = drain(t);
	return r < 0 ? err_set(e, r, "out of memory for samples") : 0;
}

static void stop(struct taking *t)
{
	if (t->go >= 0)
		close(t->go);
	if (t->child > 0) {
		kill(-t->child, SIGKILL);
		waitpid(t->child, NULL, 0);
	}
	for (uint32_t i = 0; i < t->n_rings; i++) {
		munmap(t->rings[i].page, t->rings[i].bytes + 4096);
		close(t->rings[i].fd);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct sample_rec *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

int samples_take(const struct sample_opts *o, char *const argv[], struct samples *ret_samples,
		 struct err *e)
{
	struct taking t = { .go = -1 };
	int r = start(&t, argv, e);

	for (int cpu = 0; r == 0 && cpu < sysconf(_SC_NPROCESSORS_CONF) && cpu < MAX_CPUS; cpu++) {
		r = ring_open(&t, attr_of(o, true), cpu, SIDE_RING_BYTES, e);
		if (r == 0)
			r = ring_open(&t, attr_of(o, false), cpu, RING_BYTES, e);
	}
	if (r == 0)
		r = run(&t, o, e);
	stop(&t);
	if (r < 0) {
		samples_fini(&t.s);
		return r;
	}
	qsort(t.s.recs, t.s.n, sizeof(*t.s.recs), by_time);
	*ret_samples = t.s;
	return 0;
}

void samples_fini(struct samples *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free((void *)s->recs[i].h);
	free(s->recs);
	*s = (struct samples){ 0 };
}

/* The order of sample_type's bits: tid, time, registers (ABI first), stack (size first). */
struct sample sample_read(const struct perf_event_header *h, uint64_t regs[SAMPLES_N_REGS])
{
	const uint64_t *w = (const uint64_t *)(h + 1);
	struct sample s = { .pid = (pid_t)(uint32_t)w[0],
			    .tid = (pid_t)(w[0] >> 32),
			    .time_ns = w[1] };
	uint64_t size;
	int n = 0;

	w += 2;
	if (*w++ != PERF_SAMPLE_REGS_ABI_64)
		return s;
	/* In the order of perf's numbers. */
	for (int bit = 0; bit < 64; bit++)
		for (int i = 0; i < SAMPLES_N_REGS; i++)
			if (perf_reg[i] == bit)
				regs[i] = w[n++];
	w += n;
	size = *w++;
	if (size) {
		s.stack = (const uint8_t *)w;
		s.stack_len = w[size / 8];
	}
	s.regs = regs;
	return s;
}
