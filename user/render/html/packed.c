#include "render/html/packed.h"

#include "render/formats/text.h"

#include <errno.h>
#include <zlib.h>

/* No function of a real program is called so; what is longer is cut, and ends in an ellipsis. */
#define NAME_COLUMNS 4000

void packed_number(struct strbuf *out, uint64_t n)
{
	uint8_t bytes[10];
	size_t len = 0;

	do {
		bytes[len++] = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
		n >>= 7;
	} while (n);
	strbuf_add(out, bytes, len);
}

void packed_signed(struct strbuf *out, int64_t n)
{
	packed_number(out, (uint64_t)n << 1 ^ (uint64_t)(n < 0 ? -1 : 0));
}

void packed_name(struct strbuf *out, const char *name)
{
	_cleanup_(strbuf_free) struct strbuf clean = { 0 };

	text_add(&clean, TEXT_PLAIN, name, NAME_COLUMNS);
	packed_number(out, clean.len);
	strbuf_add(out, clean.s ? clean.s : "", clean.len);
	out->oom |= clean.oom;
}

int packed_deflate(const void *data, size_t len, struct strbuf *out)
{
	z_stream z = { .next_in = (Bytef *)data };
	uint8_t buf[65536];
	int r;

	if (deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		if (!z.avail_in && len) {
			z.avail_in = len < 1 << 30 ? (uInt)len : 1 << 30;
			len -= z.avail_in;
		}
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		r = deflate(&z, len ? Z_NO_FLUSH : Z_FINISH);
		strbuf_add(out, buf, sizeof(buf) - z.avail_out);
	} while (r == Z_OK || (r == Z_BUF_ERROR && len));
	deflateEnd(&z);
	return r == Z_STREAM_END && !strbuf_oom(out) ? 0 : -ENOMEM;
}

void packed_base64(const void *data, size_t len, struct strbuf *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *in = data;
	char line[4 * 1024];

	while (len) {
		size_t n = 0;

		while (len && n < sizeof(line)) {
			size_t take = len < 3 ? len : 3;
			uint32_t bits = (uint32_t)in[0] << 16 |
					(take > 1 ? (uint32_t)in[1] << 8 : 0) |
					(take > 2 ? in[2] : 0);

			line[n++] = digits[bits >> 18];
			line[n++] = digits[bits >> 12 & 63];
			line[n++] = take > 1 ? digits[bits >> 6 & 63] : '=';
			line[n++] = take > 2 ? digits[bits & 63] : '=';
			in += take;
			len -= take;
		}
		strbuf_add(out, line, n);
	}
}
