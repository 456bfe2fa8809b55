#include "base/cache_dir.h"

#include "base/cleanup.h"
#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_BYTES = 4096 };

/* The last part must be ours alone; what is above it is the administrator's business. */
static int open_dir(const char *path, struct err *e)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(e, -EPERM,
			       "%s: unwind tables are kept only in a directory of our own with "
			       "mode 0700",
			       path);
	return TAKE_FD(fd);
}

static int make_dirs(char *path, struct err *e)
{
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		/* 0755 above: /var/cache/memscope is for others to see, what is in it is not. */
		if (mkdir(path, c ? 0755 : 0700) < 0 && errno != EEXIST)
			return err_set(e, -errno, "%s: %s", path, strerror(errno));
		*p = c;
		if (!c)
			return 0;
	}
}

static int usual_dir(char path[DIR_BYTES], struct err *e)
{
	const char *env = getenv(CACHE_DIR_ENV), *home = getenv("HOME");
	const char *xdg = getenv("XDG_CACHE_HOME");
	int n;

	if (env)
		n = snprintf(path, DIR_BYTES, "%s", env);
	else if (geteuid() == 0)
		n = snprintf(path, DIR_BYTES, "/var/cache/memscope/rows");
	else if (xdg && xdg[0] == '/')
		n = snprintf(path, DIR_BYTES, "%s/memscope/rows", xdg);
	else
		n = snprintf(path, DIR_BYTES, "%s/.cache/memscope/rows", home ? home : "");
	if (n >= DIR_BYTES || path[0] != '/')
		return err_set(e, -ENOENT, "no directory for unwind tables");
	return 0;
}

int cache_dir_open(const char *dir, struct err *e)
{
	char path[DIR_BYTES];
	int r = 0;

	if (dir && strlen(dir) < sizeof(path))
		strcpy(path, dir);
	else
		r = usual_dir(path, e);
	if (r == 0)
		r = make_dirs(path, e);
	return r < 0 ? r : open_dir(path, e);
}

int cache_dir_file(int dir, const char *name, uint64_t *ret_bytes)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	/* O_NONBLOCK: a FIFO would wait for its writer. */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -ENOENT;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) || st.st_size < 0)
		return -ENOENT;
	*ret_bytes = (uint64_t)st.st_size;
	return TAKE_FD(fd);
}

int cache_dir_begin(int dir, char temp[CACHE_DIR_TEMP_BYTES])
{
	static atomic_uint n_temp;
	int fd;

	snprintf(temp, CACHE_DIR_TEMP_BYTES, CACHE_DIR_TEMP "%d-%u", (int)getpid(),
		 atomic_fetch_add(&n_temp, 1));
	unlinkat(dir, temp, 0);
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int cache_dir_end(int dir, const char *temp, int fd, int r, const char *name, bool keep_existing)
{
	if (close(fd) < 0 && r >= 0)
		r = -errno;
	if (r >= 0 && keep_existing && linkat(dir, temp, dir, name, 0) < 0 && errno != EEXIST)
		r = -errno;
	if (r >= 0 && !keep_existing && renameat(dir, temp, dir, name) < 0)
		r = -errno;
	if (r < 0 || keep_existing)
		unlinkat(dir, temp, 0);
	return r < 0 ? r : 0;
}

int cache_dir_write(int dir, const char *name, const void *data, size_t len, bool keep_existing)
{
	char temp[CACHE_DIR_TEMP_BYTES];
	int fd = cache_dir_begin(dir, temp);

	return fd < 0 ? fd
		      : cache_dir_end(dir, temp, fd, whole_file_write(fd, data, len), name,
				      keep_existing);
}
