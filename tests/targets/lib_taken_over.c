/*
 * A reader that a file has taken over: preloaded into memscope, this runs in each of its cells once they have begun to read, and tries
 * what an attacker would who may execute what he wants there. Then it goes on as $TAKEN_OVER says:
 *
 *   leaves   it ends: with status 100 if nothing worked, else with 101 and up, the number of what did
 *   hangs    it never ends, and takes all CPU time that it gets
 *   waits    it never ends, and takes none
 *   drips    it never ends, and sends a byte of an answer ten times a second
 *   lies     it sends 64 KiB of noise on all descriptors that it has, and ends with status 100
 *   looks    nothing is taken over: the log has the kind of each cell that was asked for
 *
 * Cells of the kind $TAKEN_OVER_KIND alone, as requests for them number it. How each of these ended goes to $TAKEN_OVER_LOG, a line
 * "STATUS" each (as waitpid(2) has it): written by who makes cells, as a cell can say it to nobody. $TAKEN_OVER_DIR has `secret`, and
 * nothing else may be there afterwards; a server listens at `socket` in it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[200];
static const char *mode;
static pid_t maker, memscope;
static uint32_t wanted, kind; /* the one that was asked for last */
static pid_t cells[256];      /* of the wanted kind */
static int n_cells;

__attribute__((constructor)) static void begin(void)
{
	mode = getenv("TAKEN_OVER");
	snprintf(dir, sizeof(dir), "%s",
		 getenv("TAKEN_OVER_DIR") ? getenv("TAKEN_OVER_DIR") : "/nowhere");
	wanted = (uint32_t)atoi(getenv("TAKEN_OVER_KIND") ? getenv("TAKEN_OVER_KIND") : "0");
	memscope = getpid();
}

/* Its user is none that there is, and it may not even ask which. */
static int in_a_cell(void)
{
	return mode && strcmp(mode, "looks") != 0 && kind == wanted && syscall(SYS_getuid) == -1;
}

static const char *in_dir(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static long connect_out(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%.90s/socket", dir);
	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&at, sizeof(at));
}

static long write_into(pid_t pid)
{
	static char data[16];
	struct iovec here = { data, sizeof(data) }, there = { (void *)mode, 1 };

	return syscall(SYS_process_vm_writev, pid, &here, 1ul, &there, 1ul, 0ul);
}

static long new_code(void)
{
	return (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long execute(void)
{
	static char *const argv[] = { "touch", NULL };

	return syscall(SYS_execve, "/usr/bin/touch", argv, NULL);
}

/* A wall stood there: it was not just asked for in a wrong way. */
static int was_refused(long r)
{
	return r == -1 && (errno == EPERM || errno == EACCES || errno == EMFILE || errno == EBADF ||
			   errno == EAGAIN);
}

/* The number of the first that worked; 0: none. */
static int attack(void)
{
	int at = 0;

#define TRY(call)                                                                                  \
	do {                                                                                       \
		at++;                                                                              \
		if (!was_refused(call))                                                            \
			return at;                                                                 \
	} while (0)
	TRY(syscall(SYS_open, in_dir("secret"), O_RDONLY));
	TRY(syscall(SYS_openat, AT_FDCWD, "/etc/shadow", O_RDONLY));
	TRY(syscall(SYS_open, in_dir("made"), O_CREAT | O_WRONLY, 0600));
	TRY(syscall(SYS_mkdir, in_dir("made"), 0700));
	TRY(syscall(SYS_unlink, in_dir("secret")));
	TRY(syscall(SYS_symlink, "/etc/shadow", in_dir("made")));
	TRY(syscall(SYS_open, "/proc/1/mem", O_RDWR));
	TRY(connect_out());
	TRY(syscall(SYS_fork));
	TRY(syscall(SYS_clone, 0x100, 0, 0, 0, 0));
	TRY(execute());
	TRY(syscall(SYS_kill, memscope, 0));
	TRY(syscall(SYS_kill, maker, 0));
	TRY(syscall(SYS_kill, -1, 0));
	TRY(ptrace(PTRACE_ATTACH, memscope, 0, 0));
	TRY(write_into(memscope));
	TRY(write_into(maker));
	TRY(syscall(SYS_pidfd_open, memscope, 0));
	TRY(syscall(SYS_setuid, 0));
	TRY(syscall(SYS_unshare, 0x10000000));
	TRY(syscall(SYS_bpf, 0, NULL, 0));
	TRY(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0));
	TRY(syscall(SYS_io_uring_setup, 8, in_dir("")));
	TRY(syscall(SYS_memfd_create, "x", 0));
	TRY(syscall(SYS_userfaultfd, 0));
	TRY(syscall(SYS_add_key, "user", "x", "x", 1ul, -3));
	TRY(syscall(SYS_mount, NULL, "/", NULL, 0ul, NULL));
	TRY(syscall(SYS_prlimit64, memscope, RLIMIT_AS, in_dir(""), NULL));
	TRY(syscall(SYS_setpriority, PRIO_PROCESS, memscope, 19));
	TRY(syscall(SYS_sched_setaffinity, memscope, 8ul, in_dir("")));
	TRY(prctl(PR_SET_PDEATHSIG, 0));
	TRY(write(2, "taken over\n", 11));
	TRY(new_code());
	return 0;
}

static void lie(void)
{
	static char noise[65536];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 2654435761u >> 13);
	for (int fd = 0; fd < 1024; fd++)
		(void)!write(fd, noise, sizeof(noise));
}

