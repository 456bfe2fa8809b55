/*
 * The functions of an ELF image by address and by name, from .symtab and .dynsym.
 *
 * What counts as a function: defined FUNC and IFUNC symbols, and NOTYPE ones (hand-written
 * assembly: _start), in an executable section. A symbol covers [vaddr, vaddr + size), cut off at
 * the end of its section; one without a size reaches to the next symbol of its section. An address
 * outside every symbol has no name: never the nearest one below.
 *
 * Where several symbols cover an address, the one that starts last (innermost) names it, save that
 * an untyped label inside a typed function does not; among
 * aliases at one address the name a person expects (`malloc`, not `__libc_malloc`): typed before
 * NOTYPE, sized before unsized, exported before local, glibc's __GI_ names last, then fewer leading
 * underscores (a mangled name counts as having none), shorter, global before weak, alphabetical.
 *
 * The tables are copied and checked: a symbol whose section, address or name does not add up is
 * left out. Memory: the string tables, and 40 to 56 bytes a function; where only some functions are wanted, these alone, and 8 bytes
 * a symbol in passing.
 */
#ifndef MEMSCOPE_ELF_ELF_SYMS_H
#define MEMSCOPE_ELF_ELF_SYMS_H

#include "elf/elf_file.h"

struct elf_syms;

struct elf_sym {
	const char *name;   /* mangled; `name_len` bytes, after which "@VERSION" may follow          */
	uint32_t name_len;
	bool label;         /* it has no type or no size, where it ends is a guess          */
	bool ifunc;         /* the code here is a resolver: the function is chosen at run time       */
	uint64_t vaddr;
	uint64_t size;      /* as found above, at least 1                                            */
};

/*
 * Reads the tables; `elf` may be closed afterwards.
 * -ENOENT: the file has no symbol table with functions. Else as elf_file_read_section().
 */
int elf_syms_load(struct elf_file *elf, struct elf_syms **ret_syms, struct err *e);
/*
 * The same of those functions alone whose name `keep` wants: a few of the hundred thousand that a
 * large program has, for a small part of the time. What is found is as it would be among all of them.
 * `name` ends with NUL or '@'.
 */
typedef bool (*elf_syms_keep_fn)(const char *name);
int elf_syms_load_some(struct elf_file *elf, elf_syms_keep_fn keep, struct elf_syms **ret_syms,
		       struct err *e);
/* The same, of what somebody wants who has more to say than a function. */
typedef bool (*elf_syms_wanted_fn)(void *ctx, const char *name);
int elf_syms_load_wanted(struct elf_file *elf, elf_syms_wanted_fn wanted, void *ctx,
			 struct elf_syms **ret_syms, struct err *e);
/*
 * The same of what is needed to name these addresses, ascending, with elf_syms_find(): what that finds is as it would be among all
 * functions. -ENOENT also where no symbol is near any of them.
 */
int elf_syms_load_at(struct elf_file *elf, const uint64_t *vaddrs, uint32_t n, struct elf_syms **ret_syms,
		     struct err *e);
void elf_syms_free(struct elf_syms *syms);
DEFINE_CLEANUP(struct elf_syms *, elf_syms_freep, elf_syms_free)

/*
 * The function at `vaddr`; its name borrows from `syms`. O(log n).
 * -ENOENT: no symbol covers it.
 */
int elf_syms_find(const struct elf_syms *syms, uint64_t vaddr, struct elf_sym *ret_sym);

/*
 * Every address that `name` (without version) is defined at, aliases included, each address once,
 * lowest first. Writes up to `cap` of them and returns how many there are, or -ENOMEM. O(log n)
 * after the first call, which builds an index (8 bytes a function).
 */
int elf_syms_find_name(struct elf_syms *syms, const char *name, struct elf_sym *ret_syms,
		       uint32_t cap);

/* True when the file was stripped: what is here is only what it exports (.dynsym). */
bool elf_syms_exported_only(const struct elf_syms *syms);

/* All functions, by address, aliases in order of preference. */
uint32_t elf_syms_count(const struct elf_syms *syms);
struct elf_sym elf_syms_at(const struct elf_syms *syms, uint32_t i);

#endif
