/*
 * How often a run looks at what costs something to look at. `memscope serve` may cost a hundredth of a CPU in all, and
 * nobody waits for its figures: it looks more rarely.
 */
#ifndef MEMSCOPE_RUN_LOOK_PAUSE_H
#define MEMSCOPE_RUN_LOOK_PAUSE_H

#include "run/config.h"

/* The time between two looks, ns, of what any other run looks at every `ns`; `times`: so many times rarer. */
static inline uint64_t look_pause(const struct run_config *cfg, uint64_t ns, uint32_t times)
{
	return cfg->serve ? ns * times : ns;
}

#endif
