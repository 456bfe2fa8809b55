#include "analyse/syscall_structs.h"
#include "analyse/syscall_flags.h"
#include "analyse/syscall_quote.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* The read strings of an argv, behind each other. */
void argv_put(struct strbuf *b, const struct trace_bytes *r)
{
	uint32_t at = 0, n = 0;

	strbuf_puts(b, "[");
	while (at < r->len) {
		uint32_t len = (uint32_t)strnlen(r->s + at, r->len - at);

		strbuf_puts(b, n++ ? ", " : "");
		quoted_put(b, r->s + at, len, len >= 127);
		at += len + 1;
	}
	strbuf_puts(b, n >= 16 || r->len > TRACE_LONG - 128 ? ", ...]" : "]");
}

void address_put(struct strbuf *b, const struct trace_bytes *r)
{
	struct sockaddr_storage room = { 0 };
	const struct sockaddr_in *in = (const void *)&room;
	const struct sockaddr_in6 *in6 = (const void *)&room;
	const char *path = ((const struct sockaddr_un *)(const void *)&room)->sun_path;
	uint32_t len = r->len < sizeof(room) ? r->len : (uint32_t)sizeof(room);
	char text[INET6_ADDRSTRLEN] = "";

	memcpy(&room, r->s, len);
	strbuf_puts(b, "{sa_family=");
	flag_value_put(b, flag_set_named("family", 6), room.ss_family);
	if (room.ss_family == AF_UNIX && len > 2) {
		strbuf_printf(b, ", sun_path=%s", *path ? "" : "@");
		if (*path)
			quoted_put(b, path, (uint32_t)strnlen(path, len - 2), false);
		else
			quoted_put(b, path + 1, len - 3, false);
	} else if (room.ss_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		strbuf_printf(b, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")",
			      ntohs(in->sin_port), text);
	} else if (room.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
		strbuf_printf(b,
			      ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), "
			      "inet_pton(AF_INET6, \"%s\", &sin6_addr), sin6_scope_id=%u",
			      ntohs(in6->sin6_port), ntohl(in6->sin6_flowinfo), text,
			      in6->sin6_scope_id);
	} else if (len > 2) {
		strbuf_puts(b, ", sa_data=");
		quoted_put(b, r->s + 2, len - 2, false);
	}
	strbuf_puts(b, "}");
}

