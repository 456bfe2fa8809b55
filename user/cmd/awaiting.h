/* A service whose targets are not there yet: it waits for them, and is there for its manager and for signals meanwhile. */
#ifndef MEMSCOPE_CMD_AWAITING_H
#define MEMSCOPE_CMD_AWAITING_H

#include "run/config.h"

#include <stdbool.h>
#include <stdint.h>

struct awaiting {
	bool said;
};

enum awaiting_end {
	AWAITING_GOES_ON, /* look again                                  */
	AWAITING_RELOAD,  /* SIGHUP brought a configuration that is good */
	AWAITING_ENDED,   /* by SIGTERM or SIGINT                        */
};

/*
 * Waits until it is time to look again: a look costs `cost_ns` of CPU time. `why`: the sentence that says what is not there, which
 * is printed the first time. SIGHUP, SIGTERM, SIGINT and SIGUSR1 stay blocked.
 */
enum awaiting_end awaiting_turn(struct awaiting *w, const struct run_config *cfg, uint64_t cost_ns,
				const char *why);

#endif
