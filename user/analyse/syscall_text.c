#include "analyse/syscall_text.h"
#include "analyse/syscall_quote.h"
#include "analyse/syscall_structs.h"
#include "base/syscall_names.h"

#include <arpa/inet.h>
#include <fcntl.h>
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
#include <time.h>

#define ERRNO_MAX    4095
#define MSG_NAME_LEN offsetof(struct trace_msg, name_len)

int call_error(const struct trace_event *event)
{
	return event->ret < 0 && event->ret >= -ERRNO_MAX ? (int)-event->ret : 0;
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
		vectors_put(b, r, whole, arg->kind == ARG_IOV ? UINT64_MAX : (uint64_t)ev->ret,
			    arg->most);
		break;
	case ARG_OPTION_IN:
		if (whole == 4 && r->len == 4)
			strbuf_printf(b, "[%d]", (int)(uint32_t)two[0]);
		else
			quoted_put(b, r->s, r->len, whole > r->len);
		break;
	case ARG_OPTION_OUT:
		strbuf_printf(b, "[%d]", (int)(uint32_t)two[0]);
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
	case ARG_SIGSET_OUT:
		sigset_put(b, two[0]);
		break;
	case ARG_ACTION:
	case ARG_ACTION_OUT:
		action_put(b, r);
		break;
	case ARG_LIMIT:
	case ARG_LIMIT_OUT:
		limits_put(b, two);
		break;
	case ARG_STATUS:
		status_put(b, (int)two[0]);
		break;
	default:
		hex_put(b, ev->args[0]);
	}
}

/* Its two reads, and where it was written to, how long the room for a name was. */
static bool msg_arg_put(struct strbuf *b, const struct call_arg *arg, const struct trace_event *ev)
{
	const struct trace_bytes *r = &ev->read[arg->read];
	bool out = arg->kind == ARG_MSG_OUT;
	uint32_t room = 0;

	if (out && r[2].s && r[2].len >= MSG_NAME_LEN + sizeof(room))
		memcpy(&room, r[2].s + MSG_NAME_LEN, sizeof(room));
	if (!r[1].s && (!out || !r[2].s))
		return false;
	if (r[1].s) {
		msg_put(b, r, out && r[2].s ? (int64_t)room : -1,
			out ? (uint64_t)ev->ret : UINT64_MAX, arg->most);
	} else {
		strbuf_puts(b, "{msg_namelen=");
		strbuf_unsigned(b, room);
		strbuf_puts(b, "}");
	}
	return true;
}

/* A length before and after the call. */
static bool length_put(struct strbuf *b, const struct trace_bytes reads[2])
{
	uint32_t before, after;

	if (!reads[0].s || reads[0].len < 4)
		return false;
	memcpy(&before, reads[0].s, 4);
	strbuf_printf(b, "[%u", before);
	if (reads[1].s && reads[1].len >= 4) {
		memcpy(&after, reads[1].s, 4);
		if (after != before)
			strbuf_printf(b, " => %u", after);
	}
	strbuf_puts(b, "]");
	return true;
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
	if (r && (arg->kind == ARG_MSG || arg->kind == ARG_MSG_OUT) && msg_arg_put(b, arg, ev))
		return;
	if (r && arg->kind == ARG_LENGTH && length_put(b, r))
		return;
	if (r && !r->s && value && !r->unread && arg->kind == ARG_IOV && !ev->args[arg->of]) {
		strbuf_puts(b, "[]");
		return;
	}
	if (r && r->s && arg->kind == ARG_REQUEST_ARG) {
		if (request_put_arg(b, (uint32_t)ev->args[i - 1], r))
			return;
	} else if (r && r->s && arg->kind != ARG_MSG && arg->kind != ARG_MSG_OUT) {
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
	case ARG_OPTION:
		option_put(b, (uint32_t)ev->args[1], (uint32_t)value);
		break;
	case ARG_REQUEST:
		request_put(b, (uint32_t)value);
		break;
	case ARG_REQUEST_ARG:
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
		if (arg->kind == ARG_REQUEST && (value == FIOCLEX || value == FIONCLEX))
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
