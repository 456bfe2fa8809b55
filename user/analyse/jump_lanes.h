/*
 * The jumps inside a function as lines beside its instructions, the shortest nearest to them:
 *
 *     ┌►  mov …
 *   ┌─┼─  je …
 *   │ └─  jnz …
 *   └──►  ret
 */
#ifndef MEMSCOPE_ANALYSE_JUMP_LANES_H
#define MEMSCOPE_ANALYSE_JUMP_LANES_H

#include "model/code_text.h"

enum { JUMP_LANES = 6, JUMP_COLUMNS = 2 * JUMP_LANES + 1 };

/* One character of UTF-8, of at most three bytes and a NUL, a column. */
struct jump_row {
	char columns[JUMP_COLUMNS][4];
};

/*
 * A row for each instruction of `code`; free() them. Jumps that find no lane are without a line. *ret_columns: how many of the columns,
 * the last ones, are not blank everywhere. NULL: out of memory.
 */
struct jump_row *jump_lanes(const struct code_text *code, uint32_t *ret_columns);

#endif
