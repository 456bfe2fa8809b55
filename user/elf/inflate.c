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
	PACKED_BYTES_MAX = 1 << 30,
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

static bool zlib_all(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
	z_stream z = { .next_in = (Bytef *)in };
	bool good = false;
	int r = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return false;
	z.next_out = out;
	while (r == Z_OK) {
		size_t in_left = in_len - (size_t)(z.next_in - in);
		size_t out_left = out_len - (size_t)(z.next_out - out);

		z.avail_in = in_left < UINT32_MAX ? (uInt)in_left : UINT32_MAX;
		z.avail_out = out_left < UINT32_MAX ? (uInt)out_left : UINT32_MAX;
		r = inflate(&z, Z_NO_FLUSH);
		if (r == Z_OK && !in_left)
			break;
	}
	good = r == Z_STREAM_END && (size_t)(z.next_out - out) == out_len;
	inflateEnd(&z);
	return good;
}

static bool zstd_all(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
	size_t n = ZSTD_decompress(out, out_len, in, in_len);

	return !ZSTD_isError(n) && n == out_len;
}

int elf_section_unpack_to(const struct elf_file *elf, const struct elf_section *sec, uint8_t *out,
			  uint64_t len, struct err *e)
{
	_cleanup_(freep) uint8_t *in = NULL;
	struct packing p;
	uint64_t in_len;
	bool good;
	int r;

	r = read_packing(elf, sec, &p, e);
	if (r < 0)
		return r;
	if (p.size != len || sec->type == SHT_NOBITS)
		return err_set(e, -ENODATA, "%s: section %s changed, or has no bytes",
			       elf_file_name(elf), sec->name);
	if (!p.type)
		return elf_file_read(elf, sec->off, out, len, e);
	in_len = sec->size - p.head;
	in = in_len > PACKED_BYTES_MAX ? NULL : malloc(in_len + 1);
	if (!in)
		return err_set(e, -ENOMEM, "%s: section %s: out of memory", elf_file_name(elf),
			       sec->name);
	r = elf_file_read(elf, sec->off + p.head, in, in_len, e);
	if (r < 0)
		return r;
	good = p.type == ELFCOMPRESS_ZSTD ? zstd_all(in, in_len, out, len)
					  : zlib_all(in, in_len, out, len);
	if (!good)
		return err_set(e, -EBADMSG, "%s: section %s does not unpack to %" PRIu64 " bytes",
			       elf_file_name(elf), sec->name, len);
	return 0;
}

int elf_section_unpack(const struct elf_file *elf, const struct elf_section *sec, uint64_t max,
		       uint8_t **ret_bytes, uint64_t *ret_len, struct err *e)
{
	_cleanup_(freep) uint8_t *out = NULL;
	uint64_t len = 0;
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
	r = elf_section_unpack_to(elf, sec, out, len, e);
	if (r < 0)
		return r;
	out[len] = '\0';
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
