/* report.html of a run: its profiles as they are in memory, the rest from its files (page_files.h). */
#ifndef MEMSCOPE_RUN_OUTPUT_PAGE_H
#define MEMSCOPE_RUN_OUTPUT_PAGE_H

#include "run/run.h"

/* Writes DIR/report`suffix`.html; after all that it is made of. */
int output_page(struct run *r, const char *suffix, struct err *e);

#endif
