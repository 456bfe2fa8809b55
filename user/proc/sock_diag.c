#include "proc/sock_diag.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>

/* include/net/tcp_states.h, which is none of the headers for programs */
enum { ESTABLISHED = 1, SYN_SENT = 2, CLOSE_WAIT = 8, LISTEN = 10 };

#define STATES     (1u << ESTABLISHED | 1u << SYN_SENT | 1u << CLOSE_WAIT | 1u << LISTEN)
#define ANSWER_MAX 32768 /* as much as the kernel gives at a time: netlink_dump() */

struct opened {
	int ns, fd;
};

static int open_here(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

static void *open_there(void *arg)
{
	struct opened *o = arg;

	if (setns(o->ns, CLONE_NEWNET) < 0)
		o->fd = -errno;
	else
		o->fd = open_here();
	return NULL;
}

static bool is_our_own(int ns)
{
	struct stat there, here;

	return fstat(ns, &there) == 0 && stat("/proc/self/ns/net", &here) == 0 &&
	       there.st_ino == here.st_ino;
}

int sock_diag_open(pid_t pid)
{
	_cleanup_(closep) int ns = -1;
	struct opened o = { 0 };
	pthread_t thread;
	char path[48];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return -errno;
	if (is_our_own(ns))
		return open_here();
	o.ns = ns;
	/* By a thread that ends at once: a namespace is a thread's, and this one is not to leave its own. */
	r = pthread_create(&thread, NULL, open_there, &o);
	if (r)
		return -r;
	pthread_join(thread, NULL);
	return o.fd;
}

static void take_info(struct tcp_conn *c, const void *data, size_t len)
{
	struct tcp_info info = { 0 };

	memcpy(&info, data, len < sizeof(info) ? len : sizeof(info));
	c->unacked = info.tcpi_unacked;
	c->sent_ms = info.tcpi_last_data_sent;
	c->recv_ms = info.tcpi_last_data_recv;
	c->ack_ms = info.tcpi_last_ack_recv;
	c->segs_in = info.tcpi_segs_in;
	c->segs_out = info.tcpi_segs_out;
	c->data_in = info.tcpi_data_segs_in;
	c->data_out = info.tcpi_data_segs_out;
}

bool sock_diag_parse(const void *msg, size_t len, struct tcp_conn *ret_conn)
{
	struct tcp_conn c = { 0 };
	struct inet_diag_msg m;
	struct rtattr attr;
	size_t at = NLMSG_ALIGN(sizeof(m));

	if (len < sizeof(m))
		return false;
	memcpy(&m, msg, sizeof(m));
	if (m.idiag_family != AF_INET && m.idiag_family != AF_INET6)
		return false;
	c.inode = m.idiag_inode;
	c.cookie = (uint64_t)m.id.idiag_cookie[1] << 32 | m.id.idiag_cookie[0];
	c.ipv6 = m.idiag_family == AF_INET6;
	c.listens = m.idiag_state == LISTEN;
	c.connecting = m.idiag_state == SYN_SENT;
	c.local_port = ntohs(m.id.idiag_sport);
	c.remote_port = ntohs(m.id.idiag_dport);
	memcpy(c.remote, m.id.idiag_dst, sizeof(c.remote));
	c.unread = m.idiag_rqueue;
	while (at + sizeof(attr) <= len) {
		memcpy(&attr, (const char *)msg + at, sizeof(attr));
		if (attr.rta_len < sizeof(attr) || attr.rta_len > len - at)
			return false;
		if (attr.rta_type == INET_DIAG_INFO)
			take_info(&c, (const char *)msg + at + sizeof(attr),
				  attr.rta_len - sizeof(attr));
		at += RTA_ALIGN(attr.rta_len);
	}
	*ret_conn = c;
	return true;
}

static int ask(int fd, uint8_t family)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 req;
	} m = {
		.head = { .nlmsg_len = sizeof(m),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.req = { .sdiag_family = family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_ext = 1u << (INET_DIAG_INFO - 1),
			 .idiag_states = STATES },
	};

	return send(fd, &m, sizeof(m), 0) == (ssize_t)sizeof(m) ? 0 : -errno;
}

/* 1: there is more to come. */
static int take_answer(const char *buf, size_t len, void (*fn)(void *, const struct tcp_conn *),
		       void *ctx)
{
	struct nlmsghdr h;
	struct tcp_conn c;

	for (size_t at = 0; at + sizeof(h) <= len; at += NLMSG_ALIGN(h.nlmsg_len)) {
		memcpy(&h, buf + at, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > len - at)
			return -EBADMSG;
		if (h.nlmsg_type == NLMSG_DONE)
			return 0;
		if (h.nlmsg_type == NLMSG_ERROR)
			return -EOPNOTSUPP; /* the kernel has no inet_diag, or a module for it is missing */
		if (sock_diag_parse(buf + at + sizeof(h), h.nlmsg_len - sizeof(h), &c))
			fn(ctx, &c);
	}
	return 1;
}

static int dump(int fd, uint8_t family, void (*fn)(void *ctx, const struct tcp_conn *c), void *ctx)
{
	_cleanup_(freep) char *buf = malloc(ANSWER_MAX);
	int r = buf ? ask(fd, family) : -ENOMEM;

	while (r >= 0) {
		ssize_t len = recv(fd, buf, ANSWER_MAX, 0);

		if (len < 0 && errno == EINTR)
			continue;
		r = len < 0 ? -errno : take_answer(buf, (size_t)len, fn, ctx);
		if (r <= 0)
			break;
	}
	return r;
}

int sock_diag_tcp(int fd, void (*fn)(void *ctx, const struct tcp_conn *c), void *ctx)
{
	int r = dump(fd, AF_INET, fn, ctx);

	return r < 0 ? r : dump(fd, AF_INET6, fn, ctx);
}

void tcp_conn_peer(const struct tcp_conn *c, char name[TCP_NAME_MAX])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];

	if (!c->ipv6)
		inet_ntop(AF_INET, c->remote, text, sizeof(text));
	else if (memcmp(c->remote, mapped, sizeof(mapped)) == 0) /* IPv4 by a socket of IPv6 */
		inet_ntop(AF_INET, c->remote + sizeof(mapped), text, sizeof(text));
	else
		inet_ntop(AF_INET6, c->remote, text, sizeof(text));
	snprintf(name, TCP_NAME_MAX, strchr(text, ':') ? "[%s]:%u" : "%s:%u", text, c->remote_port);
}
