#include "base/notify.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int notify_send(const char *lines)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	_cleanup_(closep) int fd = -1;
	size_t len;

	if (!name || !*name)
		return 0;
	len = strlen(name);
	if ((*name != '/' && *name != '@') || len < 2 || len >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, name, len);
	if (*name == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* A name of the abstract namespace has no 0 at its end. */
	len += offsetof(struct sockaddr_un, sun_path) + (*name == '/');
	if (sendto(fd, lines, strlen(lines), MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&to, (socklen_t)len) < 0)
		return -errno;
	return 1;
}

uint64_t notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(usec, NULL, 10) * 1000;
}
