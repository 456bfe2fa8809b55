/*
 * The part of a profile that collects garbage, by the collectors' own functions: HotSpot, V8, Go, CPython, GHC, Ruby,
 * PHP. Where the runtime is stripped of their names, nothing is found.
 */
#ifndef MEMSCOPE_ANALYSE_GC_TIME_H
#define MEMSCOPE_ANALYSE_GC_TIME_H

#include "model/profile.h"

/* Of value type `type`. 0 or -ENOMEM. */
int gc_time(const struct profile *p, uint32_t type, int64_t *ret_value);

#endif
