/* memscope report -o FILE.html */
#ifndef MEMSCOPE_CMD_REPORT_PAGE_H
#define MEMSCOPE_CMD_REPORT_PAGE_H

#include "cmd/inputs.h"

/*
 * Of a run's directory all that is in it, else of each profile that is named. -EINVAL: wrong usage; -ENOENT: nothing is
 * there to show.
 */
int report_page(struct inputs *in, char *const *operands, int n, const char *output, struct err *e);

#endif
