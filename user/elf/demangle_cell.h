/*
 * Names of C++ classes that a process has in its memory are others' bytes, and what makes them readable is a grammar that calls itself: that
 * is done in a cell (base/cells.h), which is made with the first name and ends with demangler_end().
 *
 *   ▶ DEMANGLE_NAME  the name                   ◀ DEMANGLE_NAME  as it is shown; nothing: it is no mangled name
 */
#ifndef MEMSCOPE_ELF_DEMANGLE_CELL_H
#define MEMSCOPE_ELF_DEMANGLE_CELL_H

#include "base/bytes.h"
#include "base/cells.h"
#include "elf/demangle.h"

struct demangler {
	struct cell_link link;
	bool has_cell;
	unsigned ended; /* cells that gave no answer: each costs its name, and after a few of them none is asked */
};

#define DEMANGLER { .link = { -1, -1 } }

/* demangle() by a cell. false also where it gave no answer. */
bool demangler_ask(struct demangler *d, const char *name, size_t len, char out[DEMANGLE_OUT_MAX]);
/* Are cells asked yet? */
bool demangler_answers(const struct demangler *d);
void demangler_end(struct demangler *d);

/* What a cell said. false: that the name is not mangled; or it is no text, `*ret_bad`. */
bool demangled_take(struct bytes answer, char out[DEMANGLE_OUT_MAX], bool *ret_bad);

#endif
