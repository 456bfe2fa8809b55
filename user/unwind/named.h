/*
 * Rules for what a file's symbols and its entry point say (roots.h).
 */
#ifndef MEMSCOPE_UNWIND_NAMED_H
#define MEMSCOPE_UNWIND_NAMED_H

#include "unwind/code.h"
#include "unwind/rule_ranges.h"

#include <stdbool.h>

enum {
	NAMED_HOLE_MIN = 64,     /* bytes without rules below which symbols are not read */
	NAMED_ENTRY_BYTES = 128, /* of start code, at most, where nothing says how long it is  */
};

struct named {
	struct rule_ranges over;   /* what holds whatever else is known  */
	struct rule_ranges under;  /* what holds where nothing is known  */
};

/*
 * `known`: what there is already. `symbols`: look at the symbols too. -ENOMEM, -EFBIG; a file
 * without symbols is not an error.
 */
int named_find(struct elf_file *elf, struct code *code, const struct rule_ranges *known, bool symbols,
	       struct named *ret_named);
void named_fini(struct named *named);

#endif
