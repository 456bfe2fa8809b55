/* memscope report -o FILE.html */
#ifndef MEMSCOPE_CMD_REPORT_PAGE_H
#define MEMSCOPE_CMD_REPORT_PAGE_H

#include "cmd/inputs.h"

/*
 * Of a run's directory all that is in it, else of each profile that is named. -EINVAL: wrong usage; -ENOENT: nothing is
 * there to show. `no_source`: without the text of source files.
 */
int report_page(struct inputs *in, char *const *operands, int n, const char *output, bool no_source, struct err *e);

#endif
