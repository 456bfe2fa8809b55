#include "base/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { PIECE = 64 << 10 };

enum packing { PLAIN, GZIP, ZSTD };

struct input {
	/* As it is in the file: [raw.data, raw.data + raw.len) is still to be unpacked. */
	int fd; /* of no use where all of it is in `raw` (raw_buf is NULL) */
	uint8_t *raw_buf;
	struct bytes raw;
	bool raw_ended;
	uint64_t raw_bytes; /* read so far */
	enum packing packing;
	z_stream z;
	bool z_begun, member_ended;
	ZSTD_DStream *zstd;
	/* Unpacked: [at, end) of `data` is still to be taken. `own` is what is written to, NULL: borrowed. */
	const uint8_t *data;
	uint8_t *own;
	size_t at, end, cap;
	bool ended;
	uint64_t lines, taken;
	bool whole;
	int fault;
	char what[128];
};

static int fail(struct input *in, int r, const char *what)
{
	in->fault = r;
	in->ended = true;
	if (r == -EBADMSG)
		snprintf(in->what, sizeof(in->what), "%s after %" PRIu64 " bytes of the file", what,
			 in->raw_bytes - in->raw.len);
	else
		snprintf(in->what, sizeof(in->what), "%s", what);
	return r;
}

/* --- the file as it is --- */

/* More of the file, behind what is there of it. False: it has ended, or cannot be read. */
static bool more_raw(struct input *in)
{
	ssize_t n;

	if (in->raw_ended || in->fault)
		return false;
	if (in->raw.len)
		memmove(in->raw_buf, in->raw.data, in->raw.len);
	do {
		n = read(in->fd, in->raw_buf + in->raw.len, PIECE - in->raw.len);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		char what[100];
		int code = -errno;

		snprintf(what, sizeof(what), "cannot be read: %s", strerror(errno));
		fail(in, code, what);
	}
	if (n <= 0) {
		in->raw_ended = true;
		in->raw.data = in->raw_buf;
		return false;
	}
	in->raw = bytes_of(in->raw_buf, in->raw.len + (size_t)n);
	in->raw_bytes += (uint64_t)n;
	return true;
}

static bool begins(struct bytes b, const char *magic, size_t n)
{
	return b.len >= n && memcmp(b.data, magic, n) == 0;
}

static bool raw_begins(struct input *in, const char *magic, size_t n)
{
	while (in->raw.len < n && more_raw(in))
		;
	return begins(in->raw, magic, n);
}

static int begin(struct input *in)
{
	if (raw_begins(in, "\x1f\x8b", 2)) {
		in->packing = GZIP;
		if (inflateInit2(&in->z, 16 + 15) != Z_OK)
			return -ENOMEM;
		in->z_begun = true;
	} else if (raw_begins(in, "\x28\xb5\x2f\xfd", 4)) {
		in->packing = ZSTD;
		in->zstd = ZSTD_createDStream();
		if (!in->zstd)
			return -ENOMEM;
	} else if (!in->raw_buf) {
		in->data = in->raw.data;
		in->end = in->raw.len;
		in->raw.len = 0;
		in->ended = true;
		return 0;
	}
	in->own = malloc(PIECE);
	in->cap = PIECE;
	in->data = in->own;
	return in->own ? 0 : -ENOMEM;
}

static struct input *open_input(struct bytes raw, int fd, bool of_file)
{
	struct input *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->fd = fd;
	in->raw = raw;
	in->raw_bytes = raw.len;
	in->raw_ended = !of_file;
	in->raw_buf = of_file ? malloc(PIECE) : NULL;
	if ((of_file && !in->raw_buf) || begin(in) < 0) {
		input_free(in);
		return NULL;
	}
	return in;
}

struct input *input_of_bytes(struct bytes data)
{
	return open_input(data, -1, false);
}

struct input *input_of_fd(int fd)
{
	return open_input((struct bytes){ 0 }, fd, true);
}

void input_free(struct input *in)
{
	if (!in)
		return;
	if (in->z_begun)
		inflateEnd(&in->z);
	ZSTD_freeDStream(in->zstd);
	free(in->raw_buf);
	free(in->own);
	free(in);
}

/* --- unpacked --- */

/* Each adds some bytes at the end of `own`, where there is room; true also when it is none yet. False: the end. */
static bool add_plain(struct input *in)
{
	size_t n;

	if (!in->raw.len && !more_raw(in))
		return false;
	n = in->raw.len < in->cap - in->end ? in->raw.len : in->cap - in->end;
	bytes_copy(&in->raw, in->own + in->end, n);
	in->end += n;
	return true;
}

