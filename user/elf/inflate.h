/*
 * The bytes of a section, compressed or not: SHF_COMPRESSED with zlib or zstd (System V ABI,
 * chapter 4, "Section Compression"), and the older ".zdebug_" form.
 */
#ifndef MEMSCOPE_ELF_INFLATE_H
#define MEMSCOPE_ELF_INFLATE_H

#include "elf/elf_file.h"

/*
 * free() the result. Memory grows with what comes out, never with what a header claims, and up to
 * ELF_SECTION_BYTES_MAX. -EBADMSG: damaged, or of another length than it says; -EOPNOTSUPP:
 * another way of compression; else as elf_file_read_section().
 */
int elf_inflate_section(struct elf_file *elf, const struct elf_section *sec, uint8_t **ret_bytes,
			size_t *ret_len, struct err *e);

#endif
