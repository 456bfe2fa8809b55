#include "proc/served.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint32_t magic; /* statfs(2) */
} types[] = {
	{ "fuse", 0x65735546 }, { "nfs", 0x6969 },      { "nfs4", 0x6969 },
	{ "cifs", 0xff534d42 }, { "smb3", 0xfe534d42 }, { "ceph", 0x00c36400 },
	{ "afs", 0x5346414f },
};

/* What is known of devices; the oldest goes first. */
static struct known {
	uint64_t dev, hung_until_ns;
	bool served;
} known[SERVED_MAX];
static uint32_t n_known, next_known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- lists of mounts --- */

static bool is_served(const char *type, size_t len)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i].name) == len && memcmp(types[i].name, type, len) == 0)
			return true;
	/* "fuse.sshfs"; "fuseblk" has a device of its own number. */
	return len > 5 && memcmp(type, "fuse.", 5) == 0;
}

static bool is_served_magic(uint64_t magic)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (types[i].magic == (uint32_t)magic)
			return true;
	return false;
}

/* 36 35 0:98 /root /mount options [fields] - fuse.sshfs source options */
bool served_in_line(const char *line, uint64_t *ret_dev, bool *ret_served)
{
	const char *type = strstr(line, " - ");
	unsigned major, minor;

	if (!type || sscanf(line, "%*u %*u %u:%u ", &major, &minor) != 2)
		return false;
	type += 3;
	*ret_dev = makedev(major, minor);
	*ret_served = is_served(type, strcspn(type, " \n"));
	return true;
}

static struct known *find(uint64_t dev)
{
	for (uint32_t i = 0; i < n_known; i++)
		if (known[i].dev == dev)
			return &known[i];
	return NULL;
}

static void learn(uint64_t dev, bool served)
{
	struct known *k = find(dev);

	if (!k) {
		k = &known[next_known];
		next_known = (next_known + 1) % SERVED_MAX;
		n_known += n_known < SERVED_MAX;
		*k = (struct known){ .dev = dev };
	}
	k->served = served;
}

/* Of the served ones, and of `wanted`, is known now what they are. As served_any(). */
static int read_mounts(pid_t pid, uint64_t wanted)
{
	_cleanup_(freep) char *line = NULL;
	_cleanup_(fclosep) FILE *f = NULL;
	bool any = false, served;
	char path[64];
	size_t cap = 0;
	uint64_t dev;

	snprintf(path, sizeof(path), pid ? "/proc/%d/mountinfo" : "/proc/self/mountinfo", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	while (getline(&line, &cap, f) > 0) {
		if (!served_in_line(line, &dev, &served))
			continue;
		if (served || dev == wanted || find(dev))
			learn(dev, served);
		any |= served;
	}
	return any;
}

int served_any(pid_t pid)
{
	int any;

	pthread_mutex_lock(&lock);
	any = read_mounts(pid, 0);
	pthread_mutex_unlock(&lock);
	return any;
}

bool served_is(pid_t pid, uint64_t dev)
{
	const struct known *k;
	bool is;

	if (major(dev)) /* a disk's */
		return false;
	pthread_mutex_lock(&lock);
	if (!find(dev))
		read_mounts(pid, dev);
	k = find(dev);
	is = !k || k->served;
	pthread_mutex_unlock(&lock);
	return is;
}

bool served_file(int fd)
{
	const struct known *k;
	struct statx at;
	bool is;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &at) < 0)
		return true;
	pthread_mutex_lock(&lock);
	k = find(makedev(at.stx_dev_major, at.stx_dev_minor));
	is = k && k->served;
	pthread_mutex_unlock(&lock);
	return is;
}

/* --- the process that goes first --- */

struct question {
	int fd;           /* of a root, or of the file itself */
	const char *path; /* NULL: the file itself  */
	const struct open_how *how;
};

struct answer {
	pid_t pid;
	uint64_t magic;
};

