/*
 * Tables over time from files: lines of comma-separated fields below a line of names, the first of which is
 * "timestamp" (csv_time.h). Names may be quoted, with quotes in them doubled; values are numbers, or empty.
 * A column "timestamp_ms" has the milliseconds behind it, and is no column of the result.
 * A table "timestamp,name,value" becomes one of a column for each name, in the order in which they come.
 */
#ifndef MEMSCOPE_IMPORT_TIME_TABLE_H
#define MEMSCOPE_IMPORT_TIME_TABLE_H

#include "base/bytes.h"
#include "base/err.h"
#include "model/time_table.h"

/* Of the columns behind these nothing is read, nor of the rows. */
enum { TIME_TABLE_COLUMNS = 256, TIME_TABLE_ROWS = 1 << 21 };

/*
 * Rows that are not understood are left out, and counted in `ret_skipped` (may be NULL). Times do not go back: a row
 * that is earlier than the one before it has its time. -EBADMSG: the first line is no such line of names; -ENOMEM.
 */
int time_table_parse(struct bytes text, const char *name, struct time_table **ret_table, uint32_t *ret_skipped,
		     struct err *e);
/* -ENOENT (no sentence): there is no such file. */
int time_table_read(const char *path, struct time_table **ret_table, uint32_t *ret_skipped, struct err *e);

#endif
