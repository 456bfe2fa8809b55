#include "elf/inflate.h"

#include "base/bytes.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum {
	PIECE_BYTES = 64 << 10,
	ZSTD_WINDOW_LOG = 24, /* 16 MiB; level 3, which binutils and LLVM use, has 2 */
	XZ_MEMORY_MAX = 64 << 20,
	/*
	 * No DEFLATE stream is 1,032 times as long unpacked, no zstd block more than 128 KiB of
	 * its few bytes: a claim beyond is a lie that need not be paid for.
	 */
	ZLIB_RATIO_MAX = 1040,
	ZSTD_RATIO_MAX = 1 << 15,
};

/* How a section is packed; what the headers at its start say. */
struct packing {
	uint32_t type; /* ELFCOMPRESS_…, 0: none     */
	uint64_t size; /* unpacked                   */
	uint64_t head; /* bytes before the stream    */
};

static bool is_zdebug(const struct elf_section *sec)
{
	return !strncmp(sec->name, ".zdebug", 7);
}

bool elf_section_is_packed(const struct elf_section *sec)
{
	return (sec->flags & SHF_COMPRESSED) || is_zdebug(sec);
}

static int read_packing(const struct elf_file *elf, const struct elf_section *sec,
			struct packing *ret, struct err *e)
{
	uint8_t head[sizeof(Elf64_Chdr)];
	size_t len = elf_file_is64(elf) ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
	uint64_t ratio;

	*ret = (struct packing){ .size = sec->size };
	if (!elf_section_is_packed(sec))
		return 0;
	if (!(sec->flags & SHF_COMPRESSED))
		len = 12;
	if (sec->type == SHT_NOBITS || sec->size < len)
		return err_set(e, -EBADMSG, "%s: section %s: no compression header",
			       elf_file_name(elf), sec->name);
	if (elf_file_read(elf, sec->off, head, len, e) < 0)
		return -ENODATA;
	ret->head = len;
	if (!(sec->flags & SHF_COMPRESSED)) {
		uint64_t size;

		/* Some linkers left sections that did not shrink as they were. */
		if (memcmp(head, "ZLIB", 4) != 0) {
			ret->head = 0;
			return 0;
		}
		memcpy(&size, head + 4, sizeof(size));
		ret->type = ELFCOMPRESS_ZLIB;
		ret->size = be64toh(size);
	} else if (elf_file_is64(elf)) {
		Elf64_Chdr c;

		memcpy(&c, head, sizeof(c));
		ret->type = c.ch_type;
		ret->size = c.ch_size;
	} else {
		Elf32_Chdr c;

		memcpy(&c, head, sizeof(c));
		ret->type = c.ch_type;
		ret->size = c.ch_size;
	}
	if (ret->type != ELFCOMPRESS_ZLIB && ret->type != ELFCOMPRESS_ZSTD)
		return err_set(e, -EOPNOTSUPP, "%s: section %s: compression type %u",
			       elf_file_name(elf), sec->name, ret->type);
	ratio = ret->type == ELFCOMPRESS_ZLIB ? ZLIB_RATIO_MAX : ZSTD_RATIO_MAX;
	if (ret->size / ratio > sec->size)
		return err_set(e, -EBADMSG,
			       "%s: section %s: %" PRIu64 " bytes cannot come out of %" PRIu64,
			       elf_file_name(elf), sec->name, ret->size, sec->size);
	return 0;
}

int elf_section_unpacked_size(const struct elf_file *elf, const struct elf_section *sec,
			      uint64_t *ret_len, struct err *e)
{
	struct packing p;
	int r = read_packing(elf, sec, &p, e);

	if (r == 0)
		*ret_len = p.size;
	return r;
}

/* A section's bytes as they lie in the file, a piece at a time, and where they go. */
struct stream {
	const struct elf_file *elf;
	uint64_t off, left; /* of what is still to be read */
	uint64_t out_left;  /* of what may still come out   */
	unpack_put put;
	void *ctx;
	struct err *e;
	uint8_t in[PIECE_BYTES], out[PIECE_BYTES];
};

static void stream_freep(struct stream **s)
{
	free(*s);
}

