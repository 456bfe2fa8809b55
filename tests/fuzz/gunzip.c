/*
 * Gzip from anyone, read by gunzip(), as a stream (base/input.h), and by zlib's own reader of files (gzread): what gunzip() takes, both
 * others have the same bytes of; what it refuses as damaged, neither of them reads to a good end. They may differ so:
 *
 *   no gzip      gzread and the stream hand on what does not begin as one, and gunzip() refuses it: not asked
 *   behind it    what follows the last member and is none is left out by all of them; where it is one byte, 0x1f, it is none
 *
 * And the input packed, in members and at levels that its first byte says, comes back as it was.
 */
#include "base/gunzip.h"
#include "base/cleanup.h"
#include "base/input.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1: it ends well. */
static bool by_zlib(struct bytes in, struct strbuf *out)
{
	static char buf[1 << 16];
	static int fd = -1;
	gzFile f;
	int n, code = Z_OK;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, in.data, in.len, 0) != (ssize_t)in.len)
		abort();
	lseek(fd, 0, SEEK_SET);
	f = gzdopen(dup(fd), "rb");
	if (!f)
		abort();
	while (out->len <= MOST && (n = gzread(f, buf, sizeof(buf))) > 0)
		strbuf_add(out, buf, (size_t)n);
	gzerror(f, &code);
	/* Of a file that ends within a member, gzclose() says so. */
	return gzclose(f) == Z_OK && code == Z_OK;
}

static bool as_a_stream(struct bytes in, struct strbuf *out)
{
	_cleanup_(input_freep) struct input *stream = input_of_bytes(in);
	struct bytes piece;

	while (out->len <= MOST && input_piece(stream, &piece))
		strbuf_add(out, (const char *)piece.data, piece.len);
	return input_fault(stream, NULL) == 0;
}

static bool is_same(const struct strbuf *text, const void *bytes, size_t len)
{
	return text->len == len && (!len || memcmp(text->s, bytes, len) == 0);
}

static void read_by_all(struct bytes in)
{
	_cleanup_(strbuf_free) struct strbuf zlib = { 0 }, stream = { 0 };
	_cleanup_(freep) void *out = NULL;
	bool ends, flows;
	size_t len = 0;
	int r = gunzip(in, MOST, &out, &len);

	if ((r == 0) != (out != NULL) || len > MOST)
		abort();
	if (!is_gzip(in) || r == -EFBIG)
		return;
	ends = by_zlib(in, &zlib);
	flows = as_a_stream(in, &stream);
	if (r == 0 && (!ends || !flows || !is_same(&zlib, out, len) || !is_same(&stream, out, len)))
		abort();
	if (r < 0 && (ends || flows) && zlib.len <= MOST)
		abort();
}

static void pack(struct bytes in, int level, size_t member, struct strbuf *out)
{
	do {
		struct bytes part;
		uint8_t buf[4096];
		z_stream z = { 0 };
		int r;

		bytes_take(&in, in.len < member ? in.len : member, &part);
		if (deflateInit2(&z, level, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
			abort();
		z.next_in = (Bytef *)part.data;
		z.avail_in = (uInt)part.len;
		do {
			z.next_out = buf;
			z.avail_out = sizeof(buf);
			r = deflate(&z, Z_FINISH);
			strbuf_add(out, (char *)buf, sizeof(buf) - z.avail_out);
		} while (r == Z_OK || r == Z_BUF_ERROR);
		deflateEnd(&z);
	} while (in.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(strbuf_free) struct strbuf packed = { 0 };
	_cleanup_(freep) void *out = NULL;
	size_t len;

	read_by_all(bytes_of(data, size));
	if (!size)
		return 0;
	pack(bytes_of(data, size), data[0] % 10, 64 + data[0] * 8u, &packed);
	if (gunzip(bytes_of(packed.s, packed.len), size, &out, &len) < 0 || len != size ||
	    memcmp(out, data, size) != 0)
		abort();
	return 0;
}
