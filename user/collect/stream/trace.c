#include "collect/stream/trace.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "collect/wire.h"
#include "proc/thread_gone.h"
#include "trace_abi.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 32768 /* described ones that are kept: twice those of the kernel */
enum { TAKE_MAX = 4096 };

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)
SAME(TRACE_READS, MS_TRACE_READS);
SAME(TRACE_ARGS, MS_TRACE_ARGS);
SAME(TRACE_LONG, MS_TRACE_LONG);
SAME(TRACE_SHORT, MS_TRACE_SHORT);
SAME(TRACE_CALLS, MS_TRACE_CALLS);
SAME(TRACE_STRING, MS_TRACE_STRING);
SAME(TRACE_FIXED, MS_TRACE_FIXED);
SAME(TRACE_BY_ARG, MS_TRACE_BY_ARG);
SAME(TRACE_BY_RESULT, MS_TRACE_BY_RESULT);
SAME(TRACE_BY_WORD, MS_TRACE_BY_WORD);
SAME(TRACE_STRINGS, MS_TRACE_STRINGS);
SAME(TRACE_VECTORS, MS_TRACE_VECTORS);
SAME(TRACE_MSG_VECTORS, MS_TRACE_MSG_VECTORS);
SAME(TRACE_MSG, MS_TRACE_MSG);
SAME(TRACE_IOVS, MS_TRACE_IOVS);
SAME(sizeof(struct trace_msg), sizeof(struct ms_trace_msg));

struct known_file {
	uint64_t id;
	char *name;
	UT_hash_handle hh;
};

struct trace {
	struct session *session;
	struct ring_buffer *ring;
	struct known_file *files; /* the oldest first */
	trace_fn fn;
	void *ctx;
	uint32_t left;          /* calls that may still be handed over now */
	struct event_key stack; /* of the call that is handed over */
};

/* --- files --- */

#define MAGIC_SOCKET 0x534F434B /* linux/magic.h */
#define MAGIC_PIPE   0x50495045
#define MAGIC_ANON   0x09041934

