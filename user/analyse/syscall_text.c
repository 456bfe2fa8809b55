#include "analyse/syscall_text.h"
#include "base/syscall_names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define ERRNO_MAX 4095

static void char_put(struct strbuf *b, unsigned char c, unsigned char next)
{
	static const char escapes[] = "\"\\\n\t\r\v\f", letters[] = "\"\\ntrvf";
	const char *at = c ? strchr(escapes, c) : NULL;

	uint32_t digits = next >= '0' && next <= '7' ? 3 : c > 077 ? 3 : c > 07 ? 2 : 1;

	if (!at && c >= ' ' && c < 0x7f) {
		strbuf_putc(b, (char)c);
		return;
	}
	strbuf_putc(b, '\\');
	if (at)
		strbuf_putc(b, letters[at - escapes]);
	while (!at && digits--)
		strbuf_putc(b, (char)('0' + (c >> 3 * digits & 7)));
}

static void escaped_put(struct strbuf *b, const char *s, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		uint32_t n = 0;

		while (i + n < len && s[i + n] >= ' ' && s[i + n] < 0x7f && s[i + n] != '"' &&
		       s[i + n] != '\\')
			n++;
		if (n) {
			strbuf_add(b, s + i, n);
			i += n - 1;
		} else {
			char_put(b, (unsigned char)s[i], i + 1 < len ? (unsigned char)s[i + 1] : 0);
		}
	}
}

void quoted_put(struct strbuf *b, const char *s, uint32_t len, bool more)
{
	strbuf_add(b, "\"", 1);
	escaped_put(b, s, len);
	strbuf_puts(b, more ? "\"..." : "\"");
}

int call_error(const struct trace_event *event)
{
	return event->ret < 0 && event->ret >= -ERRNO_MAX ? (int)-event->ret : 0;
}

static void hex_put(struct strbuf *b, uint64_t value)
{
	if (value)
		strbuf_hex(b, value);
	else
		strbuf_puts(b, "NULL");
}

static void file_put(struct strbuf *b, int fd, bool at, const char *file)
{
	if (at && fd == AT_FDCWD)
		strbuf_puts(b, "AT_FDCWD");
	else
		strbuf_signed(b, fd);
	if (!file)
		return;
	strbuf_puts(b, "<");
	escaped_put(b, file, (uint32_t)strlen(file));
	strbuf_puts(b, ">");
}

/* The read strings of an argv, behind each other. */
static void argv_put(struct strbuf *b, const struct trace_bytes *r)
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

static void address_put(struct strbuf *b, const struct trace_bytes *r)
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

static void stat_put(struct strbuf *b, const struct trace_bytes *r)
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

static void poll_put(struct strbuf *b, const struct trace_bytes *r, uint64_t n)
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

static void signal_put(struct strbuf *b, int number)
{
	const char *name = sigabbrev_np(number);

	if (name && number)
		strbuf_printf(b, "SIG%s", name);
	else if (number == 32 || number == 33)
		strbuf_printf(b, "SIGRT_%d", number - 32);
	else
		strbuf_signed(b, number);
}