static void mode_put(struct strbuf *b, uint32_t mode)
{
	static const struct {
		uint32_t value;
		const char *name;
	} kinds[] = { { S_IFREG, "S_IFREG" },  { S_IFDIR, "S_IFDIR" }, { S_IFCHR, "S_IFCHR" },
		      { S_IFBLK, "S_IFBLK" },  { S_IFIFO, "S_IFIFO" }, { S_IFLNK, "S_IFLNK" },
		      { S_IFSOCK, "S_IFSOCK" } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if ((mode & S_IFMT) == kinds[i].value)
			strbuf_printf(b, "%s|", kinds[i].name);
	strbuf_printf(b, "%s%s%s%#03o", mode & S_ISUID ? "S_ISUID|" : "",
		      mode & S_ISGID ? "S_ISGID|" : "", mode & S_ISVTX ? "S_ISVTX|" : "",
		      mode & 0777);
}

void stat_put(struct strbuf *b, const struct trace_bytes *r)
{
	struct stat st = { 0 };

	memcpy(&st, r->s, r->len < sizeof(st) ? r->len : sizeof(st));
	strbuf_puts(b, "{st_mode=");
	mode_put(b, st.st_mode);
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		strbuf_printf(b, ", st_rdev=makedev(%#x, %#x), ...}",
			      (unsigned)(st.st_rdev >> 8 & 0xfff), (unsigned)(st.st_rdev & 0xff));
	else
		strbuf_printf(b, ", st_size=%lld, ...}", (long long)st.st_size);
}

void poll_put(struct strbuf *b, const struct trace_bytes *r, uint64_t n)
{
	const struct flag_set *set = flag_set_named("poll", 4);
	struct pollfd p;

	strbuf_puts(b, "[");
	for (uint32_t at = 0; at + sizeof(p) <= r->len; at += sizeof(p)) {
		memcpy(&p, r->s + at, sizeof(p));
		strbuf_printf(b, "%s{fd=%d, events=", at ? ", " : "", p.fd);
		flags_put(b, set, (uint16_t)p.events);
		strbuf_puts(b, "}");
	}
	strbuf_puts(b, n * sizeof(p) > r->len ? ", ...]" : "]");
}

static const char *signal_name(int number)
{
	return number == SIGIO ? "IO" : sigabbrev_np(number);
}

void signal_put(struct strbuf *b, int number)
{
	const char *name = signal_name(number);

	if (name && number)
		strbuf_printf(b, "SIG%s", name);
	else if (number == 32)
		strbuf_puts(b, "SIGRTMIN");
	else if (number > 32 && number <= 64)
		strbuf_printf(b, "SIGRT_%d", number - 32);
	else
		strbuf_signed(b, number);
}

void sigset_put(struct strbuf *b, uint64_t set)
{
	bool most, first = true;

	most = __builtin_popcountll(set) > 42;
	strbuf_puts(b, most ? "~[" : "[");
	for (int i = 1; i <= 64; i++) {
		const char *name = signal_name(i);

		if ((set >> (i - 1) & 1) == most)
			continue;
		strbuf_puts(b, first ? "" : " ");
		first = false;
		if (name || i == 32)
			strbuf_puts(b, name ? name : "RTMIN");
		else
			strbuf_printf(b, "RT_%d", i - 32);
	}
	strbuf_puts(b, "]");
}

static void limit_number(struct strbuf *b, uint64_t n)
{
	if (n == RLIM_INFINITY)
		strbuf_puts(b, "RLIM64_INFINITY");
	else if (n > 1024 && n % 1024 == 0)
		strbuf_printf(b, "%llu*1024", (unsigned long long)n / 1024);
	else
		strbuf_unsigned(b, n);
}

void limits_put(struct strbuf *b, const uint64_t limits[2])
{
	strbuf_puts(b, "{rlim_cur=");
	limit_number(b, limits[0]);
	strbuf_puts(b, ", rlim_max=");
	limit_number(b, limits[1]);
	strbuf_puts(b, "}");
}

void status_put(struct strbuf *b, int status)
{
	if (WIFEXITED(status))
		strbuf_printf(b, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(status));
	else if (WIFSIGNALED(status)) {
		strbuf_puts(b, "[{WIFSIGNALED(s) && WTERMSIG(s) == ");
		signal_put(b, WTERMSIG(status));
		strbuf_printf(b, "%s}]", WCOREDUMP(status) ? " && WCOREDUMP(s)" : "");
	} else
		strbuf_printf(b, "[%#x]", (unsigned)status);
}

void event_put(struct strbuf *b, const struct trace_bytes *r)
{
	uint32_t events;
	uint64_t data;

	memcpy(&events, r->s, 4);
#ifdef __x86_64__
	memcpy(&data, r->s + 4, 8);
#else
	data = 0; /* aligned: it stands behind what was read */
#endif
	strbuf_puts(b, "{events=");
	flags_put(b, flag_set_named("epoll_event", 11), events);
	strbuf_printf(b, ", data={u32=%u, u64=%llu}}", (uint32_t)data, (unsigned long long)data);
}

static void handler_put(struct strbuf *b, uint64_t handler)
{
	if (handler == (uintptr_t)SIG_DFL || handler == (uintptr_t)SIG_IGN)
		strbuf_puts(b, handler ? "SIG_IGN" : "SIG_DFL");
	else
		strbuf_hex(b, handler);
}

#define RESTORER 0x04000000 /* SA_RESTORER of asm/signal.h */

/* The kernel's struct sigaction: handler, flags, restorer, mask. */
void action_put(struct strbuf *b, const struct trace_bytes *r)
{
	uint64_t words[4] = { 0 };

	memcpy(words, r->s, r->len < sizeof(words) ? r->len : sizeof(words));
	strbuf_puts(b, "{sa_handler=");
	handler_put(b, words[0]);
	strbuf_puts(b, ", sa_mask=");
	sigset_put(b, words[3]);
	strbuf_puts(b, ", sa_flags=");
	flags_put(b, flag_set_named("sigaction", 9), words[1]);
	if (words[1] & RESTORER) {
		strbuf_puts(b, ", sa_restorer=");
		hex_put(b, words[2]);
	}
	strbuf_puts(b, "}");
}

/* --- buffers --- */

void vectors_put(struct strbuf *b, const struct trace_bytes *r, uint64_t n, uint64_t left,
		 uint32_t most)
{
	uint64_t kept = n < TRACE_IOVS ? n : TRACE_IOVS;
	uint32_t at = (uint32_t)kept * 16;
	bool ended = r->len < at;

	if (ended)
		kept = r->len / 16;
	strbuf_puts(b, "[");
	for (uint64_t i = 0; i < kept; i++) {
		uint64_t iov[2], len;

		memcpy(iov, r->s + 16 * i, sizeof(iov));
		len = iov[1] < left ? iov[1] : left;
		left -= len;
		strbuf_puts(b, i ? ", {iov_base=" : "{iov_base=");
		ended |= (len < most ? len : most) > r->len - at;
		if (ended) {
			hex_put(b, iov[0]);
		} else {
			quoted_put(b, r->s + at, (uint32_t)(len < most ? len : most), len > most);
			at += (uint32_t)(len < most ? len : most);
		}
		strbuf_puts(b, ", iov_len=");
		strbuf_unsigned(b, iov[1]);
		strbuf_puts(b, "}");
	}
	strbuf_puts(b, kept < n ? ", ...]" : "]");
}

/* Descriptors that are handed on; of other messages their length, level and type. */
static void control_put(struct strbuf *b, const struct trace_msg *msg)
{
	uint64_t room = msg->control_len < sizeof(msg->control_bytes) ? msg->control_len
								      : sizeof(msg->control_bytes);
	struct cmsghdr head;

	strbuf_puts(b, "[");
	for (uint64_t at = 0; at + sizeof(head) <= room;) {
		bool rights;

		memcpy(&head, msg->control_bytes + at, sizeof(head));
		if (head.cmsg_len < sizeof(head))
			break;
		rights = head.cmsg_level == SOL_SOCKET && head.cmsg_type == SCM_RIGHTS;
		strbuf_printf(b, "%s{cmsg_len=%zu, cmsg_level=", at ? ", " : "", head.cmsg_len);
		flag_value_put(b, flag_set_named("level", 5), (uint32_t)head.cmsg_level);
		strbuf_puts(b, ", cmsg_type=");
		if (head.cmsg_level == SOL_SOCKET)
			flag_value_put(b, flag_set_named("scm", 3), (uint32_t)head.cmsg_type);
		else
			strbuf_hex(b, (uint32_t)head.cmsg_type);
		for (uint64_t i = at + sizeof(head); rights && i + 4 <= at + head.cmsg_len;
		     i += 4) {
			int fd;

			strbuf_puts(b, i == at + sizeof(head) ? ", cmsg_data=[" : ", ");
			if (i + 4 > room) {
				strbuf_puts(b, "...");
				break;
			}
			memcpy(&fd, msg->control_bytes + i, sizeof(fd));
			strbuf_signed(b, fd);
		}
		strbuf_puts(b, rights && head.cmsg_len > sizeof(head) ? "]}" : "}");
		if (head.cmsg_len > room)
			break;
		at += CMSG_ALIGN(head.cmsg_len);
	}
	strbuf_puts(b, msg->control_len > room ? ", ...]" : "]");
}

static void msg_name_put(struct strbuf *b, const struct trace_msg *msg, const struct trace_bytes *r)
{
	uint32_t len =
		msg->name_len < sizeof(msg->name_bytes) ? msg->name_len : sizeof(msg->name_bytes);

	if (msg->name && len >= 2 && (msg->name_bytes[0] || msg->name_bytes[1]) &&
	    r->len > offsetof(struct trace_msg, name_bytes))
		address_put(b, &(struct trace_bytes){ (const char *)msg->name_bytes, len, false });
	else
		hex_put(b, msg->name);
}

void msg_put(struct strbuf *b, const struct trace_bytes reads[2], int64_t name_room, uint64_t left,
	     uint32_t most)
{
	const struct trace_bytes *r = &reads[1];
	struct trace_msg msg = { 0 };

	memcpy(&msg, r->s, r->len < sizeof(msg) ? r->len : sizeof(msg));
	strbuf_puts(b, "{msg_name=");
	msg_name_put(b, &msg, r);
	strbuf_puts(b, ", msg_namelen=");
	if (name_room >= 0 && name_room != (int64_t)msg.name_len)
		strbuf_printf(b, "%lld => ", (long long)name_room);
	strbuf_unsigned(b, msg.name_len);
	strbuf_puts(b, ", msg_iov=");
	if (reads[0].s)
		vectors_put(b, &reads[0], msg.n_iov, left, most);
	else if (msg.n_iov)
		hex_put(b, msg.iov);
	else
		strbuf_puts(b, "[]");
	strbuf_puts(b, ", msg_iovlen=");
	strbuf_unsigned(b, msg.n_iov);
	if (msg.control_len && r->len == sizeof(msg)) {
		strbuf_puts(b, ", msg_control=");
		control_put(b, &msg);
	} else if (msg.control_len) {
		strbuf_puts(b, ", msg_control=");
		hex_put(b, msg.control);
	}
	strbuf_puts(b, ", msg_controllen=");
	strbuf_unsigned(b, msg.control_len);
	strbuf_puts(b, ", msg_flags=");
	flags_put(b, flag_set_named("msg", 3), msg.flags);
	strbuf_puts(b, "}");
}

void option_put(struct strbuf *b, uint32_t level, uint32_t option)
{
	const struct flag_set *set = level == SOL_SOCKET     ? flag_set_named("so", 2)
				     : level == IPPROTO_TCP  ? flag_set_named("tcpopt", 6)
				     : level == IPPROTO_IP   ? flag_set_named("ipopt", 5)
				     : level == IPPROTO_IPV6 ? flag_set_named("ipv6opt", 7)
							     : NULL;

	if (set)
		flag_value_put(b, set, option);
	else
		strbuf_hex(b, option);
}

/* --- ioctl --- */

void request_put(struct strbuf *b, uint32_t request)
{
	static const char *const directions[] = { "_IOC_NONE", "_IOC_WRITE", "_IOC_READ",
						  "_IOC_READ|_IOC_WRITE" };
	const char *name = flag_value_name(flag_set_named("ioctl", 5), request);

	if (name) {
		strbuf_puts(b, name);
		return;
	}
	strbuf_printf(b, "_IOC(%s, %#x, %#x, %#x)", directions[_IOC_DIR(request)],
		      _IOC_TYPE(request), _IOC_NR(request), _IOC_SIZE(request));
}

bool request_put_arg(struct strbuf *b, uint32_t request, const struct trace_bytes *r)
{
	struct winsize size;
	int number;

	switch (request) {
	case FIONREAD:
	case FIONBIO:
	case FIOASYNC:
	case TIOCOUTQ:
	case TIOCGPGRP:
	case TIOCSPGRP:
	case TIOCGPTN:
		if (r->len < sizeof(number))
			return false;
		memcpy(&number, r->s, sizeof(number));
		strbuf_printf(b, "[%d]", number);
		return true;
	case TIOCGWINSZ:
	case TIOCSWINSZ:
		if (r->len < sizeof(size))
			return false;
		memcpy(&size, r->s, sizeof(size));
		strbuf_printf(b, "{ws_row=%u, ws_col=%u, ws_xpixel=%u, ws_ypixel=%u}", size.ws_row,
			      size.ws_col, size.ws_xpixel, size.ws_ypixel);
		return true;
	default:
		if (((request < SIOCGIFNAME || request > SIOCGIFHWADDR) &&
		     request != SIOCGIFINDEX && request != SIOCGIFTXQLEN) ||
		    request == SIOCGIFCONF || r->len < IFNAMSIZ)
			return false;
		strbuf_puts(b, "{ifr_name=");
		quoted_put(b, r->s, (uint32_t)strnlen(r->s, IFNAMSIZ), false);
		strbuf_puts(b, ", ...}");
		return true;
	}
}