static void address_put(struct strbuf *b, uint16_t family, const uint8_t *address, uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(family, address, text, sizeof(text));
	strbuf_printf(b, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

static void socket_put(struct strbuf *b, const struct ms_trace_file_rec *f)
{
	const char *protocol = f->protocol == IPPROTO_TCP   ? "TCP"
			       : f->protocol == IPPROTO_UDP ? "UDP"
							    : NULL;

	if (f->family == AF_UNIX)
		strbuf_printf(b, "UNIX:[%llu]", (unsigned long long)f->ino);
	else if ((f->family != AF_INET && f->family != AF_INET6) || !protocol || !f->local_port)
		strbuf_printf(b, "socket:[%llu]", (unsigned long long)f->ino);
	else {
		strbuf_printf(b, "%s%s:[", protocol, f->family == AF_INET6 ? "v6" : "");
		address_put(b, f->family, f->local, f->local_port);
		if (f->remote_port) {
			strbuf_printf(b, "->");
			address_put(b, f->family, f->remote, ntohs(f->remote_port));
		}
		strbuf_printf(b, "]");
	}
}

/* The components stand in it with the last one first. */
static void path_put(struct strbuf *b, const char *path, uint32_t len)
{
	while (len) {
		uint32_t from = len - 1;

		while (from && path[from - 1])
			from--;
		strbuf_printf(b, "/%.*s", (int)(len - 1 - from), path + from);
		len = from;
	}
	if (!b->len)
		strbuf_printf(b, "/");
}

static char *file_name(const struct ms_trace_file_rec *f, uint32_t len)
{
	struct strbuf b = { 0 };
	const char *first = len ? f->path : "";

	if (f->magic == MAGIC_SOCKET)
		socket_put(&b, f);
	else if (f->magic == MAGIC_PIPE)
		strbuf_printf(&b, "pipe:[%llu]", (unsigned long long)f->ino);
	else if (f->magic == MAGIC_ANON)
		strbuf_printf(&b, "anon_inode:%.*s", (int)len, first);
	else {
		path_put(&b, f->path, len);
		if (f->deleted && len)
			strbuf_printf(&b, " (deleted)");
	}
	return b.s;
}

static int on_file(struct trace *t, const struct ms_trace_file_rec *f, size_t size)
{
	size_t head = offsetof(struct ms_trace_file_rec, path);
	struct known_file *known;

	if (size < head || f->len > size - head)
		return 0;
	HASH_FIND(hh, t->files, &f->id, sizeof(f->id), known);
	if (known)
		return 0;
	if (HASH_COUNT(t->files) >= FILES_MAX) {
		known = t->files;
		HASH_DEL(t->files, known);
		free(known->name);
		free(known);
	}
	known = hash_new(t->files, id, &f->id);
	if (!known)
		return -ENOMEM;
	known->name = file_name(f, f->len);
	return known->name ? 0 : -ENOMEM;
}

static const char *name_of(const struct trace *t, uint64_t id)
{
	struct known_file *known = NULL;

	if (id)
		HASH_FIND(hh, t->files, &id, sizeof(id), known);
	return known ? known->name : NULL;
}

/* --- calls --- */

/* `packed`: what was read stands without gaps. */
static bool event_of(const struct trace *t, const struct ms_trace_head *h, const char *data,
		     size_t size, bool packed, struct trace_event *ret_event)
{
	size_t at = 0;

	*ret_event = (struct trace_event){
		.pid = h->proc.tgid,
		.tid = h->tid,
		.nr = h->nr & ~MS_SYSCALL_COMPAT,
		.compat = h->nr & MS_SYSCALL_COMPAT,
		.returns = !(h->flags & MS_TRACE_NO_RETURN),
		.begin_ns = h->begin_ns,
		.ns = h->ns,
		.ret = h->ret,
		.file = { name_of(t, h->files[0]), name_of(t, h->files[1]) },
		.result_file = name_of(t, h->files[2]),
		.lost = h->lost,
	};
	memcpy(ret_event->args, h->args, sizeof(h->args));
	for (int i = 0; i < TRACE_READS; i++) {
		struct trace_bytes *b = &ret_event->read[i];

		b->unread = h->len[i] == MS_TRACE_UNREAD;
		if (b->unread || !h->len[i])
			continue;
		if (!packed)
			at = i < 2 ? (size_t)i * TRACE_LONG
				   : 2 * TRACE_LONG + (size_t)(i - 2) * TRACE_SHORT;
		if (at > size || h->len[i] > size - at)
			return false;
		b->s = data + at;
		b->len = h->len[i];
		at += b->len;
	}
	return true;
}

/* The stack behind what was read; cuts it off. */
static const struct event_key *stack_of(struct trace *t, const struct ms_trace_head *h,
					const char *data, size_t *size)
{
	struct ms_total_key key = { .source = MS_SYSCALLS, .proc = h->proc };
	struct ms_trace_stack stack;

	if (!(h->flags & MS_TRACE_STACK) || *size < sizeof(stack))
		return NULL;
	*size -= sizeof(stack);
	memcpy(&stack, data + *size, sizeof(stack));
	key.user = stack.user;
	key.as_gen = stack.as_gen;
	t->stack = wire_event(&key);
	return &t->stack;
}

static int on_record(void *ctx, void *data, size_t size)
{
	const struct ms_trace_head *h = data;
	const struct event_key *stack;
	struct trace_event event;
	struct trace *t = ctx;

	if (size >= 4 && h->kind == MS_TRACE_FILE)
		return on_file(t, data, size);
	if (size < sizeof(*h) || h->kind != MS_TRACE_CALL)
		return 0;
	size -= sizeof(*h);
	stack = stack_of(t, h, (const char *)(h + 1), &size);
	if (event_of(t, h, (const char *)(h + 1), size, true, &event)) {
		event.stack = stack;
		t->fn(t->ctx, &event);
	}
	return --t->left ? 0 : -EAGAIN; /* it counts as read */
}

static int write_calls(struct session *s, const struct trace_call *calls)
{
	int r = 0;

	for (uint32_t nr = 0; r == 0 && nr < TRACE_CALLS; nr++) {
		const struct trace_call *c = &calls[nr];
		struct ms_trace_call row = { .wanted = c->wanted,
					     .files = { c->files[0], c->files[1] },
					     .result_is_fd = c->result_is_fd };

		for (int i = 0; i < TRACE_READS; i++)
			row.reads[i] = (struct ms_trace_read){ .how = (uint8_t)c->reads[i].how,
							       .arg = c->reads[i].arg,
							       .of = c->reads[i].of,
							       .at_exit = c->reads[i].at_exit,
							       .size = c->reads[i].size,
							       .most = c->reads[i].most };
		r = bpf_map_update_elem(session_map_fd(s, SESSION_TRACE_CALLS), &nr, &row, BPF_ANY);
	}
	return r;
}

int trace_new(struct session *s, const struct trace_call *calls, trace_fn fn, void *ctx,
	      struct trace **ret_trace, struct err *e)
{
	_cleanup_(trace_freep) struct trace *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->session = s;
	t->fn = fn;
	t->ctx = ctx;
	r = write_calls(s, calls);
	if (r < 0)
		return err_set(e, r, "cannot say which system calls are wanted: %s", strerror(-r));
	t->ring = ring_buffer__new(session_map_fd(s, SESSION_TRACE_RING), on_record, t, NULL);
	if (!t->ring)
		return err_set(e, -errno, "cannot read the ring of system calls: %s",
			       strerror(errno));
	*ret_trace = TAKE_PTR(t);
	return 0;
}

void trace_free(struct trace *t)
{
	struct known_file *f, *next;

	if (!t)
		return;
	HASH_ITER (hh, t->files, f, next) {
		HASH_DEL(t->files, f);
		free(f->name);
		free(f);
	}
	ring_buffer__free(t->ring);
	free(t);
}

int trace_fd(const struct trace *t)
{
	return ring_buffer__epoll_fd(t->ring);
}

int trace_take(struct trace *t, bool all)
{
	int r;

	t->left = all ? UINT32_MAX : TAKE_MAX;
	r = ring_buffer__consume(t->ring);
	return r < 0 && r != -EAGAIN ? r : 0;
}

int trace_open_calls(struct trace *t, trace_fn fn, void *ctx)
{
	int fd = session_map_fd(t->session, SESSION_TRACE_NOW);
	struct ms_trace_now now;
	struct trace_event event;
	uint64_t key, next;
	int r = bpf_map_get_next_key(fd, NULL, &next);

	while (r == 0) {
		key = next;
		r = bpf_map_get_next_key(fd, &key, &next);
		if (bpf_map_lookup_elem(fd, &key, &now) < 0)
			continue;
		if (now.head.begin_ns &&
		    event_of(t, &now.head, now.data, sizeof(now.data), false, &event)) {
			event.returns = false;
			fn(ctx, &event);
		}
		if (now.head.tid && thread_is_gone((pid_t)now.head.proc.tgid, (pid_t)now.head.tid))
			bpf_map_delete_elem(fd, &key);
	}
	return r == -ENOENT ? 0 : r;
}
