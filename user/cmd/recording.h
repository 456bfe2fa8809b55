/*
 * A recording from its options on: finds the targets, makes the directory or the archive, runs, writes.
 */
#ifndef MEMSCOPE_CMD_RECORDING_H
#define MEMSCOPE_CMD_RECORDING_H

#include "cmd/cmd.h"
#include "cmd/run_args.h"

/* As root? Else -EPERM with a sentence. */
int recording_allowed(struct err *e);
/* Until the run's end. `cfg` comes from run_args_config(). Has printed what went wrong. */
enum exit_status recording_run(const struct run_args *a, struct run_config *cfg);

#endif
