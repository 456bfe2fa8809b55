#include "proc/blocked_call.h"

#include "base/cleanup.h"
#include "base/small_file.h"
#include "proc/peek.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TCP_BYTES_MAX = 1 << 20, STATE_LISTEN = 0x0a };

bool blocked_call_parse(const char *text, struct blocked_call *ret_call)
{
	struct blocked_call call;
	int end = 0;

	if (sscanf(text, "%ld%n", &call.nr, &end) != 1 || call.nr < 0)
		return false; /* "running", or -1: in the kernel by a fault */
	text += end;
	for (int i = 0; i < 6; i++) {
		if (sscanf(text, " %" SCNx64 "%n", &call.args[i], &end) != 1)
			return false;
		text += end;
	}
	*ret_call = call;
	return true;
}

bool blocked_call_read(pid_t pid, pid_t tid, struct blocked_call *ret_call)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	return small_file_read(AT_FDCWD, path, text, sizeof(text)) > 0 &&
	       blocked_call_parse(text, ret_call);
}

bool blocked_call_is_poll(const struct blocked_call *call)
{
#ifdef SYS_poll
	if (call->nr == SYS_poll)
		return true;
#endif
	return call->nr == SYS_ppoll;
}

static int polled_alone(pid_t pid, const struct blocked_call *call)
{
	struct pollfd polled;

	if (call->args[1] != 1 || !peek(pid, call->args[0], &polled, sizeof(polled)))
		return -1;
	return polled.fd;
}

bool blocked_call_has_fd(long nr)
{
	static const long of_first_argument[] = {
		SYS_read,      SYS_readv,     SYS_pread64,   SYS_preadv,
		SYS_write,     SYS_writev,    SYS_pwrite64,  SYS_pwritev,
		SYS_recvfrom,  SYS_recvmsg,   SYS_sendto,    SYS_sendmsg,
		SYS_connect,   SYS_fsync,     SYS_fdatasync, SYS_sync_file_range,
		SYS_fallocate, SYS_ftruncate, SYS_flock,     SYS_getdents64,
		SYS_preadv2,   SYS_pwritev2,  SYS_recvmmsg,  SYS_sendmmsg,
		SYS_syncfs,
	};

	for (size_t i = 0; i < sizeof(of_first_argument) / sizeof(of_first_argument[0]); i++)
		if (nr == of_first_argument[i])
			return true;
	return false;
}

int blocked_call_fd(pid_t pid, const struct blocked_call *call)
{
	if (blocked_call_is_poll(call))
		return polled_alone(pid, call);
	return blocked_call_has_fd(call->nr) ? (int)call->args[0] : -1;
}

/* --- connections --- */

struct connection {
	char local[33], remote[33]; /* as they are written there: words in hex */
	unsigned local_port, remote_port, state;
	unsigned long inode;
};

/* A line of net/tcp or net/tcp6. */
static bool parse_connection(const char *line, struct connection *c)
{
	return sscanf(line,
		      " %*d: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*x:%*x %*x:%*x %*x %*u %*u %lu",
		      c->local, &c->local_port, c->remote, &c->remote_port, &c->state,
		      &c->inode) == 6;
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

static bool is_listening(const char *tcp, unsigned port)
{
	struct connection c;

	for (const char *line = tcp; *line; line = next_line(line))
		if (parse_connection(line, &c) && c.state == STATE_LISTEN && c.local_port == port)
			return true;
	return false;
}

/* Words of four bytes, each in the order of the machine. */
static bool put_address(const char *hex, unsigned port, char *buf, size_t size)
{
	char text[INET6_ADDRSTRLEN];
	uint32_t words[4];
	size_t n = strlen(hex) / 8;

	if (n != 1 && n != 4)
		return false;
	for (size_t i = 0; i < n; i++)
		if (sscanf(hex + 8 * i, "%8" SCNx32, &words[i]) != 1)
			return false;
	if (!inet_ntop(n == 1 ? AF_INET : AF_INET6, words, text, sizeof(text)))
		return false;
	if (strncmp(text, "::ffff:", 7) == 0 && strchr(text, '.')) /* IPv4 by a socket of IPv6 */
		snprintf(buf, size, "%s:%u", text + 7, port);
	else
		snprintf(buf, size, n == 1 ? "%s:%u" : "[%s]:%u", text, port);
	return true;
}

enum endpoint_kind endpoint_in_tcp(const char *tcp, uint64_t inode, char *buf, size_t size)
{
	struct connection c;

	buf[0] = '\0';
	for (const char *line = tcp; *line; line = next_line(line)) {
		if (!parse_connection(line, &c) || c.inode != inode || c.state == STATE_LISTEN)
			continue;
		if (!put_address(c.remote, c.remote_port, buf, size))
			return ENDPOINT_NONE;
		return is_listening(tcp, c.local_port) ? ENDPOINT_CLIENT : ENDPOINT_PEER;
	}
	return ENDPOINT_NONE;
}

static size_t read_into(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	int len;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	len = small_file_read(AT_FDCWD, path, buf, size);
	return len > 0 ? (size_t)len : 0;
}

char *endpoint_tcp_read(pid_t pid)
{
	char *text = malloc(TCP_BYTES_MAX);
	size_t len;

	if (!text)
		return NULL;
	len = read_into(pid, "tcp", text, TCP_BYTES_MAX - 1);
	text[len++] = '\n';
	text[len] = '\0';
	len += read_into(pid, "tcp6", text + len, TCP_BYTES_MAX - len);
	text[len] = '\0';
	return text;
}

enum endpoint_kind endpoint_of(pid_t pid, int fd, const char *tcp, char *buf, size_t size)
{
	char path[64], to[ENDPOINT_NAME_MAX];
	unsigned long inode;
	ssize_t len;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	len = readlink(path, to, sizeof(to) - 1);
	if (len <= 0)
		return ENDPOINT_NONE;
	to[len] = '\0';
	if (sscanf(to, "socket:[%lu]", &inode) == 1)
		return tcp ? endpoint_in_tcp(tcp, inode, buf, size) : ENDPOINT_NONE;
	if (to[0] != '/' || strncmp(to, "/dev/", 5) == 0)
		return ENDPOINT_NONE;
	snprintf(buf, size, "%s", to);
	return ENDPOINT_FILE;
}
