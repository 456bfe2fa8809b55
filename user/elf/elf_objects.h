/*
 * Variables of an ELF image by name and by address, from .symtab, else from .dynsym. Functions are elf_syms.h.
 */
#ifndef MEMSCOPE_ELF_ELF_OBJECTS_H
#define MEMSCOPE_ELF_ELF_OBJECTS_H

#include "base/bytes.h"
#include "base/strbuf.h"
#include "elf/elf_file.h"

struct elf_object {
	uint64_t vaddr, size; /* size 0: not said */
};

/*
 * The first defined variable with one of `names` (NULL ends them). -ENOENT: none; else as
 * elf_file_read_section(). Reads the whole table, in pieces.
 */
int elf_object_find(struct elf_file *elf, const char *const *names, struct elf_object *ret_object);

/* All variables of an image by address, for many questions. */
struct elf_variables;

/*
 * For a cell that reads the file: its variables, of .symtab, and if that has none of .dynsym, by address, with the names that people have
 * for them (demangle.h), cut at ELF_VARIABLE_NAME_MAX. -ENOENT: there are none; else as elf_file_read_section(); -ENOMEM.
 *
 *   n:4 { vaddr:8 size:8 }×n { name, a NUL }×n
 */
int elf_variables_put(struct elf_file *elf, struct strbuf *ret);
enum { ELF_VARIABLE_NAME_MAX = 200, ELF_VARIABLES_BYTES_MAX = 32 << 20 };

/* For who asked it. -EBADMSG: that is none of these; -ENOMEM. */
int elf_variables_take(struct bytes b, struct elf_variables **ret_variables);
void elf_variables_free(struct elf_variables *v);
DEFINE_CLEANUP(struct elf_variables *, elf_variables_freep, elf_variables_free)

/*
 * The name of the variable that covers `vaddr`, of several the smallest, and how far into it that is. -ENOENT: there is none. O(log
 * variables), unless many cover each other. The name lives as long as `v`.
 */
int elf_variables_at(const struct elf_variables *v, uint64_t vaddr, const char **ret_name, uint64_t *ret_off);

#endif
