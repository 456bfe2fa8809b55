#include "collect/probes/uprobes.h"

#include "collect/overhead/realtime.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* From linux/bpf.h of 6.6 and later; Debian 12's is older. */
#define TRACE_UPROBE_MULTI   48
#define TRACE_UPROBE_SESSION 57 /* 6.13 */
#define MULTI_RETURN_PROBES  1u

struct link_create_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

static int multi_create(int prog_fd, const char *path, const uint64_t *offsets,
			const uint64_t *semaphores, const uint64_t *cookies, uint32_t n, pid_t pid,
			enum uprobe_end end)
{
	struct link_create_multi attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = end == UPROBE_BOTH ? TRACE_UPROBE_SESSION : TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.ref_ctr_offsets = (uintptr_t)semaphores,
		.cookies = (uintptr_t)cookies,
		.cnt = n,
		.multi_flags = end == UPROBE_RETURN ? MULTI_RETURN_PROBES : 0,
		.pid = (uint32_t)pid,
	};
	/* Without the padding at its end: the kernel refuses bytes it does not know. */
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr,
			      offsetof(struct link_create_multi, pad));

	return fd < 0 ? -errno : fd;
}

/* A program that does nothing, to be attached in this way; -errno. */
static int load_nothing(int attach_type)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, 2, &opts);
}

/*
 * A kernel that knows multi-uprobes and filters by process refuses pid -1 with EINVAL before it
 * looks at the file; one that filters by thread looks for such a thread (ESRCH). One that does not
 * know them does not load the program.
 */
bool uprobes_multi(void)
{
	static int known = -1;
	uint64_t offset = 0;
	int prog, link;

	if (known >= 0)
		return known;
	known = 0;
	prog = load_nothing(TRACE_UPROBE_MULTI);
	if (prog < 0)
		return false;
	link = multi_create(prog, "/", &offset, NULL, NULL, 1, 0, UPROBE_ENTRY);
	if (link == -EBADF) {
		link = multi_create(prog, "/", &offset, NULL, NULL, 1, -1, UPROBE_ENTRY);
		known = link == -EINVAL;
	}
	if (link >= 0)
		close(link);
	close(prog);
	return known;
}

/* The link is made before the file is looked at, and the kernel that refuses pid -1 with EINVAL has
 * looked at the attach type before. */
bool uprobes_session(void)
{
	static int known = -1;
	uint64_t offset = 0;
	int prog, link;

	if (known >= 0)
		return known;
	known = 0;
	prog = uprobes_multi() ? load_nothing(TRACE_UPROBE_SESSION) : -1;
	if (prog < 0)
		return false;
	link = multi_create(prog, "/", &offset, NULL, NULL, 1, 0, UPROBE_BOTH);
	known = link == -EBADF;
	if (link >= 0)
		close(link);
	close(prog);
	return known;
}

/* A kernel that knows such links looks for the perf event, and there is none. */
bool uprobes_cookies(void)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = 1);
	static int known = -1;
	int prog, link;

	if (known >= 0)
		return known;
	known = uprobes_multi();
	prog = known ? -1 : load_nothing(0);
	if (prog < 0)
		return known;
	link = bpf_link_create(prog, -1, BPF_PERF_EVENT, &opts);
	known = link == -EBADF;
	if (link >= 0)
		close(link);
	close(prog);
	return known;
}

void uprobes_prepare(struct bpf_program *prog, enum uprobe_end end)
{
	int type = end == UPROBE_BOTH ? TRACE_UPROBE_SESSION : TRACE_UPROBE_MULTI;

	if (uprobes_multi())
		bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)type);
}

/* The perf event type of uprobes, and the bit of its config that says "return". */
static int perf_type(uint64_t *ret_return_bit)
{
	static int type = -1;
	static unsigned bit;
	FILE *f;

	if (type < 0) {
		f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
		if (!f || fscanf(f, "%d", &type) != 1)
			type = -1;
		if (f)
			fclose(f);
		f = fopen("/sys/bus/event_source/devices/uprobe/format/retprobe", "re");
		if (!f || fscanf(f, "config:%u", &bit) != 1)
			bit = 0;
		if (f)
			fclose(f);
	}
	*ret_return_bit = 1ULL << bit;
	return type;
}

/* Attaches the program to an event, with `cookie`; takes over the event. */
static int perf_link(int prog_fd, int fd, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int link = bpf_link_create(prog_fd, fd, BPF_PERF_EVENT, &opts), r = link;

	if (link >= 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		r = -errno; /* before close() may change it */
		close(link);
	}
	close(fd); /* the link holds it */
	return r;
}

