#include "base/cells.h"
#include "base/cell.h"
#include "base/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { CELLS_MAX = 64, KILL = 'k', END_MS = 10000 };

/* The linker's: the first and behind the last of CELL_KIND's rows. */
extern const struct cell_kind *const __start_cell_kinds[] __attribute__((weak));
extern const struct cell_kind *const __stop_cell_kinds[] __attribute__((weak));

static uint32_t n_kinds(void)
{
	return (uint32_t)(__stop_cell_kinds - __start_cell_kinds);
}

/* --- descriptors over sockets ------------------------------------------------------------------ */

union with_fds {
	struct cmsghdr hdr;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

/* A cell is no more urgent than who asks for it. */
struct request {
	uint32_t kind;
	int32_t nice;
};

/* With its channel and its control. */
static int send_request(int fd, const struct request *q, const int fds[2])
{
	struct iovec data = { (void *)q, sizeof(*q) };
	union with_fds control = { 0 };
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	while (sendmsg(fd, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* false: nobody will ask any more. A request that is none has descriptors of -1. */
static bool take_request(int fd, struct request *ret, int fds[2])
{
	struct iovec data = { ret, sizeof(*ret) };
	union with_fds control;
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	fds[0] = fds[1] = -1;
	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN || errno == EMFILE;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	return n > 0;
}

/* --- the maker --------------------------------------------------------------------------------- */

/* A cell that has not ended. */
struct made {
	pid_t pid;
	int control, pidfd;
	bool killed;
};

struct maker {
	struct made made[CELLS_MAX];
	uint32_t n;
};

static void be_a_cell(const struct cell_kind *kind, int nice, int channel)
{
	struct cell_given given = { .channel = channel, .statm = -1 };
	int keep[2] = { channel, -1 };

	if (nice > 0)
		setpriority(PRIO_PROCESS, 0, nice);
	if (kind->statm)
		keep[1] = given.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (kind->prepare)
		kind->prepare();
	cell_enter(&(struct cell){ .keep = keep,
				   .n_keep = 2,
				   .data_bytes = kind->data_bytes,
				   .file_bytes = kind->file_bytes,
				   .cpu_s = kind->cpu_s,
				   .files = kind->files });
	kind->work(&given);
	_exit(0);
}

static void make(struct maker *k, const struct request *q, const int fds[2])
{
	_cleanup_(closep) int channel = fds[0];
	_cleanup_(closep) int control = fds[1];
	struct made *m = &k->made[k->n];

	if (channel < 0 || control < 0 || q->kind >= n_kinds() || k->n == CELLS_MAX)
		return;
	m->pid = fork();
	if (m->pid == 0)
		be_a_cell(__start_cell_kinds[q->kind], q->nice, channel);
	if (m->pid < 0)
		return;
	m->pidfd = (int)syscall(SYS_pidfd_open, m->pid, 0);
	m->control = TAKE_FD(control);
	m->killed = false;
	k->n++;
}

static int64_t ns_of(struct timeval t)
{
	return t.tv_sec * 1000000000ll + t.tv_usec * 1000ll;
}

/* Its end is known once it is waited for. */
static void say_its_end(struct maker *k, uint32_t i)
{
	struct made *m = &k->made[i];
	struct cell_end end = { .status = -1 };
	struct rusage use;
	int status;
	char word;
	pid_t r;

	do
		r = wait4(m->pid, &status, 0, &use);
	while (r < 0 && errno == EINTR);
	if (r == m->pid) {
		end.status = status;
		end.cpu_ns = ns_of(use.ru_utime) + ns_of(use.ru_stime);
	}
	/* A socket that is closed with a word in it unread takes what it said back. */
	(void)!recv(m->control, &word, 1, MSG_DONTWAIT);
	send(m->control, &end, sizeof(end), MSG_NOSIGNAL | MSG_DONTWAIT);
	closep(&m->control);
	closep(&m->pidfd);
	*m = k->made[--k->n];
}

/*
 * A word on its control, or its end, means the same. One that is killed is waited for like all others: in a read of a file system whose
 * server hangs it does not end, and that must hold up no other cell.
 */
static void look_at_cells(struct maker *k, const struct pollfd *p, uint32_t n)
{
	for (uint32_t i = n; i-- > 0;) {
		const struct pollfd *control = &p[2 * i], *ended = &p[2 * i + 1];
		struct made *m = &k->made[i];

		if (control->revents) {
			kill(m->pid, SIGKILL);
			m->killed = true;
		}
		if (ended->revents || (m->killed && m->pidfd < 0))
			say_its_end(k, i);
	}
}

static void be_the_maker(int requests)
{
	static struct maker k;
	static struct pollfd p[2 * CELLS_MAX + 1];
	bool more = true;

	while (more) {
		struct request q;
		uint32_t n = k.n;
		int fds[2];

		for (uint32_t i = 0; i < n; i++) {
			p[2 * i] = (struct pollfd){ k.made[i].killed ? -1 : k.made[i].control,
						    POLLIN, 0 };
			p[2 * i + 1] = (struct pollfd){ k.made[i].pidfd, POLLIN, 0 };
		}
		/* Requests wait while there are as many cells as may be. */
		p[2 * n] = (struct pollfd){ n < CELLS_MAX ? requests : -1, POLLIN, 0 };
		if (poll(p, 2 * n + 1, -1) < 0)
			continue;
		look_at_cells(&k, p, n);
		if (p[2 * n].revents) {
			more = take_request(requests, &q, fds);
			if (more)
				make(&k, &q, fds);
		}
	}
	for (uint32_t i = 0; i < k.n; i++)
		kill(k.made[i].pid, SIGKILL);
}

/* What is pressed at the terminal is meant for memscope, and the maker ends with it. */
static void leave_the_terminal(void)
{
	static const int pressed[] = { SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
				       SIGTSTP, SIGUSR1, SIGUSR2, SIGALRM };
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(pressed) / sizeof(*pressed); i++)
		signal(pressed[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (nothing >= 0) {
		dup2(nothing, STDIN_FILENO);
		dup2(nothing, STDOUT_FILENO);
	}
	if (nothing > STDERR_FILENO)
		close(nothing);
}

/* It becomes other users, and does nothing else that needs a right. */
static void lay_rights_down(void)
{
	rights_keep(1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_KILL);
}

static void close_all_but(int fd)
{
	if (fd > STDERR_FILENO + 1)
		syscall(SYS_close_range, STDERR_FILENO + 1, fd - 1, 0);
	syscall(SYS_close_range, fd + 1, ~0u, 0);
}

/* --- who asks ----------------------------------------------------------------------------------- */

/* Where requests go: each is one message, so any thread may send them. The lock is of making a maker. */
static atomic_int maker = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int make_maker(void)
{
	char name[16] = "memscope";
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	/* It has its name from its first moment: who counts memscope's children can leave it out. */
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "memscope-cells");
	pid = fork();
	if (pid != 0)
		prctl(PR_SET_NAME, name);
	if (pid == 0) {
		leave_the_terminal();
		close_all_but(pair[1]);
		lay_rights_down();
		cell_prepare();
		be_the_maker(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -errno;
	}
	return pair[0];
}

/* Another than `gone`, which others may be sending to yet, and so stays open. Where requests go now, or -errno. */
static int another_maker(int gone)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = atomic_load(&maker);
	if (fd == gone) {
		fd = make_maker();
		if (fd >= 0)
			atomic_store(&maker, fd);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

int cells_begin(void)
{
	int fd = atomic_load(&maker) >= 0 ? 0 : another_maker(-1);

	return fd < 0 ? fd : 0;
}

void cells_end(void)
{
	int fd = atomic_exchange(&maker, -1);

	closep(&fd);
}

int cells_fd(void)
{
	return atomic_load(&maker);
}

static int request(uint32_t kind, const int fds[2])
{
	const struct request q = { kind, getpriority(PRIO_PROCESS, 0) };
	int fd = atomic_load(&maker), r;

	if (fd < 0)
		fd = another_maker(-1);
	r = fd < 0 ? fd : send_request(fd, &q, fds);
	/* It was killed, or its socket closed. */
	if (r < 0 && fd >= 0) {
		fd = another_maker(fd);
		r = fd < 0 ? fd : send_request(fd, &q, fds);
	}
	return r;
}

int cell_open(const struct cell_kind *kind, struct cell_link *ret)
{
	int channel[2] = { -1, -1 }, control[2] = { -1, -1 }, r = 0;
	uint32_t i = 0;

	while (i < n_kinds() && __start_cell_kinds[i] != kind)
		i++;
	if (i == n_kinds())
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		r = -errno;
	if (r == 0)
		r = request(i, (int[]){ channel[1], control[1] });
	closep(&channel[1]);
	closep(&control[1]);
	if (r < 0) {
		closep(&channel[0]);
		closep(&control[0]);
		return r;
	}
	*ret = (struct cell_link){ channel[0], control[0] };
	return 0;
}

void cell_kill(const struct cell_link *l)
{
	const char word = KILL;

	send(l->control, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void cell_close(struct cell_link *l, struct cell_end *ret_end)
{
	struct pollfd says = { .fd = l->control, .events = POLLIN };
	struct cell_end end = { .status = -1 }, got;
	ssize_t n = -1;

	/* Its work is over when nobody is at the other end; one that is in a loop does not see that. */
	closep(&l->channel);
	if (ret_end) {
		while (poll(&says, 1, END_MS) < 0 && errno == EINTR)
			;
		if (says.revents)
			n = recv(l->control, &got, sizeof(got), MSG_DONTWAIT);
		if (n == sizeof(got))
			end = got;
		*ret_end = end;
	}
	closep(&l->control);
	*l = (struct cell_link){ -1, -1 };
}