/* The next piece: how many bytes, 0 at the end, or -errno. */
static int64_t next_piece(struct stream *s)
{
	uint64_t n = s->left < PIECE_BYTES ? s->left : PIECE_BYTES;
	int r = n ? elf_file_read(s->elf, s->off, s->in, n, s->e) : 0;

	if (r < 0)
		return r;
	s->off += n;
	s->left -= n;
	return (int64_t)n;
}

/* -EBADMSG: more than was promised. */
static int put_out(struct stream *s, const void *bytes, uint64_t n)
{
	if (n > s->out_left)
		return -EBADMSG;
	s->out_left -= n;
	return n ? s->put(s->ctx, bytes, n) : 0;
}

static int copy_all(struct stream *s)
{
	int64_t n;

	while ((n = next_piece(s)) > 0) {
		int r = put_out(s, s->in, (uint64_t)n);

		if (r < 0)
			return r;
	}
	return (int)n;
}

static void inflate_endp(z_stream *z)
{
	inflateEnd(z);
}

static int zlib_all(struct stream *s)
{
	_cleanup_(inflate_endp) z_stream z = { 0 };
	bool more_to_come = false; /* the last piece of output was full */
	int zr = Z_OK, r = 0;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (zr == Z_OK && r == 0) {
		if (!z.avail_in && !more_to_come) {
			int64_t n = next_piece(s);

			if (n <= 0)
				return n < 0 ? (int)n : -EBADMSG;
			z.next_in = s->in;
			z.avail_in = (uInt)n;
		}
		z.next_out = s->out;
		z.avail_out = PIECE_BYTES;
		zr = inflate(&z, Z_NO_FLUSH);
		more_to_come = !z.avail_out;
		/* It wanted input: no error. */
		if (zr == Z_BUF_ERROR)
			zr = Z_OK;
		if (zr == Z_OK || zr == Z_STREAM_END)
			r = put_out(s, s->out, PIECE_BYTES - z.avail_out);
	}
	if (r < 0)
		return r;
	return zr == Z_STREAM_END ? 0 : zr == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static void zstd_freep(ZSTD_DCtx **z)
{
	ZSTD_freeDCtx(*z);
}

static int zstd_all(struct stream *s)
{
	_cleanup_(zstd_freep) ZSTD_DCtx *z = ZSTD_createDCtx();
	ZSTD_inBuffer in = { s->in, 0, 0 };
	size_t zr = 1;
	int r = 0;

	if (!z || ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
		return -ENOMEM;
	/* A frame ends at 0; another may follow it. */
	while (r == 0) {
		ZSTD_outBuffer out = { s->out, PIECE_BYTES, 0 };

		if (in.pos == in.size) {
			int64_t n = next_piece(s);

			if (n <= 0)
				return n < 0 ? (int)n : zr ? -EBADMSG : 0;
			in.size = (size_t)n;
			in.pos = 0;
		}
		do {
			out.pos = 0;
			zr = ZSTD_decompressStream(z, &out, &in);
			if (ZSTD_isError(zr))
				return -EBADMSG;
			r = put_out(s, s->out, out.pos);
		} while (r == 0 && out.pos == PIECE_BYTES);
	}
	return r;
}

int elf_section_unpack_by(const struct elf_file *elf, const struct elf_section *sec, uint64_t len,
			  unpack_put put, void *ctx, struct err *e)
{
	_cleanup_(stream_freep) struct stream *s = NULL;
	struct packing p;
	int r;

	r = read_packing(elf, sec, &p, e);
	if (r < 0)
		return r;
	if (p.size != len || sec->type == SHT_NOBITS)
		return err_set(e, -ENODATA, "%s: section %s changed, or has no bytes",
			       elf_file_name(elf), sec->name);
	s = malloc(sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "%s: section %s: out of memory", elf_file_name(elf),
			       sec->name);
	s->elf = elf;
	s->off = sec->off + p.head;
	s->left = sec->size - p.head;
	s->out_left = len;
	s->put = put;
	s->ctx = ctx;
	s->e = e;
	r = !p.type ? copy_all(s) : p.type == ELFCOMPRESS_ZSTD ? zstd_all(s) : zlib_all(s);
	if (r == -EBADMSG || (r == 0 && s->out_left))
		return err_set(e, -EBADMSG, "%s: section %s does not unpack to %" PRIu64 " bytes",
			       elf_file_name(elf), sec->name, len);
	return r;
}

static int put_after(void *ctx, const void *bytes, size_t n)
{
	uint8_t **at = ctx;

	memcpy(*at, bytes, n);
	*at += n;
	return 0;
}

int elf_section_unpack(const struct elf_file *elf, const struct elf_section *sec, uint64_t max,
		       uint8_t **ret_bytes, uint64_t *ret_len, struct err *e)
{
	_cleanup_(freep) uint8_t *out = NULL;
	uint64_t len = 0;
	uint8_t *at;
	int r;

	r = elf_section_unpacked_size(elf, sec, &len, e);
	if (r < 0)
		return r;
	if (len > max || (!elf_section_is_packed(sec) && len > elf_file_size(elf)))
		return err_set(e, -EFBIG, "%s: section %s: %" PRIu64 " bytes, more than are read",
			       elf_file_name(elf), sec->name, len);
	out = malloc(len + 1);
	if (!out)
		return err_set(e, -ENOMEM, "%s: section %s: out of memory", elf_file_name(elf),
			       sec->name);
	at = out;
	r = elf_section_unpack_by(elf, sec, len, put_after, &at, e);
	if (r < 0)
		return r;
	*at = '\0';
	*ret_bytes = TAKE_PTR(out);
	*ret_len = len;
	return 0;
}

int elf_inflate_section(struct elf_file *elf, const struct elf_section *sec, uint8_t **ret_bytes,
			size_t *ret_len, struct err *e)
{
	uint64_t len;
	int r = elf_section_unpack(elf, sec, ELF_SECTION_BYTES_MAX, ret_bytes, &len, e);

	if (r == 0)
		*ret_len = len;
	return r;
}

/* Doubles the buffer up to `max`. */
static int xz_grow(lzma_stream *z, uint8_t **out, uint64_t *cap, uint64_t max)
{
	uint64_t used = *cap - z->avail_out, want = *cap ? *cap * 2 : 1 << 16;
	uint8_t *grown;

	if (*cap == max)
		return -EFBIG;
	if (want > max)
		want = max;
	grown = realloc(*out, want + 1);
	if (!grown)
		return -ENOMEM;
	*out = grown;
	*cap = want;
	z->next_out = grown + used;
	z->avail_out = want - used;
	return 0;
}

static void lzma_endp(lzma_stream *z)
{
	lzma_end(z);
}

int xz_unpack(const uint8_t *data, size_t len, uint64_t max, const char *name, uint8_t **ret_bytes,
	      uint64_t *ret_len, struct err *e)
{
	_cleanup_(lzma_endp) lzma_stream z = LZMA_STREAM_INIT;
	_cleanup_(freep) uint8_t *out = NULL;
	uint64_t cap = 0;
	lzma_ret lr = LZMA_OK;
	int r;

	if (lzma_stream_decoder(&z, XZ_MEMORY_MAX, 0) != LZMA_OK)
		return err_set(e, -ENOMEM, "%s: out of memory for xz", name);
	z.next_in = data;
	z.avail_in = len;
	while (lr == LZMA_OK) {
		if (!z.avail_out) {
			r = xz_grow(&z, &out, &cap, max);
			if (r < 0)
				return err_set(e, r,
					       "%s: xz data unpacks to more than %" PRIu64
					       " bytes, or out of memory",
					       name, max);
		}
		lr = lzma_code(&z, LZMA_FINISH);
	}
	if (lr == LZMA_MEMLIMIT_ERROR)
		return err_set(e, -EFBIG, "%s: xz data needs more than %d MiB to unpack", name,
			       XZ_MEMORY_MAX >> 20);
	if (lr != LZMA_STREAM_END)
		return err_set(e, -EBADMSG, "%s: damaged xz data", name);
	*ret_len = cap - z.avail_out;
	out[*ret_len] = '\0';
	*ret_bytes = TAKE_PTR(out);
	return 0;
}
