/*
 * Table: the profile types of a run, with the value types that pprof's users expect, in order.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_SOURCES_H
#define MEMSCOPE_COLLECT_SESSION_SOURCES_H

#include "model/source.h"
#include "model/value_type.h"

#include <stdint.h>

enum profile_kind { PROFILE_ONCPU, PROFILE_OFFCPU, PROFILE_ALLOC, PROFILE_HEAP, PROFILE_PEAK, PROFILE_GROWTH, PROFILE_MAPPINGS, PROFILE_GOROUTINE, PROFILE_WAKERS,
		    PROFILE_SYSCALLS,
		    N_PROFILE_KINDS };

struct profile_row {
	const char *name;           /* file name and --only word                       */
	enum source source;      /* its totals fill the profile                     */
	struct value_type types[4];
	uint32_t n_types;
	uint32_t default_type;      /* what viewers show first                         */
	uint32_t times[2], n_times; /* value types of which it is known when they came (model/sample_times.h) */
	struct value_type period;   /* pprof's period type; its value is set by the run */
};

/* Pages that one growth stack stands for. */
#define GROWTH_SAMPLE_PAGES 127

extern const struct profile_row profile_rows[N_PROFILE_KINDS];

#endif
