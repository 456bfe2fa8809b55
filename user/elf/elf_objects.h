/*
 * Variables of an ELF image by name and by address, from .symtab, else from .dynsym. Functions are elf_syms.h.
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
/*
 * The name of the variable that covers `vaddr`, of several the smallest, and how far into it that is. As
 * elf_object_find(); -ENAMETOOLONG: it has more than `cap` - 1 bytes.
 */
int elf_object_at(struct elf_file *elf, uint64_t vaddr, char *ret_name, size_t cap,
		  uint64_t *ret_off);

#endif
