#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static int open_nameless(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[4096];

	if (access("/proc/self/fd", F_OK) < 0) { /* by which it gets its name */
		errno = EOPNOTSUPP;
		return -1;
	}
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + (slash == path)) : 1,
		 slash ? path : ".");
	return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* ".NAME.XXXXXX" in the same folder. 200: it must fit a file name (255) even where the name itself just does. NULL: out of memory. */
static char *name_beside(const char *path)
{
	const char *slash = strrchr(path, '/');
	int folder_len = slash ? (int)(slash - path + 1) : 0;
	char *beside;

	if (asprintf(&beside, "%.*s.%.200s.XXXXXX", folder_len, path, path + folder_len) < 0)
		return NULL;
	return beside;
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
		ret_file->temporary = name_beside(path);
		if (!ret_file->temporary)
			return err_set(e, -ENOMEM, "out of memory");
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

/* Another six characters at the end of a name. */
static void draw(char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint32_t random = 0;
	char *at = name + strlen(name) - 6;

	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint32_t)getpid();
	for (int i = 0; i < 6; i++, random /= 36)
		at[i] = letters[random % 36];
}

/* In place of what has the name: under another one first, for no moment is there nothing. */
static int replace(const char *self, const char *path)
{
	_cleanup_(freep) char *other = name_beside(path);

	if (!other)
		return -ENOMEM;
	for (int tries = 0; tries < 100; tries++) {
		int r = 0;

		draw(other);
		if (linkat(AT_FDCWD, self, AT_FDCWD, other, AT_SYMLINK_FOLLOW) < 0) {
			if (errno == EEXIST)
				continue;
			return -errno;
		}
		if (rename(other, path) < 0) {
			r = -errno;
			unlink(other);
		}
		return r;
	}
	return -EEXIST;
}

static int name(struct new_file *f)
{
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
	return errno == EEXIST ? replace(self, f->path) : -errno;
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
