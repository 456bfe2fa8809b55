/*
 * What a number means: name and unit as pprof spells them ("cpu", "nanoseconds"), and how folded
 * text and pictures show it.
 */
#ifndef MEMSCOPE_MODEL_VALUE_TYPE_H
#define MEMSCOPE_MODEL_VALUE_TYPE_H

#include <stdbool.h>
#include <string.h>

struct value_type {
	const char *name;  /* samples, cpu, blocked, runnable, alloc_space, inuse_objects, … */
	const char *unit;  /* count, nanoseconds, bytes                                       */
};

/* By its name: is it what was held at a moment, or on average? That does not grow with how long a run lasts. */
static inline bool value_type_is_level(const char *name)
{
	return strncmp(name, "inuse_", 6) == 0 || strncmp(name, "peak_", 5) == 0 ||
	       strncmp(name, "mean_", 5) == 0;
}

#endif
