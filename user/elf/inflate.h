/*
 * Compressed parts of an ELF file, unpacked within a bound that the caller states: sections with
 * SHF_COMPRESSED (zlib and zstd; gABI, "Section Compression"), the older .zdebug_NAME ("ZLIB" and
 * the size, big-endian), and the xz stream of .gnu_debugdata.
 *
 * libelf 0.188 knows zlib only and has no bound: a file of 1 MB could ask for all memory.
 */
#ifndef MEMSCOPE_ELF_INFLATE_H
#define MEMSCOPE_ELF_INFLATE_H

#include "elf/elf_file.h"

/* Is it stored compressed? */
bool elf_section_is_packed(const struct elf_section *sec);

/* How long a section is once unpacked (its own size when it is not packed). As below. */
int elf_section_unpacked_size(const struct elf_file *elf, const struct elf_section *sec,
			      uint64_t *ret_len, struct err *e);

/*
 * A section's bytes, unpacked if need be, with a NUL after the last; free() them.
 * -EFBIG: more than `max` bytes; -EBADMSG: not what it says; -EOPNOTSUPP: another compression;
 * else as elf_file_read_section().
 */
int elf_section_unpack(const struct elf_file *elf, const struct elf_section *sec, uint64_t max,
		       uint8_t **ret_bytes, uint64_t *ret_len, struct err *e);

/*
 * The same a piece at a time, in order, without memory for the whole: `len` is what
 * elf_section_unpacked_size() said, and how much `put` gets when it ends well. An error of `put`
 * ends it, and is returned.
 */
typedef int (*unpack_put)(void *ctx, const void *bytes, size_t len);
int elf_section_unpack_by(const struct elf_file *elf, const struct elf_section *sec, uint64_t len,
			  unpack_put put, void *ctx, struct err *e);

/* elf_section_unpack() of at most ELF_SECTION_BYTES_MAX. */
int elf_inflate_section(struct elf_file *elf, const struct elf_section *sec, uint8_t **ret_bytes,
			size_t *ret_len, struct err *e);

/* elf_section_unpack() for a whole xz stream; `name` is for sentences. At most 64 MiB of dictionary. */
int xz_unpack(const uint8_t *data, size_t len, uint64_t max, const char *name, uint8_t **ret_bytes,
	      uint64_t *ret_len, struct err *e);

#endif