static void close_but(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 0)
		syscall(SYS_close_range, 0, low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0);
	syscall(SYS_close_range, high + 1, ~0U, 0);
}

/* All that we are going to do. */
static void try(const struct question *q, struct answer *ret)
{
	int fd = q->path ? (int)syscall(SYS_openat2, q->fd, q->path, q->how, sizeof(*q->how))
			 : q->fd;
	struct stat st;
	struct statfs fs;
	char name[64], byte;
	int in;

	if (fd < 0 || fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return;
	if (fstatfs(fd, &fs) == 0)
		ret->magic = (uint64_t)fs.f_type;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	in = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (in < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		syscall(SYS_getdents64, in, name, sizeof(name));
		return;
	}
	if (pread(in, &byte, 1, 0) < 0 || (st.st_size && pread(in, &byte, 1, st.st_size - 1) < 0))
		return;
	close(in);
}

/* A grandchild: nobody waits for one that does not come back, and it has no descriptor of ours. */
static void look_first(const struct question *q, int out)
{
	struct answer a = { 0 };
	ssize_t n;

	if (fork() != 0)
		_exit(0);
	signal(SIGPIPE, SIG_DFL);
	close_but(q->fd, out);
	a.pid = getpid();
	n = write(out, &a, sizeof(a));
	if (n == (ssize_t)sizeof(a)) {
		try(q, &a);
		n = write(out, &a, sizeof(a));
	}
	_exit(n != (ssize_t)sizeof(a));
}

/* The next answer; 0: it has ended without one. */
static int hear(int in, uint64_t until_ns, struct answer *ret)
{
	for (;;) {
		struct pollfd p = { .fd = in, .events = POLLIN };
		uint64_t now = now_ns();
		int r = poll(&p, 1, now < until_ns ? (int)((until_ns - now) / 1000000 + 1) : 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -ETIMEDOUT;
		return read(in, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
	}
}

static int ask(const struct question *q, uint64_t *ret_magic)
{
	_cleanup_(closep) int in = -1, out = -1;
	uint64_t until_ns = now_ns() + SERVED_WAIT_MS * 1000000ull;
	struct answer first = { 0 }, last = { 0 };
	int pipe_fds[2], status, r;
	pid_t child;

	*ret_magic = 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	in = pipe_fds[0];
	out = pipe_fds[1];
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		look_first(q, out);
	closep(&out);
	out = -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	r = hear(in, until_ns, &first);
	if (r > 0)
		r = hear(in, until_ns, &last);
	if (r == -ETIMEDOUT && first.pid)
		kill(first.pid, SIGKILL); /* when it can be */
	*ret_magic = last.magic;
	return r < 0 ? r : 0;
}

static bool has_hung(uint64_t dev)
{
	const struct known *k;
	bool has;

	pthread_mutex_lock(&lock);
	k = find(dev);
	has = k && k->hung_until_ns > now_ns();
	pthread_mutex_unlock(&lock);
	return has;
}

static void remember(uint64_t dev, int r, uint64_t magic)
{
	pthread_mutex_lock(&lock);
	if (r < 0 || magic)
		learn(dev, r < 0 || is_served_magic(magic));
	if (r < 0)
		find(dev)->hung_until_ns = now_ns() + SERVED_AGAIN_S * 1000000000ull;
	pthread_mutex_unlock(&lock);
}

int served_answers(int path_fd, uint64_t dev)
{
	struct question q = { .fd = path_fd };
	uint64_t magic;
	int r;

	if (has_hung(dev))
		return -ETIMEDOUT;
	r = ask(&q, &magic);
	if (r == 0 || r == -ETIMEDOUT)
		remember(dev, r, magic);
	return r;
}

int served_answers_path(int root_fd, const char *path, const struct open_how *how)
{
	struct question q = { root_fd, path, how };
	uint64_t magic;

	return ask(&q, &magic);
}
