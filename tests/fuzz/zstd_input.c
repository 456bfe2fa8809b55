/*
 * Zstandard from anyone, as a stream (base/input.h) and by the library at once: what the stream reads to its end, the library has the same
 * bytes of, and what the library takes, the stream reads. They may differ where a frame asks for a window of more than 128 MiB, which the
 * stream refuses; what comes to more than 1 MiB is not compared. And the input packed, in frames, comes back as it was.
 */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_getFrameHeader() */
#include "base/input.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool as_a_stream(struct bytes in, struct strbuf *out)
{
	_cleanup_(input_freep) struct input *stream = input_of_bytes(in);
	struct bytes piece;

	while (out->len <= MOST && input_piece(stream, &piece))
		strbuf_add(out, (const char *)piece.data, piece.len);
	return input_fault(stream, NULL) == 0 && out->len <= MOST;
}

static bool asks_for_much(struct bytes in)
{
	while (in.len) {
		ZSTD_frameHeader h = { 0 };
		size_t len = ZSTD_findFrameCompressedSize(in.data, in.len);

		if (ZSTD_isError(len) || ZSTD_getFrameHeader(&h, in.data, in.len) != 0)
			return false;
		if (h.windowSize > 1ull << 27)
			return true;
		bytes_skip(&in, len);
	}
	return false;
}

static void read_by_both(struct bytes in)
{
	_cleanup_(strbuf_free) struct strbuf stream = { 0 };
	static char whole[MOST];
	size_t len = ZSTD_decompress(whole, sizeof(whole), in.data, in.len);
	bool flows = as_a_stream(in, &stream);

	if (flows &&
	    (ZSTD_isError(len) || len != stream.len || (len && memcmp(whole, stream.s, len) != 0)))
		abort();
	if (!flows && !ZSTD_isError(len) && stream.len <= MOST && !asks_for_much(in))
		abort();
}

static void pack(struct bytes in, size_t frame, struct strbuf *out)
{
	do {
		char buf[ZSTD_COMPRESSBOUND(4096)];
		struct bytes part;
		size_t n;

		bytes_take(&in, in.len < frame ? in.len : frame, &part);
		n = ZSTD_compress(buf, sizeof(buf), part.data, part.len, 1);
		if (ZSTD_isError(n))
			abort();
		strbuf_add(out, buf, n);
	} while (in.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(strbuf_free) struct strbuf packed = { 0 }, out = { 0 };

	if (size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0)
		read_by_both(bytes_of(data, size));
	if (!size)
		return 0;
	pack(bytes_of(data, size), 64 + data[0] * 8u, &packed);
	if (!as_a_stream(bytes_of(packed.s, packed.len), &out) || out.len != size ||
	    memcmp(out.s, data, size) != 0)
		abort();
	return 0;
}
