#include "base/small_file.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>

int small_file_read(int dir, const char *path, char *buf, size_t size)
{
	_cleanup_(closep) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	/* Some files of /proc hand out one record a read. */
	do {
		n = read(fd, buf + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	} while (len < size - 1 && (n > 0 || (n < 0 && errno == EINTR)));
	if (n < 0) {
		buf[0] = '\0';
		return -errno;
	}
	if (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return (int)len;
}
