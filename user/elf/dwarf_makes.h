/*
 * What a call returns a pointer to, by the debug info of its caller: the type of the variable that its result becomes.
 *
 *   struct session *s = malloc(n);     the variable whose location begins behind the call in the register that the result is moved
 *                                      to, or the slot or the address of a global that it is stored at
 *   p->items = malloc(n);              the member of what a variable points to that is in a register there
 *   return calloc(1, sizeof(…));       nothing of that: what the function returns (`is_guess`)
 *
 * A pointer to void says nothing. Whether the type fits the size of what was allocated is the caller's to check: it is the only thing that
 * speaks for a guess. Read in a cell, as dwarf.h has it.
 */
#ifndef MEMSCOPE_ELF_DWARF_MAKES_H
#define MEMSCOPE_ELF_DWARF_MAKES_H

#include "elf/elf_file.h"
#include "elf/result_moves.h"

struct dwarf_type {
	uint64_t vaddr;   /* where the call returns to                                  */
	const char *name; /* "session" of a struct session, "ns::Order", "client_t"     */
	uint64_t bytes;   /* not 0                                                      */
	bool is_guess;
};

struct dwarf_types;

/* `calls`: by vaddr. Otherwise as dwarf_lines_read(). */
int dwarf_types_read(struct elf_file *elf, struct elf_file *alt, const struct result_moves *calls, uint32_t n, int64_t max_ms,
		     struct dwarf_types **ret_types, struct err *e);
/* *ret_n of them, each of an address that was asked for. They live as long as `t`. */
const struct dwarf_type *dwarf_types_list(const struct dwarf_types *t, uint32_t *ret_n);
void dwarf_types_free(struct dwarf_types *t);
DEFINE_CLEANUP(struct dwarf_types *, dwarf_types_freep, dwarf_types_free)

/* --- inside (and for tests) --- */

/* The cell's work: 'S' as in dwarf_read.h, 'T' vaddr:8 name:4 bytes:8 is_guess:1, 'E' code:4. */
void dwarf_makes_read(struct elf_file *elf, struct elf_file *alt, const struct result_moves *calls, uint32_t n, int spill, int out);
/* Answers, whatever they are: nonsense ends them. Takes `text` over. -ENOMEM. */
int dwarf_types_parse(char *text, size_t len, struct dwarf_types **ret_types);

#endif