static int perf_create(int prog_fd, const char *path, uint64_t offset, uint64_t semaphore,
		       uint64_t cookie, pid_t pid, bool is_return)
{
	uint64_t return_bit;
	int type = perf_type(&return_bit), fd, r;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = (uint32_t)type,
		.config = (is_return ? return_bit : 0) | semaphore << 32,
		.config1 = (uintptr_t)path,
		.config2 = offset,
	};

	if (type < 0)
		return -EOPNOTSUPP;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, pid < 0 ? 0 : -1, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (cookie)
		return perf_link(prog_fd, fd, cookie);
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) == 0 &&
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int attach(const struct bpf_program *prog, int fd, const uint64_t *offsets,
		  const uint64_t *semaphores, const uint64_t *cookies, uint32_t n, pid_t pid,
		  enum uprobe_end end, int *ret_fds)
{
	char path[64];
	int prog_fd = bpf_program__fd(prog), r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (uprobes_multi()) {
		r = multi_create(prog_fd, path, offsets, semaphores, cookies, n, pid < 0 ? 0 : pid,
				 end);
		if (r < 0)
			return r;
		ret_fds[0] = r;
		return 1;
	}
	for (uint32_t i = 0; i < n; i++) {
		r = perf_create(prog_fd, path, offsets[i], semaphores ? semaphores[i] : 0,
				cookies ? cookies[i] : 0, pid, end == UPROBE_RETURN);
		if (r < 0) {
			uprobes_detach(ret_fds, i);
			return r;
		}
		ret_fds[i] = r;
	}
	return (int)n;
}

int uprobes_attach(const struct bpf_program *prog, int fd, const uint64_t *offsets,
		   const uint64_t *cookies, uint32_t n, pid_t pid, enum uprobe_end end,
		   int *ret_fds)
{
	return attach(prog, fd, offsets, NULL, cookies, n, pid, end, ret_fds);
}

int uprobes_attach_sites(const struct bpf_program *prog, int fd, const uint64_t *offsets,
			 const uint64_t *semaphores, const uint64_t *cookies, uint32_t n, pid_t pid,
			 int *ret_fds)
{
	return attach(prog, fd, offsets, semaphores, cookies, n, pid, UPROBE_ENTRY, ret_fds);
}

/* Such a call ends in a system call of its own, which refuses whoever comes from elsewhere. */
bool uprobes_nop5(void)
{
#if defined(__x86_64__)
	static int known = -1;

	if (known < 0)
		known = syscall(336) < 0 && errno == ENXIO;
	return known;
#else
	return false;
#endif
}

bool uprobes_ends_children(int fd, uint64_t off)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	uint8_t b[sizeof(nop5)];

	return uprobes_nop5() && pread(fd, b, sizeof(b), (off_t)off) == (ssize_t)sizeof(b) &&
	       memcmp(b, nop5, sizeof(b)) == 0;
}

/* --- closing --- */

#define CLOSERS 64 /* they only wait, and share the grace periods */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	int *fds;
	uint32_t n, cap, busy, threads;
	uint64_t cpu_ns;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .more = PTHREAD_COND_INITIALIZER,
	     .done = PTHREAD_COND_INITIALIZER };

/* CPU time of this thread since it last asked. */
static uint64_t cpu_since(uint64_t *last_ns)
{
	struct timespec ts;
	uint64_t ns, before = *last_ns;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	*last_ns = ns;
	return ns - before;
}

static void *close_loop(void *unused)
{
	uint64_t last_ns = 0;

	(void)unused;
	realtime_begin();
	pthread_mutex_lock(&closer.lock);
	for (;;) {
		int fd;

		while (!closer.n)
			pthread_cond_wait(&closer.more, &closer.lock);
		fd = closer.fds[--closer.n];
		closer.busy++;
		pthread_mutex_unlock(&closer.lock);
		close(fd);
		pthread_mutex_lock(&closer.lock);
		closer.busy--;
		closer.cpu_ns += cpu_since(&last_ns);
		if (!closer.n && !closer.busy)
			pthread_cond_broadcast(&closer.done);
	}
	return NULL;
}

/* Room for `n` more; false: out of memory. */
static bool closer_grow(uint32_t n)
{
	uint32_t cap = (closer.n + n) * 2;
	int *more;

	if (closer.n + n <= closer.cap)
		return true;
	more = realloc(closer.fds, cap * sizeof(*more));
	if (!more)
		return false;
	closer.fds = more;
	closer.cap = cap;
	return true;
}

void uprobes_detach(const int *fds, uint32_t n)
{
	pthread_t thread;

	if (!n)
		return;
	pthread_mutex_lock(&closer.lock);
	if (!closer_grow(n)) {
		pthread_mutex_unlock(&closer.lock);
		for (uint32_t i = 0; i < n; i++)
			close(fds[i]);
		return;
	}
	memcpy(closer.fds + closer.n, fds, n * sizeof(*fds));
	closer.n += n;
	while (closer.threads < CLOSERS && closer.threads < closer.n + closer.busy &&
	       pthread_create(&thread, NULL, close_loop, NULL) == 0) {
		pthread_detach(thread);
		closer.threads++;
	}
	pthread_cond_broadcast(&closer.more);
	pthread_mutex_unlock(&closer.lock);
}

uint64_t uprobes_detach_ns(void)
{
	uint64_t ns;

	pthread_mutex_lock(&closer.lock);
	ns = closer.cpu_ns;
	pthread_mutex_unlock(&closer.lock);
	return ns;
}

void uprobes_wait(void)
{
	pthread_mutex_lock(&closer.lock);
	while (closer.threads && (closer.n || closer.busy))
		pthread_cond_wait(&closer.done, &closer.lock);
	/* No thread could be made: what is left closes with the process. */
	pthread_mutex_unlock(&closer.lock);
}
