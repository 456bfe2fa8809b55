/* The memory of what an archive is of, from the rows in its windows: for `memscope trend ARCHIVE`. */
#ifndef MEMSCOPE_CMD_TREND_WINDOWS_H
#define MEMSCOPE_CMD_TREND_WINDOWS_H

#include "base/err.h"
#include "model/mem_log.h"

#include <stdbool.h>
#include <stddef.h>

/* A directory that is not that of one run, which has its trend.csv. */
bool trend_is_archive(const char *path);
/* Does the word choose windows of an archive? */
bool trend_is_choice(const char *word);
/*
 * `container`, `choice`: NULL, all. What was read is in `shown` then. -EINVAL, -ESRCH: a mistake in what was asked for;
 * -ENODATA: windows without rows.
 */
int trend_read_windows(const char *dir, const char *choice, const char *container,
		       struct mem_log **ret_log, char *shown, size_t cap, struct err *e);

#endif
