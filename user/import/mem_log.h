/*
 * Logs of a program's memory over time: comma-separated lines below a line of names, as
 * render/tables/trend_csv.h writes them and as many scripts do:
 *
 *   timestamp,rss_kb,vsz_kb,cpu_percent
 *
 * Columns are known by their names and come in any order; others are left out. Without a line of names,
 * a log is of these four. A timestamp is YYYY-MM-DD HH:MM:SS (or with a T, or with a fraction) of local
 * time, or seconds since 1970.
 */
#ifndef MEMSCOPE_IMPORT_MEM_LOG_H
#define MEMSCOPE_IMPORT_MEM_LOG_H

#include "base/err.h"
#include "model/mem_log.h"

#include <stdio.h>

/*
 * Reads the log in `path` ("-": standard input; of a directory, as a run makes it, its trend.csv).
 * -EBADMSG with a sentence: the first line is neither a row of the four columns nor names timestamp and
 * rss_kb; -ENODATA: no row below the names.
 */
int mem_log_read(const char *path, struct mem_log **ret_log, struct err *e);
/* The same from an open file; `name` is for sentences. */
int mem_log_parse(FILE *f, const char *name, struct mem_log **ret_log, struct err *e);

#endif
