/*
 * What a number means: name and unit as pprof spells them ("cpu", "nanoseconds"), and how folded
 * text and pictures show it.
 */
#ifndef MEMSCOPE_MODEL_VALUE_TYPE_H
#define MEMSCOPE_MODEL_VALUE_TYPE_H

struct value_type {
	const char *name;  /* samples, cpu, blocked, runnable, alloc_space, inuse_objects, … */
	const char *unit;  /* count, nanoseconds, bytes                                       */
};

#endif