static void sigset_put(struct strbuf *b, const struct trace_bytes *r)
{
	bool most, first = true;
	uint64_t set = 0;

	memcpy(&set, r->s, r->len < 8 ? r->len : 8);
	most = __builtin_popcountll(set) > 42;
	strbuf_puts(b, most ? "~[" : "[");
	for (int i = 1; i <= 64; i++) {
		const char *name = sigabbrev_np(i);

		if ((set >> (i - 1) & 1) == most)
			continue;
		strbuf_puts(b, first ? "" : " ");
		first = false;
		if (name)
			strbuf_puts(b, name);
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

static void status_put(struct strbuf *b, int status)
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

static void event_put(struct strbuf *b, const struct trace_bytes *r)
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

/* What was read of argument `i`, which is there. */
static void read_put(struct strbuf *b, const struct call_arg *arg, const struct trace_event *ev,
		     const struct trace_bytes *r, uint64_t whole)
{
	uint64_t two[2] = { 0 };

	memcpy(two, r->s, r->len < sizeof(two) ? r->len : sizeof(two));
	switch (arg->kind) {
	case ARG_PATH:
	case ARG_CWD:
	case ARG_STRING:
		quoted_put(b, r->s, r->len - 1,
			   r->len >= (arg->kind == ARG_STRING ? TRACE_SHORT : TRACE_LONG));
		break;
	case ARG_IN:
	case ARG_OUT:
		quoted_put(b, r->s, r->len, whole > r->len);
		break;
	case ARG_IOV:
	case ARG_IOV_OUT:
		strbuf_puts(b, "[{iov_base=");
		quoted_put(b, r->s, r->len, false);
		strbuf_puts(b, whole > 1 ? ", ...}, ...]" : ", ...}]");
		break;
	case ARG_ARGV:
		argv_put(b, r);
		break;
	case ARG_ADDRESS:
	case ARG_ADDRESS_OUT:
		address_put(b, r);
		break;
	case ARG_STAT:
		stat_put(b, r);
		break;
	case ARG_FDS:
		strbuf_printf(b, "[%d, %d]", (int)(two[0] & 0xffffffff), (int)(two[0] >> 32));
		break;
	case ARG_TIME:
	case ARG_TIME_OUT:
		strbuf_printf(b, "{tv_sec=%lld, tv_nsec=%lld}", (long long)two[0],
			      (long long)two[1]);
		break;
	case ARG_MICRO:
	case ARG_MICRO_OUT:
		strbuf_printf(b, "{tv_sec=%lld, tv_usec=%lld}", (long long)two[0],
			      (long long)two[1]);
		break;
	case ARG_POLL:
		poll_put(b, r, whole);
		break;
	case ARG_EVENT:
		event_put(b, r);
		break;
	case ARG_SIGSET:
		sigset_put(b, r);
		break;
	case ARG_LIMIT:
	case ARG_LIMIT_OUT:
		strbuf_puts(b, "{rlim_cur=");
		limit_number(b, two[0]);
		strbuf_puts(b, ", rlim_max=");
		limit_number(b, two[1]);
		strbuf_puts(b, "}");
		break;
	case ARG_STATUS:
		status_put(b, (int)two[0]);
		break;
	default:
		hex_put(b, ev->args[0]);
	}
}

void call_arg_put(struct strbuf *b, const struct call_shape *shape, const struct trace_event *ev,
		  uint32_t i)
{
	const struct call_arg *arg = &shape->args[i];
	const struct trace_bytes *r = arg->read >= 0 ? &ev->read[arg->read] : NULL;
	uint64_t value = ev->args[i], whole;

	/* Nothing was to be read: an empty buffer, or a call that has not returned. */
	if (r && !r->s && value && !r->unread && (arg->kind == ARG_IN || arg->kind == ARG_OUT) &&
	    ev->returns && !call_error(ev)) {
		strbuf_puts(b, "\"\"");
		return;
	}
	if (r && r->s) {
		whole = arg->kind == ARG_OUT ? (uint64_t)ev->ret : ev->args[arg->of];
		read_put(b, arg, ev, r, whole);
		return;
	}
	switch (arg->kind) {
	case ARG_INT:
		strbuf_signed(b, (int)value);
		break;
	case ARG_UNSIGNED:
		strbuf_unsigned(b, value);
		break;
	case ARG_LONG:
		strbuf_signed(b, (int64_t)value);
		break;
	case ARG_OFFSET:
		strbuf_hex(b, value);
		break;
	case ARG_MODE:
		strbuf_printf(b, "%#03o", (unsigned)value);
		break;
	case ARG_FD:
	case ARG_AT:
		file_put(b, (int)value, arg->kind == ARG_AT,
			 arg->file >= 0 ? ev->file[arg->file] : NULL);
		break;
	case ARG_FLAGS:
		flags_put(b, arg->flags, (uint32_t)value);
		break;
	case ARG_VALUE:
		flag_value_put(b, arg->flags, (uint32_t)value);
		break;
	case ARG_PROTOCOL:
		if (ev->args[0] == AF_INET || ev->args[0] == AF_INET6)
			flag_value_put(b, flag_set_named("protocol", 8), (uint32_t)value);
		else
			strbuf_signed(b, (int)value);
		break;
	case ARG_SIGNAL:
		signal_put(b, (int)value);
		break;
	default:
		hex_put(b, value);
	}
}

uint32_t call_n_args(const struct call_shape *shape, const struct trace_event *ev)
{
	uint32_t n = shape->n;

	for (uint32_t i = 0; i + 1 < n; i++) {
		const struct call_arg *arg = &shape->args[i];
		uint32_t value = (uint32_t)ev->args[i];

		if (arg->kind == ARG_FLAGS && shape->args[i + 1].kind == ARG_MODE &&
		    !strcmp(arg->flags->name, "open") && !(value & O_CREAT) &&
		    (value & O_TMPFILE) != O_TMPFILE)
			return i + 1;
		if (arg->kind == ARG_VALUE && !strcmp(arg->flags->name, "fcntl") &&
		    (value == F_GETFD || value == F_GETFL || value == F_GETOWN))
			return i + 1;
	}
	return n;
}

/* fcntl's results are flags, of the descriptor or of the file. */
static bool fcntl_flags(const struct call_shape *shape, const struct trace_event *ev)
{
	const struct call_arg *arg = &shape->args[1];

	return arg->kind == ARG_VALUE && !strcmp(arg->flags->name, "fcntl") && ev->ret &&
	       (ev->args[1] == F_GETFD || ev->args[1] == F_GETFL);
}

static void fcntl_put(struct strbuf *b, const struct trace_event *ev)
{
	bool fd = ev->args[1] == F_GETFD;

	strbuf_printf(b, "%#llx (flags ", (unsigned long long)ev->ret);
	flags_put(b, flag_set_named(fd ? "fd" : "open", fd ? 2 : 4), (uint64_t)ev->ret);
	strbuf_puts(b, ")");
}

void call_result_put(struct strbuf *b, const struct call_shape *shape, const struct trace_event *ev)
{
	int error = call_error(ev);
	const char *name = error ? errno_name(error) : NULL;

	if (!ev->returns)
		strbuf_puts(b, "?");
	else if (error >= 512 && name)
		strbuf_printf(b, "? %s (%s)", name,
			      error == 512   ? "To be restarted if SA_RESTART is set"
			      : error == 513 ? "To be restarted"
			      : error == 514 ? "To be restarted if no handler"
					     : "Interrupted by signal");
	else if (error && name)
		strbuf_printf(b, "-1 %s (%s)", name, strerrordesc_np(error));
	else if (error)
		strbuf_printf(b, "-1 (errno %d)", error);
	else if (shape->result == RESULT_FD)
		file_put(b, (int)ev->ret, false, ev->result_file);
	else if (fcntl_flags(shape, ev))
		fcntl_put(b, ev);
	else if (shape->result == RESULT_ADDRESS)
		strbuf_hex(b, (uint64_t)ev->ret);
	else
		strbuf_signed(b, ev->ret);
}
