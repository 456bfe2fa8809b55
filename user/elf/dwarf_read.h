/*
 * The part of dwarf.h that runs in the child: libdw on one side, a pipe on the other.
 *
 *   'S' len:4 bytes                                     a string; they are numbered from 1
 *   'A' vaddr:8 n:4 { function:4 file:4 line:4 start:4 }×n   frames, innermost first; 0: unknown
 *   'E' code:4                                          the end: 0 or -errno
 */
#ifndef MEMSCOPE_ELF_DWARF_READ_H
#define MEMSCOPE_ELF_DWARF_READ_H

#include "elf/elf_file.h"

/* Writes the answers to `out`, up to its 'E'. */
void dwarf_read(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs, uint32_t n,
		int out);

/*
 * The answers as they came, up to their 'E', whose code is given (0 when it is missing: they are
 * cut short then). Takes `text` over. -ENOMEM. Nonsense ends them.
 */
struct dwarf_lines;
int dwarf_answers_parse(char *text, size_t len, struct dwarf_lines **ret_lines, int32_t *ret_code);

/*
 * An ELF image in memory with nothing but the debug sections of `elf` that lines and functions
 * need, unpacked. munmap() it. -EFBIG: over `max` bytes.
 */
int dwarf_unpack(struct elf_file *elf, uint64_t max, void **ret_image, size_t *ret_len);
/* Is any of them compressed? -ENOENT: there is no .debug_info. */
int dwarf_is_packed(struct elf_file *elf);

#endif