static bool add_gzip(struct input *in)
{
	size_t room = in->cap - in->end;
	size_t given;
	int r;

	/* Behind a member is another one, or padding. */
	if (in->member_ended) {
		if (!raw_begins(in, "\x1f\x8b", 2))
			return false;
		inflateReset(&in->z);
		in->member_ended = false;
		return true;
	}
	if (!in->raw.len)
		more_raw(in);
	given = in->raw.len < 1u << 30 ? in->raw.len : 1u << 30;
	in->z.next_in = (Bytef *)in->raw.data;
	in->z.avail_in = (uInt)given;
	in->z.next_out = in->own + in->end;
	in->z.avail_out = (uInt)room;
	r = inflate(&in->z, Z_NO_FLUSH);
	bytes_skip(&in->raw, given - in->z.avail_in);
	in->end += room - in->z.avail_out;
	in->member_ended = r == Z_STREAM_END;
	if (r == Z_BUF_ERROR && !in->fault)
		fail(in, -EBADMSG, "truncated gzip data");
	else if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		fail(in, r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG,
		     r == Z_MEM_ERROR ? "out of memory" : "damaged gzip data");
	return !in->fault;
}

static bool add_zstd(struct input *in)
{
	ZSTD_outBuffer to = { in->own, in->cap, in->end };
	ZSTD_inBuffer from;
	size_t r;

	if (!in->raw.len && !more_raw(in) && in->member_ended)
		return false;
	from = (ZSTD_inBuffer){ in->raw.data, in->raw.len, 0 };
	r = ZSTD_decompressStream(in->zstd, &to, &from);
	bytes_skip(&in->raw, from.pos);
	in->member_ended = r == 0;
	if (ZSTD_isError(r))
		fail(in, -EBADMSG, "damaged zstd data");
	else if (to.pos == in->end && !from.size && !in->member_ended && !in->fault)
		fail(in, -EBADMSG, "truncated zstd data");
	in->end = to.pos;
	return !in->fault;
}

/* At least one more byte behind those there are. False: the end. */
static bool more(struct input *in)
{
	size_t had = in->end - in->at;

	if (in->ended)
		return false;
	if (in->at) {
		memmove(in->own, in->own + in->at, had);
		in->at = 0;
		in->end = had;
	}
	if (in->end == in->cap) {
		uint8_t *grown = in->cap < INPUT_LINE_MAX ? realloc(in->own, in->cap * 2) : NULL;

		if (!grown) {
			fail(in, in->cap < INPUT_LINE_MAX ? -ENOMEM : -EFBIG,
			     in->cap < INPUT_LINE_MAX ? "out of memory"
						      : "a line is longer than any of a profile");
			return false;
		}
		in->data = in->own = grown;
		in->cap *= 2;
	}
	while (in->end == had) {
		if (!(in->packing == GZIP   ? add_gzip(in)
		      : in->packing == ZSTD ? add_zstd(in)
					    : add_plain(in))) {
			in->ended = true;
			return in->end > had;
		}
	}
	return true;
}

struct bytes input_peek(struct input *in, size_t n)
{
	while (in->end - in->at < n && more(in))
		;
	return bytes_of(in->data + in->at, in->end - in->at < n ? in->end - in->at : n);
}

bool input_line(struct input *in, struct bytes *ret_line)
{
	size_t seen = 0, len;
	const uint8_t *newline;

	for (;;) {
		const uint8_t *from = in->data + in->at;

		len = in->end - in->at;
		newline = len > seen ? memchr(from + seen, '\n', len - seen) : NULL;
		if (newline)
			break;
		seen = len;
		if (!more(in))
			break;
	}
	/* Of a line that is not whole because of a fault nobody knows what is missing. */
	if (!newline && (!len || in->fault))
		return false;
	in->whole = newline != NULL;
	if (newline)
		len = (size_t)(newline - in->data) - in->at;
	*ret_line = bytes_of(in->data + in->at, len);
	in->at += len + in->whole;
	in->taken += len + in->whole;
	in->lines++;
	if (ret_line->len && ret_line->data[ret_line->len - 1] == '\r')
		ret_line->len--;
	return true;
}

bool input_piece(struct input *in, struct bytes *ret_piece)
{
	if (in->at == in->end && !more(in))
		return false;
	*ret_piece = bytes_of(in->data + in->at, in->end - in->at);
	in->taken += ret_piece->len;
	in->at = in->end;
	return true;
}

uint64_t input_n_lines(const struct input *in)
{
	return in->lines;
}

uint64_t input_offset(const struct input *in)
{
	return in->taken;
}

bool input_line_whole(const struct input *in)
{
	return in->whole;
}

bool input_is_packed(const struct input *in)
{
	return in->packing != PLAIN;
}

uint64_t input_read_bytes(const struct input *in)
{
	return in->raw_bytes;
}

int input_fault(const struct input *in, const char **ret_what)
{
	if (ret_what)
		*ret_what = in->fault ? in->what : NULL;
	return in->fault;
}
