#include "inject/inject.h"

#include "inject/check.h"
#include "inject/loader.h"
#include "inject/remote.h"
#include "inject/safe.h"
#include "preload/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096
/* The block, the code, and a stack for the one call. */
#define ROOM_BYTES (32 * PAGE_BYTES)
#define CODE_AT    PAGE_BYTES

#define SEARCH_US 5000000  /* for a thread that may be asked            */
#define RUNS_US   200000   /* for one of which it is known what it does */
#define CALL_US   2000000  /* for it to come back                       */
#define LOAD_US   10000000 /* for the library: the loader may be in use */
#define LEAVE_US  3000000  /* for the one of a memscope that was killed */
#define ANSWER_MS 10000

#define THREADS_MAX 4096
#define LISTS       50 /* of threads that are looked through */

struct injected {
	pid_t pid, tid;
	int mem_fd, command_fd, answer_fd, area_fd; /* area_fd: -1 but with `exact` */
	bool exact;
	uint64_t stopped_us;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* --- whom to ask ------------------------------------------------------------------------------ */

struct candidate {
	pid_t tid;
	int trouble; /* how much it would notice: the least first */
};

/* What it does is not known: it may be in the middle of a system call that would be cut short. */
#define TROUBLE_RUNS 3

/* Its filter may end the process for what we have it do: that is a thread's own, as it came to it. */
static bool is_filtered(pid_t pid, pid_t tid)
{
	char path[64], line[512];
	int filter = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &filter) == 1)
			break;
	if (f)
		fclose(f);
	return filter;
}

/*
 * It waits in a system call that has perhaps been carried out in part: stopped, it would end with
 * that part, as only a signal's handler makes it do otherwise.
 */
static bool may_be_cut(long number, const unsigned long long args[4])
{
	switch (number) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_vmsplice:
	case SYS_tee:
	case SYS_copy_file_range:
	case SYS_recvmmsg:
		return true;
	case SYS_recvfrom:
		return args[3] & MSG_WAITALL;
	case SYS_recvmsg:
		return args[2] & MSG_WAITALL;
	}
	return false;
}

/* By what the kernel says of it, without touching it. -1: not to be stopped now. */
static int trouble_of(pid_t pid, pid_t tid)
{
	char path[64], line[512], *paren;
	unsigned long long args[4] = { 0 };
	long number;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	f = fopen(path, "re");
	paren = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	if (!paren || !strchr("RS", paren[2]) || is_filtered(pid, tid))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f) ||
	    sscanf(line, "%ld %llx %llx %llx %llx", &number, &args[0], &args[1], &args[2],
		   &args[3]) < 1)
		number = -1;
	if (f)
		fclose(f);
	if (may_be_cut(number, args))
		return -1;
	switch (number) {
	case -1:
		return TROUBLE_RUNS;
#if defined(__x86_64__)
	case SYS_poll: /* these would wait longer if memscope were killed on the way */
	case SYS_nanosleep:
#endif
	case SYS_clock_nanosleep:
		return 1;
#if defined(__x86_64__)
	case SYS_epoll_wait: /* these may wait longer then */
#endif
	case SYS_epoll_pwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
		return 2;
	}
	return 0;
}

static int by_trouble(const void *a, const void *b)
{
	return ((const struct candidate *)a)->trouble - ((const struct candidate *)b)->trouble;
}

static uint32_t find_candidates(pid_t pid, struct candidate *out, uint32_t cap)
{
	char path[64];
	struct dirent *d;
	uint32_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && n < cap && (d = readdir(dir))) {
		pid_t tid = (pid_t)atoi(d->d_name);

		if (tid <= 0)
			continue;
		out[n] = (struct candidate){ tid, trouble_of(pid, tid) };
		n += out[n].trouble >= 0;
	}
	if (dir)
		closedir(dir);
	qsort(out, n, sizeof(*out), by_trouble);
	return n;
}

/* The memory that it had is nobody's any more: this is no error of an address, which would be one. */
static bool is_gone(int mem_fd)
{
	char byte;

	return pread(mem_fd, &byte, 1, PAGE_BYTES) == 0;
}

