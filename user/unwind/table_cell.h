/*
 * A file's CFI, Go's tables and code are others' bytes: a cell makes its table (base/cells.h), and what comes back is checked as an entry
 * of the cache is, each number of it (row_format.h), as the walker in the kernel trusts a table.
 */
#ifndef MEMSCOPE_UNWIND_TABLE_CELL_H
#define MEMSCOPE_UNWIND_TABLE_CELL_H

#include "unwind/rows.h"

/*
 * unwind_table_build() by a cell, of a file that is open by descriptor; of one in memory (a vDSO) it is that. -EBADMSG: the cell ended
 * early, or its table is none.
 */
int unwind_table_in_cell(struct elf_file *elf, struct unwind_table **ret_table, struct err *e);

#endif
