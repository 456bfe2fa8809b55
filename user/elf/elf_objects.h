/*
 * Variables of an ELF image by name, from .symtab, else from .dynsym. Functions are elf_syms.h.
 */
#ifndef MEMSCOPE_ELF_ELF_OBJECTS_H
#define MEMSCOPE_ELF_ELF_OBJECTS_H

#include "elf/elf_file.h"

struct elf_object {
	uint64_t vaddr, size; /* size 0: not said */
};

/*
 * The first defined variable with one of `names` (NULL ends them). -ENOENT: none; else as
 * elf_file_read_section(). Reads the whole table.
 */
int elf_object_find(struct elf_file *elf, const char *const *names, struct elf_object *ret_object);

#endif