/* On all descriptors: a message that says of itself that it is an answer (CALL_ANSWER), 1 KiB long. */
static void drip(size_t at)
{
	static const char head[8] = { 2, 0, 0, 0, 0, 4, 0, 0 };
	char byte = at < sizeof(head) ? head[at] : 'x';
	struct iovec part = { &byte, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	for (int fd = 0; fd < 64; fd++)
		(void)!sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	poll(NULL, 0, 100);
}

/* At the second thing that it reads: it has been given its work by then. */
static void once_at_work(void)
{
	static int calls;
	int worked;

	if (!in_a_cell() || ++calls != 2)
		return;
	worked = attack();
	if (!strcmp(mode, "lies"))
		lie();
	while (!strcmp(mode, "hangs"))
		;
	while (!strcmp(mode, "waits"))
		poll(NULL, 0, -1);
	for (size_t at = 0; !strcmp(mode, "drips"); at++)
		drip(at);
	_exit(100 + worked);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int fd, void *to, size_t len)
{
	once_at_work();
	return syscall(SYS_read, fd, to, len);
}

ssize_t __read_chk(int fd, void *to, size_t len, size_t room)
{
	if (len > room)
		abort();
	return read(fd, to, len);
}

ssize_t pread64(int fd, void *to, size_t len, off_t at)
{
	once_at_work();
	return syscall(SYS_pread64, fd, to, len, at);
}

ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	return pread64(fd, to, len, at);
}

ssize_t __pread64_chk(int fd, void *to, size_t len, off_t at, size_t room)
{
	if (len > room)
		abort();
	return pread64(fd, to, len, at);
}

ssize_t __pread_chk(int fd, void *to, size_t len, off_t at, size_t room)
{
	return __pread64_chk(fd, to, len, at, room);
}

/* Of who makes cells, which closes what it does not know. */
static void log_number(int number)
{
	int fd = open(getenv("TAKEN_OVER_LOG"), O_WRONLY | O_APPEND | O_CLOEXEC);
	char line[32];
	int n = snprintf(line, sizeof(line), "%d\n", number);

	(void)!write(fd, line, (size_t)n);
	close(fd);
}

/* Of who makes cells: a request, which begins with the kind. */
ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n;

	once_at_work();
	n = syscall(SYS_recvmsg, fd, m, flags);
	if (n >= 4 && getppid() == memscope && m->msg_iovlen == 1) {
		memcpy(&kind, m->msg_iov->iov_base, 4);
		if (mode && strcmp(mode, "looks") == 0)
			log_number((int)kind);
	}
	return n;
}

static int was_wanted(pid_t pid)
{
	for (int i = 0; i < n_cells; i++)
		if (cells[i] == pid)
			return 1;
	return 0;
}

/* Who makes cells waits for them with what they took. */
pid_t wait4(pid_t pid, int *status, int options, struct rusage *use)
{
	pid_t r = NEXT(wait4)(pid, status, options, use);

	if (r > 0 && was_wanted(r) && strcmp(mode, "looks") != 0)
		log_number(*status);
	return r;
}

pid_t fork(void)
{
	pid_t pid;

	if (mode && getpid() != memscope)
		maker = getpid();
	pid = NEXT(fork)();
	if (pid > 0 && maker && kind == wanted && n_cells < 256)
		cells[n_cells++] = pid;
	return pid;
}
