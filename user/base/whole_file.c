#include "base/whole_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int whole_file_read(const char *path, size_t most, const char *what, char **ret_bytes,
		    size_t *ret_len, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(freep) char *bytes = NULL;
	struct stat st;
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s: cannot be opened: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > most)
		return err_set(e, -EBADMSG, "%s: not %s", path, what);
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return err_set(e, -ENOMEM, "out of memory");
	while (n > 0 && got < (size_t)st.st_size) {
		n = read(fd, bytes + got, (size_t)st.st_size - got);
		got += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		return err_set(e, -errno, "%s: cannot be read: %s", path, strerror(errno));
	bytes[got] = '\0';
	*ret_bytes = TAKE_PTR(bytes);
	*ret_len = got;
	return 0;
}

int whole_file_write(int fd, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}
