/*
 * The options of a run (`record`, `serve`) and what they ask for. The commands have rows of their own: what an
 * option is called, its default and its help are theirs.
 */
#ifndef MEMSCOPE_CMD_RUN_ARGS_H
#define MEMSCOPE_CMD_RUN_ARGS_H

#include "base/opt.h"
#include "run/config.h"

#include <stdbool.h>
#include <stdint.h>

struct run_args {
	const char *pids, *pattern, *cpus, *only, *dir, *alloc_rate, *archive, *keep, *langs;
	const char *containers, *cgroups, *title;
	struct opt_list labels, when, series, events, counts;
	bool all, user_only, kernel_only, no_children, quiet, verbose, json, no_demangle, no_source,
		inject;
	bool python_objects, fine, no_wakers;
	bool events_too; /* -e adds to the other sources, it does not replace them */
	uint32_t tid, hz, mem_mb;
	double duration_s, delay_s, interval_s, every_s, max_overhead, min_block_us, max_block_us;
	double census_s;
	double before_s, rearm_s;
	int alloc, alloc_scope, by, offcpu, native;
};

#define RUN_MAX_PIDS    1024
#define ALLOC_NOT_GIVEN (-1) /* of run_args.alloc                      */

/* What `record` does where an option is not given; `serve` changes some of it. */
extern const struct run_args run_args_default;

/*
 * Checks the options and puts what they ask for into *cfg, whose pids have room for RUN_MAX_PIDS; looks at
 * nothing outside of them. `command`: argv of -- CMD, or NULL. Strings stay the options'. Until the next call.
 * -EINVAL with a sentence: wrong usage.
 */
int run_args_config(const struct run_args *a, char **command, struct run_config *cfg, struct err *e);

#endif
