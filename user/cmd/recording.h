/*
 * A recording from its options on: finds the targets, makes the directory or the archive, runs, writes.
 */
#ifndef MEMSCOPE_CMD_RECORDING_H
#define MEMSCOPE_CMD_RECORDING_H

#include "cmd/cmd.h"
#include "cmd/run_args.h"
#include "run/run.h"

/* As root? Else -EPERM with a sentence. */
int recording_allowed(struct err *e);
/* Who they are at present, of `a`, into *cfg. -errno with a sentence: they are not there. */
int recording_targets(const struct run_args *a, struct run_config *cfg, struct err *e);
struct recording_end {
	enum run_end why;
	bool goes_on;    /* another run follows in this process                */
	bool new_config; /* … with what its configuration says by now      */
	bool handed_on;  /* … and a child process writes what this one has gathered */
	uint64_t ns, length_ns; /* when the gate was shut, CLOCK_MONOTONIC; how long it was open */
};

/* Until the run's end, which is in *ret_end (NULL: nobody asks). `cfg` comes from run_args_config(). Has printed
 * what went wrong. */
enum exit_status recording_run(const struct run_args *a, struct run_config *cfg,
			       struct recording_end *ret_end);

#endif
