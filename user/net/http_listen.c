#include "net/http_listen.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 64

static int parse_unix(const char *path, struct http_address *a, struct err *e)
{
	a->reach = HTTP_REACH_UNIX;
	a->at.un.sun_family = AF_UNIX;
	a->len = sizeof(a->at.un);
	if (*path != '/')
		return err_set(e, -EINVAL,
			       "--listen unix:%.64s: a socket needs a path that begins with /",
			       path);
	if (strlen(path) >= sizeof(a->at.un.sun_path))
		return err_set(e, -EINVAL,
			       "--listen unix:%.64s…: the path of a socket has at most %zu bytes",
			       path, sizeof(a->at.un.sun_path) - 1);
	strcpy(a->at.un.sun_path, path);
	return 0;
}

/* What stands before the colon, without brackets. */
static int parse_host(const char *host, struct http_address *a)
{
	if (inet_pton(AF_INET, host, &a->at.in.sin_addr) == 1) {
		a->at.in.sin_family = AF_INET;
		a->len = sizeof(a->at.in);
		a->reach = ntohl(a->at.in.sin_addr.s_addr) >> 24 == 127 ? HTTP_REACH_LOOPBACK
									: HTTP_REACH_WIDE;
		return 0;
	}
	if (inet_pton(AF_INET6, host, &a->at.in6.sin6_addr) != 1)
		return -EINVAL;
	a->at.in6.sin6_family = AF_INET6;
	a->len = sizeof(a->at.in6);
	a->reach =
		IN6_IS_ADDR_LOOPBACK(&a->at.in6.sin6_addr) ? HTTP_REACH_LOOPBACK : HTTP_REACH_WIDE;
	return 0;
}

static int parse_tcp(const char *text, struct http_address *a)
{
	const char *colon = strrchr(text, ':');
	bool bracket = *text == '[';
	char host[64] = "", *end;
	unsigned long port;
	size_t len;

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return -EINVAL;
	port = strtoul(colon + 1, &end, 10);
	len = (size_t)(colon - text);
	if (port > 65535 || len >= sizeof(host) || (bracket && (len < 2 || colon[-1] != ']')))
		return -EINVAL;
	memcpy(host, text + bracket, len - 2 * bracket);
	if (parse_host(host, a) < 0 || bracket != (a->at.any.sa_family == AF_INET6))
		return -EINVAL;
	if (bracket)
		a->at.in6.sin6_port = htons((uint16_t)port);
	else
		a->at.in.sin_port = htons((uint16_t)port);
	return 0;
}

int http_address_parse(const char *text, struct http_address *ret_address, struct err *e)
{
	struct http_address a = { 0 };
	int r;

	if (strncmp(text, "unix:", 5) == 0)
		r = parse_unix(text + 5, &a, e);
	else if ((r = parse_tcp(text, &a)) < 0)
		err_set(e, r,
			"--listen \"%.64s\" is not understood: write unix:/PATH, 127.0.0.1:PORT or "
			"[::1]:PORT",
			text);
	if (r == 0)
		*ret_address = a;
	return r;
}

/* Is the file a socket on which nobody listens any more? */
static bool is_left_over(const struct sockaddr_un *un)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0 || lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	return connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 && errno == ECONNREFUSED;
}

static int bind_unix(int fd, const struct http_address *a)
{
	mode_t before = umask(0177); /* from its first moment on it is its owner's alone */
	int r = bind(fd, &a->at.any, a->len) < 0 ? -errno : 0;

	if (r == -EADDRINUSE && is_left_over(&a->at.un)) {
		unlink(a->at.un.sun_path);
		r = bind(fd, &a->at.any, a->len) < 0 ? -errno : 0;
	}
	umask(before);
	return r;
}

static int cannot_listen(const struct http_address *a, int r, struct err *e)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (a->at.any.sa_family == AF_UNIX)
		return err_set(e, r, "cannot listen on unix:%s: %s", a->at.un.sun_path,
			       r == -EADDRINUSE ? "another program does, or it is no socket"
						: strerror(-r));
	if (a->at.any.sa_family == AF_INET)
		return err_set(e, r, "cannot listen on %s:%u: %s",
			       inet_ntop(AF_INET, &a->at.in.sin_addr, host, sizeof(host)),
			       ntohs(a->at.in.sin_port), strerror(-r));
	return err_set(e, r, "cannot listen on [%s]:%u: %s",
		       inet_ntop(AF_INET6, &a->at.in6.sin6_addr, host, sizeof(host)),
		       ntohs(a->at.in6.sin6_port), strerror(-r));
}

int http_address_listen(const struct http_address *a, int *ret_fd, struct err *e)
{
	_cleanup_(closep) int fd =
		socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, r;

	if (fd < 0)
		return cannot_listen(a, -errno, e);
	if (a->at.any.sa_family == AF_UNIX) {
		r = bind_unix(fd, a);
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (a->at.any.sa_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		r = bind(fd, &a->at.any, a->len) < 0 ? -errno : 0;
	}
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r < 0)
		return cannot_listen(a, r, e);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Without the host's modules of name services: they may ask a network. */
static int find_group(const char *name, gid_t *ret_gid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	struct group *g;
	char *end;

	*ret_gid = (gid_t)strtoul(name, &end, 10);
	if (*name && !*end)
		return 0;
	f = fopen("/etc/group", "re");
	while (f && (g = fgetgrent(f)))
		if (strcmp(g->gr_name, name) == 0) {
			*ret_gid = g->gr_gid;
			return 0;
		}
	return -ENOENT;
}

int http_address_share(const struct http_address *a, const char *group, struct err *e)
{
	const char *path = a->at.un.sun_path;
	gid_t gid;
	int r = find_group(group, &gid);

	if (r < 0)
		return err_set(e, r, "--listen-group: there is no group \"%.64s\" in /etc/group",
			       group);
	/* Nobody else may use it before it is the group's. */
	if (chown(path, (uid_t)-1, gid) < 0 || chmod(path, 0660) < 0)
		return err_set(e, -errno,
			       "cannot give unix:%s to the group %.64s: %s (a systemd unit needs "
			       "SupplementaryGroups=)",
			       path, group, strerror(errno));
	return 0;
}

uint16_t http_socket_port(int fd)
{
	struct http_address a = { .len = sizeof(a.at) };

	if (getsockname(fd, &a.at.any, &a.len) < 0)
		return 0;
	if (a.at.any.sa_family == AF_INET)
		return ntohs(a.at.in.sin_port);
	return a.at.any.sa_family == AF_INET6 ? ntohs(a.at.in6.sin6_port) : 0;
}
