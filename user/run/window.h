/*
 * A window of --every that is being written, for components that have a file of its time: it is made in `dir`, or in a folder there, as
 * NAME-STAMP.EXT, and put in place and removed with the profiles.
 */
#ifndef MEMSCOPE_RUN_WINDOW_H
#define MEMSCOPE_RUN_WINDOW_H

#include <stdint.h>

struct run_window {
	const char *dir, *stamp;
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
};

#endif
