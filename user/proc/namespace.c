#include "proc/namespace.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/served.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* For so long a list of mounts counts as known. */
#define MOUNTS_NS 1000000000ull

void ns_roots_fini(struct ns_roots *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		close(r->roots[i].fd);
	free(r->roots);
	*r = (struct ns_roots){ 0 };
}

/* What the kernel has at hand: nobody who serves a file system is asked. */
static int stat_cached(int dir, const char *path, int flags, struct stat *ret)
{
	struct statx at;

	if (statx(dir, path, flags | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &at) < 0)
		return -errno;
	*ret = (struct stat){ .st_dev = makedev(at.stx_dev_major, at.stx_dev_minor),
			      .st_ino = at.stx_ino,
			      .st_mode = at.stx_mode };
	return 0;
}

/* -ENOENT: it is not in the table. */
static int find_root(const struct ns_roots *r, uint64_t ns_ino, const struct stat *root)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->roots[i].ns_ino == ns_ino && r->roots[i].dev == root->st_dev &&
		    r->roots[i].ino == root->st_ino)
			return (int)i;
	return -ENOENT;
}

static bool is_own(uint64_t ns_ino, const struct stat *of)
{
	struct stat ns, root;

	return stat("/proc/self/ns/mnt", &ns) == 0 && stat_cached(AT_FDCWD, "/", 0, &root) == 0 &&
	       ns_ino == ns.st_ino && of->st_dev == root.st_dev && of->st_ino == root.st_ino;
}

static bool sees_served(struct ns_root *root)
{
	uint64_t now = now_ns();

	if (!root->looked_ns || now - root->looked_ns > MOUNTS_NS) {
		int any = served_any(root->pid);

		/* Where it has gone it is as it was; where nobody has looked before, the careful way is taken. */
		if (any >= 0 || !root->looked_ns)
			root->served = any != 0;
		root->looked_ns = now;
	}
	return root->served;
}

/* `fd` becomes the table's, or is closed. `pid`: who has that root; 0: nobody in particular. */
static int add_root(struct ns_roots *r, pid_t pid, uint64_t ns_ino, int root_fd)
{
	_cleanup_(closep) int fd = root_fd;
	struct ns_root *roots;
	struct stat root;
	int known = stat_cached(fd, "", AT_EMPTY_PATH, &root);

	if (known < 0)
		return known;
	known = find_root(r, ns_ino, &root);
	if (known >= 0)
		return known;
	if (r->n == NS_ROOTS_MAX)
		return -ENOSPC;
	roots = reallocarray(r->roots, r->n + 1, sizeof(*roots));
	if (!roots)
		return -ENOMEM;
	r->roots = roots;
	roots[r->n] = (struct ns_root){
		.ns_ino = ns_ino,
		.dev = root.st_dev,
		.ino = root.st_ino,
		.fd = TAKE_FD(fd),
		.own = is_own(ns_ino, &root),
		.pid = pid,
	};
	if (pid)
		sees_served(&roots[r->n]); /* while it is there */
	return (int)r->n++;
}

int ns_roots_add(struct ns_roots *r, pid_t pid)
{
	struct stat ns, root;
	char name[64];
	int fd, known;

	snprintf(name, sizeof(name), "/proc/%d/ns/mnt", (int)pid);
	if (stat(name, &ns) < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	/* Of each program that is begun, and mostly it is the host's: it need not be opened for that. */
	known = stat_cached(AT_FDCWD, name, 0, &root);
	if (known == 0)
		known = find_root(r, ns.st_ino, &root);
	if (known >= 0) {
		r->roots[known].pid = pid; /* the latest will live longest */
		return known;
	}
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : add_root(r, pid, ns.st_ino, fd);
}

int ns_roots_add_dir(struct ns_roots *r, const char *dir)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : add_root(r, 0, 0, fd);
}

bool ns_root_is_own(const struct ns_roots *r, int ix)
{
	return ix >= 0 && r->roots[ix].own;
}

