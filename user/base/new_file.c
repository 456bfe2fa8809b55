#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static int open_nameless(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[4096];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + (slash == path)) : 1,
		 slash ? path : ".");
	return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int new_file_open(const char *path, struct new_file *ret_file, struct err *e)
{
	struct stat st;

	*ret_file = (struct new_file){ .fd = -1, .path = strdup(path) };
	if (!ret_file->path)
		return err_set(e, -ENOMEM, "out of memory");
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, -EEXIST, "%s is no regular file, and cannot be written as one",
			       path);
	ret_file->fd = open_nameless(path);
	if (ret_file->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		if (asprintf(&ret_file->temporary, "%s.XXXXXX", path) < 0) {
			ret_file->temporary = NULL;
			return err_set(e, -ENOMEM, "out of memory");
		}
		ret_file->fd = mkostemp(ret_file->temporary, O_CLOEXEC);
		if (ret_file->fd < 0) {
			free(ret_file->temporary);
			ret_file->temporary = NULL;
		}
	}
	return ret_file->fd < 0 ? err_set(e, -errno, "%s: cannot be written: %m", path) : 0;
}

int new_file_check_room(const struct new_file *f, const char *what, uint64_t bytes, struct err *e)
{
	struct statvfs fs;

	if (fstatvfs(f->fd, &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize >= bytes)
		return 0;
	return err_set(
		e, -ENOSPC,
		"%s: %s of about %llu MiB does not fit into the %llu MiB that are free there",
		f->path, what, (unsigned long long)((bytes + (1 << 20) - 1) >> 20),
		(unsigned long long)((uint64_t)fs.f_bavail * fs.f_frsize >> 20));
}

int new_file_put(const struct new_file *f, uint64_t at, const void *bytes, uint64_t len)
{
	const char *from = bytes;

	while (len) {
		ssize_t n = pwrite(f->fd, from, len < 1 << 30 ? len : 1 << 30, (off_t)at);

		if (n > 0) {
			at += (uint64_t)n;
			from += n;
			len -= (uint64_t)n;
		} else if (n == 0 || errno != EINTR) {
			return n == 0 ? -EIO : -errno;
		}
	}
	return 0;
}

static int name(struct new_file *f)
{
	_cleanup_(freep) char *other = NULL;
	char self[64];

	if (f->temporary) {
		if (rename(f->temporary, f->path) < 0)
			return -errno;
		free(f->temporary);
		f->temporary = NULL;
		return 0;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	if (linkat(AT_FDCWD, self, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (asprintf(&other, "%s.%d", f->path, (int)getpid()) < 0) {
		other = NULL;
		return -ENOMEM;
	}
	if (linkat(AT_FDCWD, self, AT_FDCWD, other, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	if (rename(other, f->path) == 0)
		return 0;
	unlink(other);
	return -EIO;
}

int new_file_commit(struct new_file *f, struct err *e)
{
	int r = fsync(f->fd) < 0 ? -errno : name(f);

	return r < 0 ? err_set(e, r, "%s: cannot be written: %s", f->path, strerror(-r)) : 0;
}

void new_file_close(struct new_file *f)
{
	if (f->temporary)
		unlink(f->temporary);
	if (f->path && f->fd >= 0)
		close(f->fd);
	free(f->temporary);
	free(f->path);
	*f = (struct new_file){ .fd = -1 };
}
