/*
 * Table: the profile types of a run, with the value types that pprof's users expect, in order. Behind those that are
 * always there come the ones that are named while the program runs: an event that a run was asked for, or whose
 * profiles are in a directory that is read.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_SOURCES_H
#define MEMSCOPE_COLLECT_SESSION_SOURCES_H

#include "model/source.h"
#include "model/value_type.h"

#include <stdint.h>

enum profile_kind { PROFILE_ONCPU, PROFILE_OFFCPU, PROFILE_ALLOC, PROFILE_HEAP, PROFILE_PEAK, PROFILE_GROWTH, PROFILE_MAPPINGS, PROFILE_GOROUTINE, PROFILE_WAKERS,
		    PROFILE_SYSCALLS,
		    PROFILE_NAMED, /* the first of those */
		    N_PROFILE_KINDS = PROFILE_NAMED + 16 }; /* at most */

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

/* profile_kinds() of them. */
extern const struct profile_row *const profile_rows;
int profile_kinds(void);
/*
 * One more kind, whose strings are copied; of a name that is there already, that one. Returns its number; -ENOSPC: there
 * are N_PROFILE_KINDS. Not while another thread reads the table.
 */
int profile_kind_add(const struct profile_row *row);
/* The value type of a profile of that name: "page_faults" of "page-faults". */
void profile_type_name(const char *name, char ret_type[64]);

#endif
