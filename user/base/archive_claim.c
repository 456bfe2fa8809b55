#include "base/archive_claim.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever closes any descriptor of a file gives up its locks: it is opened once. */
static struct {
	bool is;
	int fd;
	dev_t dev;
	ino_t ino;
} held;

static int taken(int fd, const char *dir, struct err *e)
{
	struct flock by = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char who[40] = "";

	if (fcntl(fd, F_GETLK, &by) == 0 && by.l_type != F_UNLCK)
		snprintf(who, sizeof(who), " (process %d)", by.l_pid);
	return err_set(
		e, -EBUSY,
		"%s: another memscope serve%s writes its windows there: name another --archive",
		dir, who);
}

int archive_claim(const char *dir, struct err *e)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	_cleanup_(closep) int fd = -1;
	char path[4200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/.memscope.serve", dir);
	if (held.is && stat(path, &st) == 0 && st.st_dev == held.dev && st.st_ino == held.ino)
		return 0;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (fcntl(fd, F_SETLK, &lock) < 0 && (errno == EAGAIN || errno == EACCES))
		return taken(fd, dir, e);
	if (held.is)
		close(held.fd);
	held.is = true;
	held.fd = TAKE_FD(fd);
	held.dev = st.st_dev;
	held.ino = st.st_ino;
	return 1;
}
