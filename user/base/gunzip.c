#include "base/gunzip.h"

#include "base/cleanup.h"
#include "base/strbuf.h"

#include <zlib.h>

static void inflate_endp(z_stream **z)
{
	inflateEnd(*z);
}

/* One member: 1 at its end, 0 when it was cut. */
static int member(z_stream *z, size_t max, struct strbuf *out)
{
	char buf[32 << 10];
	int r;

	do {
		z->next_out = (Bytef *)buf;
		z->avail_out = sizeof(buf);
		r = inflate(z, Z_NO_FLUSH);
		if (r == Z_MEM_ERROR)
			return -ENOMEM;
		if (r != Z_OK && r != Z_STREAM_END)
			return r == Z_BUF_ERROR ? 0 : -EBADMSG;
		if (sizeof(buf) - z->avail_out > max - out->len)
			return -EFBIG;
		strbuf_add(out, buf, sizeof(buf) - z->avail_out);
		if (strbuf_oom(out))
			return -ENOMEM;
	} while (r != Z_STREAM_END);
	return 1;
}

int gunzip(struct bytes in, size_t max, void **ret_data, size_t *ret_len)
{
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	z_stream stream = { 0 };
	_cleanup_(inflate_endp) z_stream *z = &stream;
	int r;

	if (inflateInit2(z, 16 + 15) != Z_OK)
		return -ENOMEM;
	do {
		/* zlib counts input in 32 bits: what is larger is fed in parts. */
		do {
			if (!z->avail_in) {
				size_t n = in.len < (1u << 30) ? in.len : 1u << 30;

				if (!n)
					return -EBADMSG;
				z->next_in = (Bytef *)in.data;
				z->avail_in = (uInt)n;
				bytes_skip(&in, n);
			}
			r = member(z, max, &out);
			if (r < 0)
				return r;
		} while (!r);
		/* Give back what the member did not use; what follows it is another or padding. */
		in = bytes_of(z->next_in, in.len + z->avail_in);
		z->avail_in = 0;
		inflateReset(z);
	} while (is_gzip(in));
	*ret_len = out.len;
	*ret_data = strbuf_take(&out);
	return *ret_data ? 0 : -ENOMEM;
}

int gunzip_file(struct bytes in, const char *name, void **ret_data, size_t *ret_len, struct err *e)
{
	const size_t most = (size_t)1 << 30, least = (size_t)16 << 20, ratio = 256;
	size_t max = in.len < (most - least) / ratio ? least + in.len * ratio : most;
	int r = gunzip(in, max, ret_data, ret_len);

	if (r == -EFBIG)
		return err_set(e, r, "%s: unpacks to more than %zu bytes: refused", name, max);
	if (r == -ENOMEM)
		return err_set(e, r, "%s: out of memory while unpacking it", name);
	if (r < 0)
		return err_set(e, r, "%s: damaged gzip data", name);
	return 0;
}
