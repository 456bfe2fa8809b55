/*
 * What the variables and structs of an image point to, by its debug info: each variable that has an address in all of the
 * program, and of each type where in it there is a pointer, and to what.
 *
 *   static struct server server;     a variable of type "server"
 *   struct server { …; struct client **clients; }   a pointer at 16 to "client*"
 *
 * Structs in structs, base classes, arrays and unions are gone into. Pointers to void and to single bytes say nothing and are left out.
 * Containers whose pointers have another type than what they point to are known by name: nodes of std::map, std::list and
 * std::unordered_map of libstdc++ and libc++, the vectors and hash tables of Rust. What std::make_shared() makes has its value behind
 * the counts.
 *
 * Types have one name in all units of an image ("ns::Session"; "Session*"). Where one name has several layouts, `is_ambiguous`
 * says so: C allows that. Read in a cell, as dwarf.h has it.
 */
#ifndef MEMSCOPE_ELF_DWARF_MEMBERS_H
#define MEMSCOPE_ELF_DWARF_MEMBERS_H

#include "elf/elf_file.h"

enum {
	DWARF_SLOTS_MAX = 512,       /* pointers of one type                          */
	DWARF_LAYOUTS_MAX = 1 << 18, /* types of an image                             */
};

enum dwarf_slot_kind {
	DWARF_SLOT_POINTER,  /* to the first of one or several                        */
	DWARF_SLOT_BEFORE,   /* to behind the last of several: tables of hashbrown    */
	DWARF_SLOT_KINDS
};

struct dwarf_slot {
	uint32_t off;    /* of the pointer, in bytes    */
	uint32_t layout; /* that it points to: an index */
	uint8_t kind;    /* enum dwarf_slot_kind        */
};

struct dwarf_layout {
	const char *name;
	uint64_t bytes;  /* 0: no unit has its definition                 */
	uint32_t head;   /* the struct that it begins with, a base class or a first member; 0: none */
	const struct dwarf_slot *slots; /* by offset                        */
	uint32_t n;
	bool is_ambiguous;
};

struct dwarf_variable {
	uint64_t vaddr;
	uint32_t layout;
};

struct dwarf_members;

/* -ENOENT: no debug info; -ETIMEDOUT and what else dwarf_lines_read() has. What was read until its time was over is kept. */
int dwarf_members_read(struct elf_file *elf, struct elf_file *alt, int64_t max_ms, struct dwarf_members **ret_members,
		       struct err *e);
/* *ret_n of them. These live as long as `m`. */
const struct dwarf_layout *dwarf_members_layouts(const struct dwarf_members *m, uint32_t *ret_n);
const struct dwarf_variable *dwarf_members_variables(const struct dwarf_members *m, uint32_t *ret_n);
/* Did it come to its end? */
bool dwarf_members_complete(const struct dwarf_members *m);
void dwarf_members_free(struct dwarf_members *m);
DEFINE_CLEANUP(struct dwarf_members *, dwarf_members_freep, dwarf_members_free)

/* --- inside (and for tests) --- */

/*
 * The cell's work: 'S' as in dwarf_read.h, 'L' name:4 bytes:8 head:4 n:4 { off:4 name:4 kind:1 }×n, 'V' vaddr:8 name:4, 'E' code:4. A name that
 * is never an 'L' has no definition; one that is several is ambiguous.
 */
void dwarf_members_write(struct elf_file *elf, struct elf_file *alt, int spill, int out);
/* Answers, whatever they are: nonsense ends them. Takes `text` over. -ENOMEM. */
int dwarf_members_parse(char *text, size_t len, struct dwarf_members **ret_members);

#endif
