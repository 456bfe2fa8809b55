#include "base/cell_talk.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

struct head {
	uint32_t what, len;
};

union with_fds {
	struct cmsghdr hdr;
	char room[CMSG_SPACE(TALK_FDS_MAX * sizeof(int))];
};

enum { LARGE = 128 << 10 };

/*
 * What is large would raise the size from which the allocator maps memory (mallopt(3)), and leave later tables between what is
 * freed.
 */
static int make_room(struct talk *t)
{
	size_t bytes = t->len + 1;

	if (bytes < LARGE) {
		t->data = malloc(bytes);
		return t->data ? 0 : -ENOMEM;
	}
	t->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->data == MAP_FAILED) {
		t->data = NULL;
		return -ENOMEM;
	}
	t->mapped = bytes;
	return 0;
}

void talk_fini(struct talk *t)
{
	if (t->mapped)
		munmap(t->data, t->mapped);
	else
		free(t->data);
	for (int i = 0; i < TALK_FDS_MAX; i++)
		closep(&t->fds[i]);
}

/* 0: it may be tried again. */
static int wait_for(int channel, short events, uint64_t until_ns)
{
	struct pollfd p = { channel, events, 0 };
	uint64_t now = now_ns();
	uint64_t ms = now < until_ns ? (until_ns - now) / 1000000 + 1 : 0;
	int n;

	if (!ms)
		return -ETIMEDOUT;
	n = poll(&p, 1, ms < 60000 ? (int)ms : 60000);
	return n < 0 && errno != EINTR ? -errno : 0;
}

static int retry(int channel, short events, uint64_t until_ns)
{
	if (errno == EINTR)
		return 0;
	if (errno == EAGAIN)
		return wait_for(channel, events, until_ns);
	return errno == ECONNRESET ? -EPIPE : -errno;
}

static int send_all(int channel, struct msghdr *m, const uint8_t *data, size_t len,
		    uint64_t until_ns)
{
	while (len) {
		struct iovec part = { (void *)data, len };
		ssize_t n;
		int r = 0;

		m->msg_iov = &part;
		m->msg_iovlen = 1;
		n = sendmsg(channel, m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			r = retry(channel, POLLOUT, until_ns);
		if (r < 0)
			return r;
		if (n <= 0)
			continue;
		/* Descriptors went with the first bytes. */
		m->msg_control = NULL;
		m->msg_controllen = 0;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int talk_send(int channel, uint32_t what, const void *data, size_t len, const int *fds,
	      uint32_t n_fds, uint64_t until_ns)
{
	struct head head = { what, (uint32_t)len };
	union with_fds control = { 0 };
	struct msghdr m = { 0 };
	int r;

	if (len > UINT32_MAX || n_fds > TALK_FDS_MAX)
		return -EFBIG;
	if (n_fds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), fds, n_fds * sizeof(int));
	}
	r = send_all(channel, &m, (const uint8_t *)&head, sizeof(head), until_ns);
	return r < 0 ? r : send_all(channel, &m, data, len, until_ns);
}

static void take_fds(struct msghdr *m, bool may_send_fds, struct talk *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		uint32_t n = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (uint32_t i = 0; i < n; i++) {
			_cleanup_(closep) int fd = -1;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			for (int k = 0; may_send_fds && fd >= 0 && k < TALK_FDS_MAX; k++)
				if (ret->fds[k] < 0)
					ret->fds[k] = TAKE_FD(fd);
		}
	}
}

static int take_all(int channel, void *data, size_t len, bool may_send_fds, uint64_t until_ns,
		    struct talk *ret)
{
	for (size_t done = 0; done < len;) {
		struct iovec part = { (char *)data + done, len - done };
		union with_fds control;
		struct msghdr m = { .msg_iov = &part,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(channel, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		int r = n == 0 ? -EPIPE : n < 0 ? retry(channel, POLLIN, until_ns) : 0;

		if (r < 0)
			return r;
		if (n < 0)
			continue;
		take_fds(&m, may_send_fds, ret);
		done += (size_t)n;
	}
	return 0;
}

int talk_take(int channel, size_t max_len, bool may_send_fds, uint64_t until_ns, struct talk *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct head head;
	int r = take_all(channel, &head, sizeof(head), may_send_fds, until_ns, &t);

	if (r < 0)
		return r;
	if (head.len > max_len)
		return -EFBIG;
	t.what = head.what;
	t.len = head.len;
	r = make_room(&t);
	if (r < 0)
		return r;
	r = take_all(channel, t.data, t.len, may_send_fds, until_ns, &t);
	if (r < 0)
		return r;
	t.data[t.len] = '\0';
	*ret = t;
	t = (struct talk){ .fds = { -1, -1, -1 } };
	return 0;
}
