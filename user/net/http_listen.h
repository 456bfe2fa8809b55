/*
 * Where an HTTP server listens: what --listen says, as a socket.
 *
 *   unix:/run/memscope.sock   a socket file of mode 0600, or 0660 for a group
 *   127.0.0.1:6060  [::1]:6060   this host alone
 *   0.0.0.0:6060  192.0.2.7:6060  [::]:6060   others reach it too: with TLS and a token only (http_server.h)
 *
 * Addresses are numbers: a name would be looked up while the loop waits.
 */
#ifndef MEMSCOPE_NET_HTTP_LISTEN_H
#define MEMSCOPE_NET_HTTP_LISTEN_H

#include "base/err.h"

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum http_reach { HTTP_REACH_UNIX, HTTP_REACH_LOOPBACK, HTTP_REACH_WIDE };

struct http_address {
	enum http_reach reach;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} at;
	socklen_t len;
};

/* -EINVAL with a sentence. Port 0: one that is free. */
int http_address_parse(const char *text, struct http_address *ret_address, struct err *e);
/*
 * A listening socket, which does not block. A socket file that nobody listens on is replaced. -EADDRINUSE: somebody does;
 * else as bind(2).
 */
int http_address_listen(const struct http_address *a, int *ret_fd, struct err *e);
/*
 * Members of a group may use the socket file, too: mode 0660. `group`: a name of /etc/group, or a number. -ENOENT: there is none; else as
 * chown(2), which who runs as root without CAP_CHOWN may do for a group that he is in.
 */
int http_address_share(const struct http_address *a, const char *group, struct err *e);
/* The port that a socket has; 0: it is no TCP socket. */
uint16_t http_socket_port(int fd);

#endif
