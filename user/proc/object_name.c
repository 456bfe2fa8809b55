#include "proc/object_name.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_LISTEN 0x0a

bool object_path(pid_t pid, int fd, uint64_t ino, char *out, size_t cap)
{
	char path[64], to[4096];
	struct statx at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, to, sizeof(to) - 1);
	/* Not asked of who serves the file system: he may not answer. */
	if (n <= 0 || statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &at) < 0 ||
	    at.stx_ino != ino)
		return false;
	to[n] = '\0';
	snprintf(out, cap, "%s", to);
	return true;
}

/* 36 35 98:0 /root /mount options [fields] - ext4 /dev/sda1 options */
bool object_device_in(const char *line, unsigned major, unsigned minor, char *out, size_t cap)
{
	const char *behind = strstr(line, " - ");
	unsigned a, b;
	char type[64];

	if (sscanf(line, "%*u %*u %u:%u", &a, &b) != 2 || a != major || b != minor || !behind ||
	    sscanf(behind, " - %63s", type) != 1)
		return false;
	snprintf(out, cap, "%s", type);
	return true;
}

void object_device(pid_t pid, unsigned major, unsigned minor, char *out, size_t cap)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	n = readlink(path, line, sizeof(line) - 1);
	if (n > 0) {
		line[n] = '\0';
		snprintf(out, cap, "%s", strrchr(line, '/') ? strrchr(line, '/') + 1 : line);
		return;
	}
	snprintf(out, cap, "%u:%u", major, minor);
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (object_device_in(line, major, minor, out, cap))
			return;
}

void object_address(int family, const uint8_t *address, uint16_t port, char *out, size_t cap)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	char text[INET6_ADDRSTRLEN] = "?";

	if (family == AF_INET6 && memcmp(address, mapped, sizeof(mapped)) == 0) {
		family = AF_INET;
		address += sizeof(mapped);
	}
	inet_ntop(family, address, text, sizeof(text));
	snprintf(out, cap, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

bool object_listens(const char *tcp, uint16_t port)
{
	unsigned local, state;

	for (const char *line = tcp ? tcp : ""; *line;
	     line += strcspn(line, "\n"), line += *line == '\n')
		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) ==
			    2 &&
		    state == STATE_LISTEN && local == port)
			return true;
	return false;
}
