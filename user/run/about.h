/*
 * What a run's files say of it, as model/about.h has it: who was profiled, the title, and the labels.
 */
#ifndef MEMSCOPE_RUN_ABOUT_H
#define MEMSCOPE_RUN_ABOUT_H

#include "base/err.h"
#include "run/config.h"

/* "env=prod": a name that is not empty, a '=', and any text. -EINVAL with a sentence. */
int about_check_label(const char *label, struct err *e);

/*
 * Lines for the comments of profiles; `child`: the command's process. Call it while the targets are there. NULL
 * when out of memory; about_free().
 */
const char **about_lines(const struct run_config *cfg, pid_t child);
void about_free(const char **lines);

#endif
