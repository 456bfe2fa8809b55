#include "inject/inject.h"

#include "base/clock.h"
#include "inject/check.h"
#include "inject/choose.h"
#include "inject/loader.h"
#include "inject/remote.h"
#include "preload/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096
/* The block, the code, and a stack for the one call. */
#define ROOM_BYTES (32 * PAGE_BYTES)
#define CODE_AT    PAGE_BYTES

#define CALL_US   2000000  /* for it to come back                       */
#define LOAD_US   10000000 /* for the library: the loader may be in use */
#define LEAVE_US  3000000  /* for the one of a memscope that was killed */
#define ANSWER_MS 10000

#define LISTS    50 /* of threads that are looked through */
#define LISTS_US 2000000

#define NOEXEC_SEAL 8u /* MFD_NOEXEC_SEAL, which vm.memfd_noexec=2 wants */

struct injected {
	pid_t pid, tid;
	int mem_fd, command_fd, answer_fd, area_fd; /* area_fd: -1 but with `exact` */
	bool exact, held;
	uint64_t stopped_us;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* --- the one call ----------------------------------------------------------------------------- */

static bool put(int mem_fd, uint64_t addr, const void *bytes, size_t len)
{
	return pwrite(mem_fd, bytes, len, (off_t)addr) == (ssize_t)len;
}

static int start_thread(struct remote *t, const struct inject_place *p,
			const struct agent_block *block, struct err *e)
{
	const uint64_t map[6] = { p->room,
				  ROOM_BYTES,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,
				  0 };
	const uint64_t protect[6] = { p->room + CODE_AT, PAGE_BYTES, PROT_READ | PROT_EXEC };
	uint64_t create[6] = { p->room, p->pthread_create };
	uint64_t stack = p->room + ROOM_BYTES, created = 0;
	struct loader code;
	int r;

	loader_get(&code);
	create[2] = p->room + CODE_AT + code.thread;
	r = remote_call(t, p->mmap, map, 0, p->restore, CALL_US, e);
	if (r < 0)
		return r;
	if (!put(t->mem_fd, p->room, block, sizeof(*block)) ||
	    !put(t->mem_fd, p->room + CODE_AT, code.code, code.bytes))
		return err_set(e, -ENOMEM, "process %d got no memory (limits, RLIMIT_AS)",
			       (int)t->pid);
	r = remote_call(t, p->mprotect, protect, stack, p->restore, CALL_US, e);
	if (r == 0)
		r = remote_call_told(t, p->room + CODE_AT, PAGE_BYTES, code.create, create, stack,
				     p->restore, p->room + offsetof(struct agent_block, created),
				     CALL_US, e);
	if (r < 0)
		return r;
	if (pread(t->mem_fd, &created, sizeof(created),
		  (off_t)(p->room + offsetof(struct agent_block, created))) != sizeof(created))
		return err_set(e, -ESRCH, "process %d has ended", (int)t->pid);
	if (created != 1 && remote_call(t, p->munmap, map, 0, p->restore, CALL_US, e) < 0)
		return -EAGAIN;
	if (created != 1)
		return err_set(e, -EAGAIN, "process %d could not start a thread: %s", (int)t->pid,
			       created ? strerror((int)created - 1) : "the call came back early");
	return 0;
}

/* --- the thread of ours ----------------------------------------------------------------------- */

/* Until its state is another than `from`. */
static int wait_ready(int mem_fd, uint64_t at, uint32_t from, struct agent_block *ret_block)
{
	for (uint64_t until_us = now_us() + LOAD_US;; usleep(200)) {
		if (pread(mem_fd, ret_block, sizeof(*ret_block), (off_t)at) !=
		    (ssize_t)sizeof(*ret_block))
			return -ESRCH;
		if (ret_block->state != from)
			return 0;
		if (now_us() >= until_us)
			return -ETIMEDOUT;
	}
}

static bool is_thread(pid_t pid, const char *at, pid_t tid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[320], line[512];

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, at);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "NSpid:", 6) == 0)
			return atoi(strrchr(line, '\t') + 1) == tid;
	return false;
}

/*
 * Its number here: in a container it knows another. 0: it has ended. The kernel's list of threads is cut
 * short where one of them is just ending, so that one look at it proves nothing.
 */
static pid_t find_thread_of(pid_t pid, pid_t tid)
{
	/* The number may be made up, and threads a hundred thousand. */
	uint64_t until_us = now_us() + LISTS_US;
	pid_t found = 0;
	char path[64];

	snprintf(path, sizeof(path), "%d", (int)tid);
	if (is_thread(pid, path, tid))
		return tid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	for (int i = 0; i < LISTS && !found && now_us() < until_us; i++) {
		struct dirent *d;
		DIR *dir = opendir(path);

		while (dir && !found && (d = readdir(dir)))
			if (is_thread(pid, d->d_name, tid))
				found = (pid_t)atoi(d->d_name);
		if (dir)
			closedir(dir);
	}
	return found;
}

