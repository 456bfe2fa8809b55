#include "proc/namespace.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

void ns_roots_fini(struct ns_roots *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		close(r->roots[i].fd);
	free(r->roots);
	*r = (struct ns_roots){ 0 };
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

/* `fd` becomes the table's, or is closed. */
static int add_root(struct ns_roots *r, uint64_t ns_ino, int root_fd)
{
	_cleanup_(closep) int fd = root_fd;
	struct ns_root *roots;
	struct stat root;
	int known;

	if (fstat(fd, &root) < 0)
		return -errno;
	known = find_root(r, ns_ino, &root);
	if (known >= 0)
		return known;
	if (r->n == NS_ROOTS_MAX)
		return -ENOSPC;
	roots = reallocarray(r->roots, r->n + 1, sizeof(*roots));
	if (!roots)
		return -ENOMEM;
	r->roots = roots;
	roots[r->n] = (struct ns_root){ ns_ino, root.st_dev, root.st_ino, TAKE_FD(fd) };
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
	known = stat(name, &root) < 0 ? -errno : find_root(r, ns.st_ino, &root);
	if (known >= 0)
		return known;
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : add_root(r, ns.st_ino, fd);
}

int ns_roots_add_dir(struct ns_roots *r, const char *dir)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : add_root(r, 0, fd);
}

bool ns_root_is_own(const struct ns_roots *r, int ix)
{
	struct stat ns, root;

	return stat("/proc/self/ns/mnt", &ns) == 0 && stat("/", &root) == 0 &&
	       r->roots[ix].ns_ino == ns.st_ino && r->roots[ix].dev == root.st_dev &&
	       r->roots[ix].ino == root.st_ino;
}

/* From a descriptor that only names a file to one that reads it, if the file is regular. */
static int reopen_regular(int path_fd)
{
	char name[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int ns_roots_open(const struct ns_roots *r, int ix, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(closep) int own = -1, fd = -1;
	int root;

	if (ix >= 0) {
		root = r->roots[ix].fd;
	} else {
		root = own = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (own < 0)
			return -errno;
	}
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : reopen_regular(fd);
}

int ns_open_link(const char *link)
{
	_cleanup_(closep) int fd = open(link, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : reopen_regular(fd);
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
