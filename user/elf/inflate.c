#include "elf/inflate.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum { FIRST_BYTES = 64 << 10 };

/* What comes out, of `want` bytes. */
struct out {
	uint8_t *data;
	size_t len, cap, want;
};

/* Room for more; false when there is as much as was promised, or no memory (then data is NULL). */
static bool grow(struct out *o)
{
	size_t cap = o->cap ? 2 * o->cap : FIRST_BYTES;
	uint8_t *data;

	if (o->len < o->cap)
		return true;
	if (o->len == o->want)
		return false;
	if (cap > o->want)
		cap = o->want;
	data = realloc(o->data, cap);
	if (!data) {
		free(o->data);
		o->data = NULL;
		return false;
	}
	o->data = data;
	o->cap = cap;
	return true;
}

static int inflate_zlib(const uint8_t *in, size_t len, struct out *o)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)in, .avail_in = (uInt)len };
	int r = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (r == Z_OK && grow(o)) {
		z.next_out = o->data + o->len;
		z.avail_out = (uInt)(o->cap - o->len);
		r = inflate(&z, Z_NO_FLUSH);
		if (o->len == o->cap - z.avail_out && r == Z_OK)
			r = Z_BUF_ERROR; /* no progress: it is cut off */
		o->len = o->cap - z.avail_out;
	}
	inflateEnd(&z);
	return !o->data ? -ENOMEM : o->len == o->want ? 0 : -EBADMSG;
}

static int inflate_zstd(const uint8_t *in, size_t len, struct out *o)
{
	ZSTD_inBuffer zin = { in, len, 0 };
	ZSTD_DStream *z = ZSTD_createDStream();
	size_t r = 1;

	if (!z)
		return -ENOMEM;
	while (r != 0 && grow(o)) {
		ZSTD_outBuffer zout = { o->data, o->cap, o->len };
		size_t before = zin.pos;

		r = ZSTD_decompressStream(z, &zout, &zin);
		if (ZSTD_isError(r) || (zout.pos == o->len && zin.pos == before))
			break;
		o->len = zout.pos;
	}
	ZSTD_freeDStream(z);
	return !o->data ? -ENOMEM : o->len == o->want ? 0 : -EBADMSG;
}

/* Chdr, or "ZLIB" and the length with its highest byte first. */
static int read_header(const struct elf_file *elf, const struct elf_section *sec,
		       const uint8_t *bytes, uint32_t *ret_type, uint64_t *ret_size,
		       size_t *ret_header)
{
	Elf64_Chdr h64;
	Elf32_Chdr h32;
	uint64_t be;

	if (!(sec->flags & SHF_COMPRESSED)) {
		if (sec->size < 12 || memcmp(bytes, "ZLIB", 4) != 0)
			return -EBADMSG;
		memcpy(&be, bytes + 4, sizeof(be));
		*ret_type = ELFCOMPRESS_ZLIB;
		*ret_size = be64toh(be);
		*ret_header = 12;
		return 0;
	}
	*ret_header = elf_file_is64(elf) ? sizeof(h64) : sizeof(h32);
	if (sec->size < *ret_header)
		return -EBADMSG;
	if (elf_file_is64(elf)) {
		memcpy(&h64, bytes, sizeof(h64));
		*ret_type = h64.ch_type;
		*ret_size = h64.ch_size;
	} else {
		memcpy(&h32, bytes, sizeof(h32));
		*ret_type = h32.ch_type;
		*ret_size = h32.ch_size;
	}
	return 0;
}

int elf_inflate_section(struct elf_file *elf, const struct elf_section *sec, uint8_t **ret_bytes,
			size_t *ret_len, struct err *e)
{
	struct elf_section plain = *sec;
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct out out = { 0 };
	uint32_t type;
	uint64_t want;
	size_t header;
	int r;

	plain.flags &= ~(uint64_t)SHF_COMPRESSED;
	r = elf_file_read_section(elf, &plain, &bytes, e);
	if (r < 0)
		return r;
	if (!(sec->flags & SHF_COMPRESSED) && strncmp(sec->name, ".zdebug_", 8) != 0) {
		*ret_bytes = TAKE_PTR(bytes);
		*ret_len = sec->size;
		return 0;
	}
	if (read_header(elf, sec, bytes, &type, &want, &header) < 0)
		return err_set(e, -EBADMSG, "%s: section %s has no header of its compression",
			       elf_file_name(elf), sec->name);
	if (want > ELF_SECTION_BYTES_MAX)
		return err_set(e, -EFBIG,
			       "%s: section %s has %" PRIu64
			       " bytes, more than the %d that are read",
			       elf_file_name(elf), sec->name, want, ELF_SECTION_BYTES_MAX);
	out.want = want;
	if (type == ELFCOMPRESS_ZLIB)
		r = inflate_zlib(bytes + header, sec->size - header, &out);
	else if (type == ELFCOMPRESS_ZSTD)
		r = inflate_zstd(bytes + header, sec->size - header, &out);
	else
		return err_set(e, -EOPNOTSUPP, "%s: section %s is compressed in way %u",
			       elf_file_name(elf), sec->name, type);
	if (r < 0) {
		free(out.data);
		return err_set(e, r, "%s: section %s: %s", elf_file_name(elf), sec->name,
			       r == -ENOMEM ? "out of memory" : "its compressed bytes are damaged");
	}
	*ret_bytes = out.data;
	*ret_len = out.len;
	return 0;
}