/* From a descriptor that only names a file to one that reads it, if it is of that type. `pid` sees it; 0: we do. */
static int reopen(int path_fd, pid_t pid, bool directory)
{
	char name[64];
	struct stat st;
	int r, fd;

	r = stat_cached(path_fd, "", AT_EMPTY_PATH, &st);
	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode) && !(directory && S_ISDIR(st.st_mode)))
		return -EINVAL;
	if (served_is(pid, st.st_dev)) {
		r = served_answers(path_fd, st.st_dev);
		if (r < 0)
			return r;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int open_below(int root, const char *path, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/*
 * Where a file system is served by who may not answer, first what stays in the root's own mount, which is not one of them, then
 * what the kernel has at hand, and only then what may have to be asked for.
 */
static int find_below(struct ns_root *root, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	if (!sees_served(root))
		return open_below(root->fd, path, 0);
	fd = served_is(root->pid, root->dev) ? -EXDEV : open_below(root->fd, path, RESOLVE_NO_XDEV);
	if (fd != -EXDEV)
		return fd;
	fd = open_below(root->fd, path, RESOLVE_CACHED);
	if (fd != -EAGAIN && fd != -EINVAL)
		return fd;
	if (root->hung_until_ns > now_ns())
		return -ETIMEDOUT;
	fd = served_answers_path(root->fd, path, &how);
	if (fd == -ETIMEDOUT)
		root->hung_until_ns = now_ns() + SERVED_AGAIN_S * 1000000000ull;
	return fd < 0 ? fd : open_below(root->fd, path, 0);
}

static int open_in(struct ns_root *root, const char *path)
{
	_cleanup_(closep) int fd = find_below(root, path);

	return fd < 0 ? fd : reopen(fd, root->pid, false);
}

/* What is known of our own mounts. */
static struct ns_root ours;

int ns_find_below(int dir_fd, const char *path)
{
	struct ns_root root = ours;
	struct stat st;
	int fd;

	if (stat_cached(dir_fd, "", AT_EMPTY_PATH, &st) < 0)
		return -EBADF;
	root.fd = dir_fd;
	root.dev = st.st_dev;
	fd = find_below(&root, path);
	ours = root;
	return fd;
}

int ns_reopen(int path_fd)
{
	return reopen(path_fd, 0, true);
}

int ns_roots_open(const struct ns_roots *r, int ix, const char *path)
{
	_cleanup_(closep) int root = -1, fd = -1;

	if (ix == NS_NO_ROOT)
		return -ENOENT;
	if (ix >= 0)
		return open_in(&r->roots[ix], path);
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = ns_find_below(root, path);
	return fd < 0 ? fd : reopen(fd, 0, false);
}

int ns_roots_open_dir(const struct ns_roots *r, int ix, const char *path)
{
	_cleanup_(closep) int fd = find_below(&r->roots[ix], path);
	struct stat st;
	int rc = fd < 0 ? fd : stat_cached(fd, "", AT_EMPTY_PATH, &st);

	if (rc < 0)
		return rc;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return served_is(r->roots[ix].pid, st.st_dev) ? -ENOTSUP : TAKE_FD(fd);
}

int ns_open_seen(pid_t pid, const char *path)
{
	struct ns_roots roots = { 0 };
	int ix = ns_roots_add(&roots, pid);
	int fd = ix < 0 ? ix : ns_roots_open(&roots, ix, path);

	ns_roots_fini(&roots);
	return fd;
}

int ns_open_link(pid_t pid, const char *name)
{
	_cleanup_(closep) int fd = -1;
	char link[96];

	snprintf(link, sizeof(link), "/proc/%d/%s", (int)pid, name);
	fd = open(link, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : reopen(fd, pid, false);
}

int ns_open_mapped(pid_t pid, uint64_t start, uint64_t end)
{
	char name[64];

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	return ns_open_link(pid, name);
}

pid_t proc_ns_pid(pid_t pid)
{
	char path[64], line[256], *last;
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		return last ? (pid_t)strtol(last, NULL, 10) : 0;
	}
	return 0;
}
