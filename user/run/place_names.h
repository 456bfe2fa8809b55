/*
 * Names of locations that a child of memscope has found, for its parent: the next child then need not find them
 * again: of files, by symbols or by the ranges of their unwind information (without a system name), and of the kernel. Names of
 * generated code stay the child's, as its addresses are used again; and of places that nothing is known of, as more may be later.
 *
 *   a place:  location u32, lines u32, unread u32 (1: debug info may know more); of each line: line u32, its function's u32, function, system name, file: each ends with a zero
 */
#ifndef MEMSCOPE_RUN_PLACE_NAMES_H
#define MEMSCOPE_RUN_PLACE_NAMES_H

#include "base/bytes.h"
#include "base/strbuf.h"
#include "model/dict.h"

#include <stdbool.h>

enum { PLACE_NAMES_BYTES = 8 << 20, PLACE_LINES_MAX = 256 };

/* Those of `fresh` (by location, up to the dict's count) that have names now, up to PLACE_NAMES_BYTES. */
void place_names_add(const struct dict *d, const bool *fresh, struct strbuf *out);
struct place_names_taken {
	uint32_t named, ranges; /* for good; of those, by ranges */
	uint32_t unread, read;  /* named as far as can be without debug info; of `named`, those that were so before */
};
/* Names what has no name yet, `max` places at most, and what had one as far as can be without debug info; ends at what it does not
 * understand. */
struct place_names_taken place_names_take(struct dict *d, struct bytes names, uint32_t max);

#endif