/* A thread that is stopped where it may be asked. */
static int find_thread(pid_t pid, int mem_fd, struct remote *ret_thread, struct err *e)
{
	static struct candidate threads[THREADS_MAX];
	struct safe *safe = NULL;
	struct err why = { .msg = "none was in a system call that can be left" };
	uint64_t from_us = now_us(), until_us = from_us + SEARCH_US;
	int r = safe_new(pid, mem_fd, &safe, e);

	if (r < 0)
		return r;
	for (uint32_t patience_us = 2000;;) {
		uint32_t n = find_candidates(pid, threads, THREADS_MAX);

		if (is_gone(mem_fd)) {
			r = err_set(e, -ESRCH, "process %d has ended, or runs another program",
				    (int)pid);
			break;
		}
		for (uint32_t i = 0; i < n; i++) {
			uint64_t at_us = now_us();

			if (at_us >= until_us ||
			    (threads[i].trouble == TROUBLE_RUNS && at_us < from_us + RUNS_US))
				break;
			r = remote_stop(pid, threads[i].tid, mem_fd, patience_us, ret_thread, e);
			if (r < 0 && r != -EAGAIN && r != -ESRCH) {
				safe_free(safe);
				return r;
			}
			if (r < 0)
				continue;
			r = safe_check(safe, ret_thread, &why);
			if (r == 0) {
				safe_free(safe);
				return 0;
			}
			remote_release(ret_thread);
		}
		if (now_us() >= until_us) {
			r = err_set(
				e, -EAGAIN,
				"no thread of process %d could be asked to load the library within "
				"%d s; the last one: %.300s",
				(int)pid, SEARCH_US / 1000000, why.msg);
			break;
		}
		/* Longer each time: a thread that computes comes to a system call in the end. */
		if (now_us() >= from_us + RUNS_US && patience_us < 500000)
			patience_us *= 2;
		usleep(500);
	}
	safe_free(safe);
	return r;
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

static int wait_ready(int mem_fd, uint64_t at, struct agent_block *ret_block)
{
	for (uint64_t until_us = now_us() + LOAD_US;; usleep(200)) {
		if (pread(mem_fd, ret_block, sizeof(*ret_block), (off_t)at) !=
		    (ssize_t)sizeof(*ret_block))
			return -ESRCH;
		if (ret_block->state != AGENT_NONE)
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
	pid_t found = 0;
	char path[64];

	snprintf(path, sizeof(path), "%d", (int)tid);
	if (is_thread(pid, path, tid))
		return tid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	for (int i = 0; i < LISTS && !found; i++) {
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

/* The process may have lied: only a pipe is opened, so that nothing else is ever written to. */
static int open_end(const struct injected *in, int fd, int flags)
{
	_cleanup_(closep) int at = -1;
	char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)in->pid, (int)in->tid, fd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 || fstat(at, &st) < 0)
		return -1;
	if (!S_ISFIFO(st.st_mode)) {
		errno = EBADF;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	return open(path, flags | O_CLOEXEC | O_NONBLOCK);
}

/* Nor is a file written to that anybody has a name for. */
static int open_area(const struct injected *in, int fd)
{
	_cleanup_(closep) int at = -1;
	char path[96];
	struct stat st;
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)in->pid, (int)in->tid, fd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 || fstat(at, &st) < 0 || fstatfs(at, &fs) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_nlink || st.st_size || fs.f_type != TMPFS_MAGIC) {
		errno = EBADF;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	return open(path, O_RDWR | O_CLOEXEC);
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
					      in->stopped_us };
	return 0;
}

static int meet(struct injected *in, uint64_t at, const char *library, int32_t *ret_tid,
		struct err *e)
{
	struct inject_counts counts;
	struct agent_block block;
	int r = wait_ready(in->mem_fd, at, &block);

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
	in->area_fd = in->exact ? open_area(in, block.area_fd) : -1;
	if (in->exact && in->area_fd < 0)
		return err_set(e, -ESRCH, "cannot share memory with process %d: %s", (int)in->pid,
			       strerror(errno));
	return ask(in, AGENT_STAY, &counts, e);
}

/* --- */

/* What was mapped, when the thread that ran there has ended. */
static void unmap(struct injected *in, const struct inject_place *place, int32_t tid)
{
	const uint64_t args[6] = { place->room, ROOM_BYTES };
	static struct remote t;

	for (int i = 0; find_thread_of(in->pid, tid); i++) {
		if (i == 1000)
			return;
		usleep(1000);
	}
	if (find_thread(in->pid, in->mem_fd, &t, NULL) < 0)
		return;
	remote_call(&t, place->munmap, args, 0, place->restore, CALL_US, NULL);
	remote_release(&t);
}

static int begin(pid_t pid, const char *library, uint64_t rate, bool exact,
		 struct injected **ret_in, struct err *e)
{
	_cleanup_(inject_freep) struct injected *in = calloc(1, sizeof(*in));
	static struct agent_block block;
	static struct remote thread;
	struct inject_place place;
	uint64_t from_us;
	int32_t tid = 0;
	char path[64];
	int r, no_memory;

	if (!in)
		return err_set(e, -ENOMEM, "out of memory");
	in->pid = pid;
	in->mem_fd = in->command_fd = in->answer_fd = in->area_fd = -1;
	in->exact = exact;
	/*
	 * Before all that is read of it: should it execute another program from now on, this is of no
	 * use any more, and nothing is called at addresses of the one that is gone.
	 */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	in->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	no_memory = errno;
	/* The thread of a memscope that was killed is gone a moment later. */
	from_us = now_us();
	do
		r = inject_look(pid, library, ROOM_BYTES, &place, e);
	while (r == -EAGAIN && now_us() - from_us < LEAVE_US && usleep(10000) == 0);
	if (r < 0)
		return r == -EAGAIN ? -EBUSY : r;
	memset(&block, 0, sizeof(block));
	if (strlen(library) >= sizeof(block.path))
		return err_set(e, -ENAMETOOLONG, "the path of the library is too long");
	strcpy(block.path, library);
	strcpy(block.function, AGENT_FUNCTION);
	block.dlopen = place.dlopen;
	block.dlsym = place.dlsym;
	block.dlerror = place.dlerror;
	block.detach = place.pthread_detach;
	block.bytes = ROOM_BYTES;
	block.rate = rate;
	block.exact = exact;
	if (in->mem_fd < 0)
		return err_set(e, -no_memory, "cannot write to the memory of process %d: %s",
			       (int)pid, strerror(no_memory));
	r = find_thread(pid, in->mem_fd, &thread, e);
	if (r < 0)
		return r;
	from_us = now_us();
	r = start_thread(&thread, &place, &block, e);
	remote_release(&thread);
	in->stopped_us = now_us() - from_us;
	if (r < 0)
		return r;
	r = meet(in, place.room, library, &tid, e);
	if (r < 0 && r != -ESRCH && r != -ETIMEDOUT)
		unmap(in, &place, tid);
	if (r < 0)
		return r;
	*ret_in = TAKE_PTR(in);
	return 0;
}

int inject_begin(pid_t pid, const char *library, uint64_t rate, struct injected **ret_in,
		 struct err *e)
{
	return begin(pid, library, rate, false, ret_in, e);
}

int inject_begin_exact(pid_t pid, const char *library, struct injected **ret_in, int *ret_area_fd,
		       struct err *e)
{
	int r = begin(pid, library, 512 << 10, true, ret_in, e);

	if (r == 0) {
		*ret_area_fd = (*ret_in)->area_fd;
		(*ret_in)->area_fd = -1;
	}
	return r;
}

int inject_map(struct injected *in, struct err *e)
{
	struct inject_counts counts;
	int r = ask(in, AGENT_EXACT, &counts, e);

	if (r == 0 && counts.places)
		return err_set(e, -(int)counts.places,
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