/* Of a descriptor that may be any file's: nobody who serves a file system is asked. */
static int look_at(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		     STATX_TYPE | STATX_NLINK | STATX_SIZE, ret);
}

/* The process may have lied: only a pipe is opened, so that nothing else is ever written to. */
static int open_end(const struct injected *in, int fd, int flags)
{
	_cleanup_(closep) int at = -1;
	char path[96];
	struct statx st;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)in->pid, (int)in->tid, fd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 || look_at(at, &st) < 0)
		return -1;
	if (!S_ISFIFO(st.stx_mode)) {
		errno = EBADF;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	return open(path, flags | O_CLOEXEC | O_NONBLOCK);
}

/* Nor is a file written to that anybody has a name for: only a memfd that is empty. */
static int open_memfd(const struct injected *in, int fd)
{
	_cleanup_(closep) int own = memfd_create("memscope", MFD_CLOEXEC | NOEXEC_SEAL), at = -1;
	char path[96];
	struct statx st, ours;

	if (own < 0) /* before Linux 6.3 */
		own = memfd_create("memscope", MFD_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)in->pid, (int)in->tid, fd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 || own < 0 || look_at(at, &st) < 0 || look_at(own, &ours) < 0)
		return -1;
	if (!S_ISREG(st.stx_mode) || st.stx_nlink || st.stx_size ||
	    st.stx_dev_major != ours.stx_dev_major || st.stx_dev_minor != ours.stx_dev_minor) {
		errno = EBADF;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static int ask(struct injected *in, char command, struct inject_counts *ret_counts, struct err *e)
{
	struct agent_answer a;
	struct pollfd p = { .fd = in->answer_fd, .events = POLLIN };
	const struct timespec now = { 0 };
	sigset_t pipes, before;
	int r;

	/* Nobody there is an answer, too. */
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipes, &before);
	r = write(in->command_fd, &command, 1) == 1 ? 0 : -errno;
	if (r == -EPIPE)
		sigtimedwait(&pipes, NULL, &now);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == 0) {
		do
			r = poll(&p, 1, ANSWER_MS);
		while (r < 0 && errno == EINTR);
		if (r == 0)
			return err_set(
				e, -ETIMEDOUT,
				"the library in process %d did not answer: the dynamic linker "
				"is in use there",
				(int)in->pid);
		r = read(in->answer_fd, &a, sizeof(a)) == (ssize_t)sizeof(a) ? 0 : -ESRCH;
	}
	if (r < 0)
		return err_set(e, -ESRCH, "process %d has ended, or runs another program",
			       (int)in->pid);
	if (!(a.rate >= 0 && a.rate < 0x1p60))
		a.rate = 0;
	*ret_counts = (struct inject_counts){ a.places, a.left + a.loading, (uint64_t)a.rate,
					      a.python <= INJECT_PYTHON_REFUSED
						      ? (enum inject_python)a.python
						      : INJECT_PYTHON_NONE,
					      in->stopped_us };
	return 0;
}

