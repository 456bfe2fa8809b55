/*
 * What an ELF image exports, one name at a time: through its hash table, without reading its symbols. A
 * name that is not there costs two small reads, so that every file which a process maps can be asked.
 *
 * Functions and variables alike, unlike elf_syms.h. A file without .gnu.hash has its .dynsym read from
 * the start, up to a limit. 64-bit images only. GNU hash tables: "GNU Hash ELF Sections", A. Roenky;
 * System V ABI, chapter 5, "Hash Table", says what .dynsym is.
 */
#ifndef MEMSCOPE_ELF_ELF_EXPORTS_H
#define MEMSCOPE_ELF_ELF_EXPORTS_H

#include "elf/elf_file.h"

enum {
	ELF_EXPORTS_NAME_MAX = 128,    /* bytes of a name that is looked for         */
	ELF_EXPORTS_CHAIN_MAX = 4096,  /* symbols of one hash that are looked at     */
	ELF_EXPORTS_SYMS_MAX = 1 << 16,/* read where there is no hash table          */
};

struct elf_export {
	uint64_t vaddr, size;
	uint8_t type;  /* STT_… */
	uint32_t ix;   /* in .dynsym */
};

/*
 * The definition of `name` (without version; of several versions the first in the table).
 * -ENOENT: it is not exported, or the file exports nothing (no sentence is set). Else as elf_file_read().
 */
int elf_export_find(struct elf_file *elf, const char *name, struct elf_export *ret_sym, struct err *e);

/* The same of a thread-local variable: vaddr is where it is in its block, which may be 0. */
int elf_export_find_tls(struct elf_file *elf, const char *name, struct elf_export *ret_sym, struct err *e);

/*
 * The same in .symtab, for what is linked in and not exported. Reads the whole table (of ELF_SECTION_BYTES_MAX at most), in
 * parts: of a large program some ms.
 */
int elf_symtab_find(struct elf_file *elf, const char *const names[], uint32_t n,
		    struct elf_export ret_syms[], struct err *e);

#endif
