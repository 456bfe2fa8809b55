/*
 * Calls that change files, of which the nth fails: LD_PRELOAD it, with MEMSCOPE_TEST_FAULTS=FILE, whose 4096 bytes are shared by all
 * processes of the program:
 *
 *   0   calls so far            8   the one that fails, from 1 on; 0: none
 *   16  its errno               24  1: all that follow fail, too, but for calls that take something away
 *   32  how many failed         40  2: a write does a part of what it should, and does not fail
 *   48  the folder (256 bytes): calls on files below it alone count
 *   304 the name of the call that failed, 32 bytes
 *
 * Counted are: open for writing or making, write, pwrite, fsync, ftruncate, link, rename, mkdir, mkostemp.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct faults {
	uint64_t n, at, error, follow, failed, part;
	char folder[256], call[32];
};

static struct faults *faults;

static __attribute__((constructor)) void begin(void)
{
	const char *path = getenv("MEMSCOPE_TEST_FAULTS");
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
	void *at =
		fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED)
		faults = at;
}

static bool is_below(const char *path)
{
	size_t len = strlen(faults->folder);

	return strncmp(path, faults->folder, len) == 0 && (path[len] == '/' || !path[len]);
}

static bool is_below_fd(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return is_below(path);
}

static bool is_below_at(int dir, const char *name)
{
	char path[PATH_MAX];

	if (*name == '/')
		return is_below(name);
	if (dir != AT_FDCWD)
		return is_below_fd(dir);
	return getcwd(path, sizeof(path)) && is_below(path);
}

/* Is it the one that fails? Then errno is set, unless it is to do a part. */
static bool fails(bool counts, const char *call)
{
	uint64_t n;
	int before = errno;

	if (!faults || !counts)
		return false;
	n = __atomic_add_fetch(&faults->n, 1, __ATOMIC_SEQ_CST);
	if (!faults->at || (n != faults->at && !(faults->follow && n > faults->at))) {
		errno = before;
		return false;
	}
	if (!__atomic_fetch_add(&faults->failed, 1, __ATOMIC_SEQ_CST))
		snprintf(faults->call, sizeof(faults->call), "%s", call);
	errno = (int)faults->error;
	return true;
}

/* Does not ask libc, which has no such entry for what it does itself. */
static int counted_open(int dir, const char *path, int flags, mode_t mode)
{
	if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && faults &&
	    fails(is_below_at(dir, path), "open") && !faults->part)
		return -1;
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

#define MODE(flags)                                                                                \
	({                                                                                         \
		va_list ap_;                                                                       \
		mode_t mode_ = 0;                                                                  \
                                                                                                   \
		if ((flags) & (O_CREAT | __O_TMPFILE)) {                                           \
			va_start(ap_, flags);                                                      \
			mode_ = va_arg(ap_, mode_t);                                               \
			va_end(ap_);                                                               \
		}                                                                                  \
		mode_;                                                                             \
	})

int open(const char *path, int flags, ...)
{
	return counted_open(AT_FDCWD, path, flags, MODE(flags));
}

int open64(const char *path, int flags, ...)
{
	return counted_open(AT_FDCWD, path, flags | O_LARGEFILE, MODE(flags));
}

int openat(int dir, const char *path, int flags, ...)
{
	return counted_open(dir, path, flags, MODE(flags));
}

int openat64(int dir, const char *path, int flags, ...)
{
	return counted_open(dir, path, flags | O_LARGEFILE, MODE(flags));
}

/* A write that is cut short, where it has more than a byte to write. */
static size_t part_of(size_t len)
{
	return faults && faults->part && len > 1 ? len / 2 : len;
}

ssize_t write(int fd, const void *data, size_t len)
{
	if (faults && fails(is_below_fd(fd), "write")) {
		if (!faults->part)
			return -1;
		len = part_of(len);
	}
	return syscall(SYS_write, fd, data, len);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (faults && fails(is_below_fd(fd), "pwrite")) {
		if (!faults->part)
			return -1;
		len = part_of(len);
	}
	return syscall(SYS_pwrite64, fd, data, len, at);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	return pwrite(fd, data, len, at);
}

int fsync(int fd)
{
	if (faults && fails(is_below_fd(fd), "fsync") && !faults->part)
		return -1;
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	if (faults && fails(is_below_fd(fd), "fdatasync") && !faults->part)
		return -1;
	return (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t len)
{
	/* It takes something away, unless it makes it larger. */
	if (faults && len && fails(is_below_fd(fd), "ftruncate") && !faults->part)
		return -1;
	return (int)syscall(SYS_ftruncate, fd, len);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	if (faults && fails(is_below_at(to_dir, to), "link") && !faults->part)
		return -1;
	return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int rename(const char *from, const char *to)
{
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (faults && fails(is_below_at(to_dir, to), "rename") && !faults->part)
		return -1;
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	if (faults && fails(is_below_at(dir, path), "mkdir") && !faults->part)
		return -1;
	return (int)syscall(SYS_mkdirat, dir, path, mode);
}

int mkostemp(char *path, int flags)
{
	static int (*real)(char *path, int flags);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "mkostemp");
	if (faults && fails(is_below_at(AT_FDCWD, path), "mkostemp") && !faults->part)
		return -1;
	return real(path, flags);
}