static int copy_file(const char *path, int to)
{
	_cleanup_(closep) int from = open(path, O_RDONLY | O_CLOEXEC);
	char buf[65536];
	ssize_t n = -1;

	while (from >= 0 && (n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			return -1;
	return n == 0 ? 0 : -1;
}

/* Its path, which the dynamic linker knows of no other build: the memfd of each has more of "./". */
static void name_memfd(char *path, size_t cap, int fd, uint32_t others)
{
	size_t len = (size_t)snprintf(path, cap, "/proc/thread-self/fd/");

	for (uint32_t i = 0; i < others; i++)
		len += (size_t)snprintf(path + len, cap - len, "./");
	snprintf(path + len, cap - len, "%d", fd);
}

/* The library into the memfd that waits for it, which nobody changes any more then. */
static int fill(struct injected *in, uint64_t at, const char *library, uint32_t others,
		const struct agent_block *block, struct err *e)
{
	_cleanup_(closep) int fd = -1;
	const uint32_t filled = 1;
	char path[96];

	in->tid = find_thread_of(in->pid, block->tid);
	fd = open_memfd(in, block->library_fd);
	if (fd < 0 || copy_file(library, fd) < 0)
		return err_set(e, -ESRCH, "cannot put %s into process %d: %s", library,
			       (int)in->pid, strerror(errno));
	fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	name_memfd(path, sizeof(path), block->library_fd, others);
	if (!put(in->mem_fd, at + offsetof(struct agent_block, path), path, strlen(path) + 1) ||
	    !put(in->mem_fd, at + offsetof(struct agent_block, filled), &filled, sizeof(filled)))
		return err_set(e, -ESRCH, "process %d has ended", (int)in->pid);
	return 0;
}

static int meet(struct injected *in, const struct inject_place *place, const char *library,
		int32_t *ret_tid, struct err *e)
{
	struct inject_counts counts;
	struct agent_block block;
	int r = wait_ready(in->mem_fd, place->room, AGENT_NONE, &block);

	if (r == 0 && block.state == AGENT_EMPTY) {
		*ret_tid = block.tid;
		r = fill(in, place->room, library, place->memfds, &block, e);
		if (r < 0)
			return r;
		r = wait_ready(in->mem_fd, place->room, AGENT_EMPTY, &block);
	}
	if (r == -ETIMEDOUT)
		return err_set(
			e, r,
			"the library was not loaded within %d s: the dynamic linker of process %d "
			"is in use",
			LOAD_US / 1000000, (int)in->pid);
	if (r < 0)
		return err_set(e, r, "process %d has ended", (int)in->pid);
	*ret_tid = block.tid;
	switch (block.state) {
	case AGENT_NOT_LOADED:
		block.path[sizeof(block.path) - 1] = '\0';
		return err_set(e, -ENOEXEC, "process %d cannot load the library: %.300s",
			       (int)in->pid, block.path);
	case AGENT_PRELOADED:
		return err_set(e, -EALREADY, "process %d was started with the library",
			       (int)in->pid);
	case AGENT_BUSY:
		return err_set(e, -EBUSY, "another memscope has its library in process %d now",
			       (int)in->pid);
	case AGENT_READY:
		break;
	default:
		return err_set(e, -ENOMEM, "the library has no memory or no pipes in process %d",
			       (int)in->pid);
	}
	in->tid = find_thread_of(in->pid, block.tid);
	in->command_fd = open_end(in, block.command_fd, O_WRONLY);
	in->answer_fd = open_end(in, block.answer_fd, O_RDONLY);
	if (in->command_fd < 0 || in->answer_fd < 0)
		return err_set(e, -ESRCH, "cannot reach the thread with %s in process %d: %s",
			       library, (int)in->pid, strerror(errno));
	in->area_fd = in->exact ? open_memfd(in, block.area_fd) : -1;
	if (in->exact && in->area_fd < 0)
		return err_set(e, -ESRCH, "cannot share memory with process %d: %s", (int)in->pid,
			       strerror(errno));
	return ask(in, AGENT_STAY, &counts, e);
}

/* --- */

/* What was mapped, when the thread that ran there has ended. */
static void unmap(struct injected *in, const struct inject_place *place,
		  const struct errand *errand, int32_t tid)
{
	const uint64_t args[6] = { place->room, ROOM_BYTES };
	uint64_t until_ns = now_ns() + 3000000000;
	static struct remote t;

	/* It says itself which that is. */
	while (find_thread_of(in->pid, tid)) {
		if (now_ns() > until_ns)
			return;
		usleep(1000);
	}
	if ((in->held ? remote_take(in->pid, in->mem_fd, &t, NULL)
		      : choose_thread(errand, &t, NULL)) < 0)
		return;
	remote_call(&t, place->munmap, args, 0, place->restore, CALL_US, NULL);
	remote_release(&t);
}

static void make_block(const char *library, const struct inject_place *place,
		       const struct inject_how *how, struct agent_block *ret)
{
	memset(ret, 0, sizeof(*ret));
	strcpy(ret->path, library);
	strcpy(ret->function, AGENT_FUNCTION);
	strcpy(ret->memfd_name, INJECT_MEMFD);
	ret->dlopen = place->dlopen;
	ret->dlsym = place->dlsym;
	ret->dlerror = place->dlerror;
	ret->detach = place->pthread_detach;
	ret->munmap = place->munmap;
	ret->agent = place->agent;
	ret->memfd = place->memfd;
	ret->bytes = ROOM_BYTES;
	ret->rate = how->exact ? 512 << 10 : how->rate;
	ret->exact = how->exact;
}

/* The library is there, and its thread has answered. */
static int load(struct injected *in, const char *library, const struct inject_how *how,
		const struct inject_place *place, struct err *e)
{
	const struct errand errand = { in->pid, in->mem_fd, how->exact, place->memfd };
	static struct agent_block block;
	static struct remote thread;
	uint64_t from_us;
	int32_t tid = 0;
	int r;

	make_block(library, place, how, &block);
	r = how->held ? remote_take(in->pid, in->mem_fd, &thread, e)
		      : choose_thread(&errand, &thread, e);
	if (r < 0)
		return r;
	from_us = now_us();
	r = start_thread(&thread, place, &block, e);
	remote_release(&thread);
	in->stopped_us = now_us() - from_us;
	if (r < 0)
		return r;
	r = meet(in, place, library, &tid, e);
	if (r < 0 && r != -ESRCH && r != -ETIMEDOUT)
		unmap(in, place, &errand, tid);
	return r;
}

static int open_mem(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* By its path, or else by a memfd: the process may not read that file, or map it as code. */
static int load_somehow(struct injected *in, const char *library, const struct inject_how *how,
			struct inject_place *place, struct err *e)
{
	int r = load(in, library, how, place, e);
	struct err first;

	if (r != -ENOEXEC || place->memfd || place->agent)
		return r;
	first = e ? *e : (struct err){ 0 };
	place->memfd = true;
	r = load(in, library, how, place, e);
	if (r == -ENOEXEC && e)
		*e = first;
	return r;
}

int inject_begin(pid_t pid, const char *library, const struct inject_how *how,
		 struct injected **ret_in, struct err *e)
{
	_cleanup_(inject_freep) struct injected *in = calloc(1, sizeof(*in));
	struct inject_place place;
	uint64_t from_us;
	int r, mem_fd;
	bool busy;

	if (!in)
		return err_set(e, -ENOMEM, "out of memory");
	in->pid = pid;
	in->command_fd = in->answer_fd = in->area_fd = -1;
	in->exact = how->exact;
	in->held = how->held;
	/*
	 * Before all that is read of it: should it execute another program from now on, this is of no
	 * use any more, and nothing is called at addresses of the one that is gone.
	 */
	in->mem_fd = mem_fd = open_mem(pid);
	if (strlen(library) >= sizeof(((struct agent_block *)0)->path))
		return err_set(e, -ENAMETOOLONG, "the path of the library is too long");
	/* The thread of a memscope that was killed is gone a moment later. */
	from_us = now_us();
	do {
		busy = false;
		r = inject_look(pid, library, ROOM_BYTES, how->held, &place, e);
		if (r == -EAGAIN) {
			busy = true;
			r = -EBUSY;
		} else if (r == 0 && mem_fd < 0) {
			r = err_set(e, mem_fd, "cannot write to the memory of process %d: %s",
				    (int)pid, strerror(-mem_fd));
		} else if (r == 0) {
			r = load_somehow(in, library, how, &place, e);
			busy = r == -EBUSY;
		}
	} while (busy && now_us() - from_us < LEAVE_US && usleep(10000) == 0);
	if (r < 0)
		return r;
	*ret_in = TAKE_PTR(in);
	return 0;
}

int inject_area(struct injected *in)
{
	return TAKE_FD(in->area_fd);
}

int inject_check(pid_t pid, const char *library, bool exact, struct err *e)
{
	_cleanup_(closep) int mem_fd = open_mem(pid);
	static struct remote thread;
	struct inject_place place;
	struct errand errand;
	int r = inject_look(pid, library, ROOM_BYTES, false, &place, e);

	if (r < 0 || !choose_is_filtered(pid))
		return r;
	if (mem_fd < 0)
		return err_set(e, mem_fd, "cannot write to the memory of process %d: %s", (int)pid,
			       strerror(-mem_fd));
	errand = (struct errand){ pid, mem_fd, exact, place.memfd };
	r = choose_thread(&errand, &thread, e);
	if (r == 0)
		remote_release(&thread);
	return r;
}

int inject_map(struct injected *in, struct err *e)
{
	struct inject_counts counts;
	int r = ask(in, AGENT_EXACT, &counts, e);

	if (r == 0 && counts.places)
		return err_set(e, counts.places < 4096 ? -(int)counts.places : -EPROTO,
			       "the library cannot record in process %d: %s", (int)in->pid,
			       strerror((int)counts.places));
	return r;
}

int inject_hook(struct injected *in, struct inject_counts *ret_counts, struct err *e)
{
	return ask(in, AGENT_HOOK, ret_counts, e);
}

int inject_end(struct injected *in, struct inject_counts *ret_counts, struct err *e)
{
	char path[64];
	int r = ask(in, AGENT_LEAVE, ret_counts, e);

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)in->pid, (int)in->tid);
	for (int i = 0; r == 0 && i < 500 && access(path, F_OK) == 0; i++)
		usleep(200);
	return r;
}

void inject_free(struct injected *in)
{
	if (!in)
		return;
	if (in->command_fd >= 0)
		close(in->command_fd);
	if (in->answer_fd >= 0)
		close(in->answer_fd);
	if (in->mem_fd >= 0)
		close(in->mem_fd);
	if (in->area_fd >= 0)
		close(in->area_fd);
	free(in);
}
