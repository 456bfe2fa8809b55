/* Files that memscope diff --output writes in forms of their own: a profile of the difference, and a table. */
#ifndef MEMSCOPE_CMD_DIFF_WRITE_H
#define MEMSCOPE_CMD_DIFF_WRITE_H

#include "render/tables/diff_report.h"

/* After minus before, of the values that both have. */
int diff_write_profile(const struct diff_opts *o, const char *path, struct err *e);
/* One row for each function or stack. */
int diff_write_table(const struct diff_report *r, const char *path, struct err *e);

#endif
