#include "base/sink.h"

#include "base/new_file.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { BUF_BYTES = 64 << 10 };

struct sink {
	char *path;  /* as the user named it, for sentences                  */
	int fd;      /* -1: into `memory`                                    */
	bool own_fd; /* written in place                                    */
	bool is_new; /* `file` has the descriptor                           */
	struct new_file file;
	struct strbuf memory;
	bool gzip, ended;
	z_stream z;
	int error; /* the first -errno                                     */
	size_t fill;
	char buf[BUF_BYTES];  /* written, not yet compressed or flushed       */
	char zbuf[BUF_BYTES]; /* compressed, not yet flushed                  */
};

static int oom(struct err *e, const char *path)
{
	return err_set(e, -ENOMEM, "%s: out of memory", path);
}

static int sink_new(const char *path, struct sink **ret_sink, struct err *e)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (s)
		s->path = strdup(path);
	if (!s || !s->path) {
		free(s);
		return oom(e, path);
	}
	s->fd = -1;
	*ret_sink = s;
	return 0;
}

/* True for names that stand for something already open, where a rename would replace the name. */
static bool names_a_descriptor(const char *path)
{
	return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

static int open_in_place(struct sink *s, const struct stat *st, struct err *e)
{
	int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | (S_ISREG(st->st_mode) ? O_TRUNC : 0);

	s->fd = open(s->path, flags);
	if (s->fd < 0)
		return err_set(e, -errno, "%s: cannot be written: %m", s->path);
	s->own_fd = true;
	return 0;
}

static int open_new(struct sink *s, struct err *e)
{
	int r = new_file_open(s->path, &s->file, NULL);

	if (r < 0)
		return err_set(e, r, "%s: cannot be created: %s", s->path, strerror(-r));
	s->fd = s->file.fd;
	s->is_new = true;
	return 0;
}

int sink_open_file(const char *path, struct sink **ret_sink, struct err *e)
{
	_cleanup_(sink_closep) struct sink *s = NULL;
	struct stat st;
	int r;

	r = sink_new(strcmp(path, "-") ? path : "standard output", &s, e);
	if (r < 0)
		return r;
	if (!strcmp(path, "-"))
		s->fd = STDOUT_FILENO;
	else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		r = err_set(e, -EISDIR, "%s: is a directory, not a file to write to", path);
	else if (stat(path, &st) == 0 && (!S_ISREG(st.st_mode) || names_a_descriptor(path)))
		r = open_in_place(s, &st, e);
	else
		r = open_new(s, e);
	if (r < 0)
		return r;
	*ret_sink = TAKE_PTR(s);
	return 0;
}

int sink_open_new(const char *path, struct sink **ret_sink, struct err *e)
{
	_cleanup_(sink_closep) struct sink *s = NULL;
	int r = sink_new(path, &s, e);

	if (r == 0)
		r = open_new(s, e);
	if (r < 0)
		return r;
	*ret_sink = TAKE_PTR(s);
	return 0;
}

int sink_open_memory(struct sink **ret_sink, struct err *e)
{
	return sink_new("memory", ret_sink, e);
}

int sink_gzip(struct sink *s, struct err *e)
{
	/* 16 + 15: a gzip wrapper, the largest window. */
	if (deflateInit2(&s->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + 15, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return oom(e, s->path);
	s->gzip = true;
	return 0;
}

static void put_fd(struct sink *s, const char *data, size_t len)
{
	while (len && !s->error) {
		ssize_t n = write(s->fd, data, len);

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			/* Standard output may be somebody's non-blocking pipe. */
			struct pollfd pfd = { .fd = s->fd, .events = POLLOUT };

			poll(&pfd, 1, -1);
		} else if (errno != EINTR) {
			s->error = -errno;
		}
	}
}

static void put_raw(struct sink *s, const char *data, size_t len)
{
	if (s->fd >= 0) {
		put_fd(s, data, len);
		return;
	}
	strbuf_add(&s->memory, data, len);
	if (strbuf_oom(&s->memory))
		s->error = -ENOMEM;
}

static void put_gzip(struct sink *s, const char *data, size_t len, int flush)
{
	int r;

	s->z.next_in = (Bytef *)data;
	s->z.avail_in = (uInt)len;
	do {
		s->z.next_out = (Bytef *)s->zbuf;
		s->z.avail_out = sizeof(s->zbuf);
		r = deflate(&s->z, flush);
		put_raw(s, s->zbuf, sizeof(s->zbuf) - s->z.avail_out);
	} while (!s->error && (flush == Z_FINISH ? r != Z_STREAM_END : s->z.avail_out == 0));
}

static void flush_buf(struct sink *s)
{
	if (s->gzip)
		put_gzip(s, s->buf, s->fill, Z_NO_FLUSH);
	else
		put_raw(s, s->buf, s->fill);
	s->fill = 0;
}

void sink_write(struct sink *s, const void *data, size_t len)
{
	const char *p = data;

	while (len && !s->error) {
		size_t n = sizeof(s->buf) - s->fill;

		if (n > len)
			n = len;
		memcpy(s->buf + s->fill, p, n);
		s->fill += n;
		p += n;
		len -= n;
		if (s->fill == sizeof(s->buf))
			flush_buf(s);
	}
}

void sink_puts(struct sink *s, const char *str)
{
	sink_write(s, str, strlen(str));
}

void sink_printf(struct sink *s, const char *fmt, ...)
{
	_cleanup_(freep) char *big = NULL;
	char small[512];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len < sizeof(small)) {
		sink_write(s, small, (size_t)len);
		return;
	}
	va_start(ap, fmt);
	len = vasprintf(&big, fmt, ap);
	va_end(ap);
	if (len < 0) {
		big = NULL;
		s->error = s->error ? s->error : -ENOMEM;
		return;
	}
	sink_write(s, big, (size_t)len);
}

static void end_stream(struct sink *s)
{
	if (s->ended)
		return;
	s->ended = true;
	flush_buf(s);
	if (s->gzip)
		put_gzip(s, NULL, 0, Z_FINISH);
	strbuf_add(&s->memory, "", 0);
	if (strbuf_oom(&s->memory) && !s->error)
		s->error = -ENOMEM;
}

/* What is left of the disk or the quota may only be known now. */
static void put_in_place(struct sink *s)
{
	if (s->is_new && !s->error)
		s->error = new_file_commit(&s->file, NULL);
	if (s->own_fd && close(s->fd) < 0 && !s->error && errno != EINTR)
		s->error = -errno;
	if (s->own_fd)
		s->fd = -1;
	s->own_fd = false;
}

int sink_commit(struct sink *s, struct err *e)
{
	end_stream(s);
	put_in_place(s);
	if (s->error)
		return err_set(e, s->error, "%s: %s; it was not written", s->path,
			       strerror(-s->error));
	return 0;
}

const char *sink_memory(struct sink *s, size_t *ret_len)
{
	end_stream(s);
	*ret_len = s->memory.len;
	return s->memory.s ? s->memory.s : "";
}

void sink_close(struct sink *s)
{
	if (!s)
		return;
	if (s->own_fd)
		close(s->fd);
	new_file_close(&s->file);
	if (s->gzip)
		deflateEnd(&s->z);
	strbuf_free(&s->memory);
	free(s->path);
	free(s);
}
